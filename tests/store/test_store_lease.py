"""The lease of a session's loop: one holder at a time, whatever becomes of the disk."""

import resource
from pathlib import Path

import pytest

from handrail.protocol.errors import UsageError
from handrail.store.runner import Lease


def test_a_disk_that_is_full_neither_keeps_anybody_from_it_nor_holds_it(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        with Lease(str(tmp_path), "task"), pytest.raises(UsageError, match="at work in another process"):
            Lease(str(tmp_path), "task").__enter__()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with Lease(str(tmp_path), "task"):
        pass
