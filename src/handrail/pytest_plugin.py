"""Fixtures for pytest: `pytest_plugins = ["handrail.pytest_plugin"]` in a conftest.py.

Nothing of handrail is loaded until a test uses one.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from handrail.testing import TemporarySession


@pytest.fixture
def handrail_session(tmp_path: Path) -> "Iterator[Callable[..., TemporarySession]]":
    """Opens temporary sessions, with the arguments of `handrail.testing.TemporarySession`. Closes them at the end."""
    from handrail.testing import TemporarySession  # noqa: PLC0415  most tests do without

    with ExitStack() as opened:
        folders = (tmp_path / f"handrail-{number}" for number in range(1, 1_000_000))

        def open_session(*args: Any, **options: Any) -> TemporarySession:
            return opened.enter_context(TemporarySession(*args, **{"folder": next(folders), **options}))

        yield open_session
