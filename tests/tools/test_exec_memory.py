"""The memory limit holds for memory that processes share, and counts it once."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Limits, Sandbox

Make = Callable[..., Handrail]

PROGRAM = """
import mmap, os, signal, sys
size = int(sys.argv[1]) << 20
shared = mmap.mmap(-1, size)
for _ in range(int(sys.argv[2])):
    if not os.fork():
        shared.write(bytes(size))
        signal.pause()
shared.write(bytes(size))
signal.sigtimedwait([signal.SIGUSR1], float(sys.argv[3]))
print("held it")
"""


@pytest.fixture(params=[2, 1], ids=["tier 2", "tier 1"])
def one(request: pytest.FixtureRequest, rail: Make, workspace: Path) -> Handrail:
    (workspace / "program.py").write_text(PROGRAM)
    settings = Settings(limits=Limits(memory="96 MB"), sandbox=Sandbox(tier=request.param))
    return rail(mode="full", settings=settings)


def test_shared_memory_over_the_limit_ends_a_command(one: Handrail) -> None:
    result = one.call("exec", {"command": "python3 program.py 160 0 20"})
    assert result.error is not None
    assert result.error.code == "LIMIT_EXCEEDED"
    assert result.meta.limits == ("memory",)


def test_memory_that_many_processes_share_counts_once(one: Handrail) -> None:
    result = one.call("exec", {"command": "python3 program.py 24 5 1"})
    assert result.ok, result.error
    assert result.content == "held it\n"
