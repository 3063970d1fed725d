"""Workspaces over real folders, with either resolver."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.openat2 import works
from handrail.workspace.root import Root
from handrail.workspace.workspace import Workspace


@pytest.fixture(params=["kernel", "walk"])
def resolver(request: pytest.FixtureRequest) -> str:
    """Who resolves paths: the kernel (openat2), or our own walk."""
    if request.param == "kernel" and not works():
        pytest.skip("this kernel has no openat2")
    return request.param


@pytest.fixture
def house(workspace: Path, resolver: str) -> Iterator[Callable[..., Workspace]]:
    """Opens workspaces over the folder `workspace` with more roots; closes them at the end."""
    opened: list[Workspace] = []

    def make(*extra: Root, main: Any = workspace) -> Workspace:
        opened.append(Workspace(str(main), *extra, kernel=resolver == "kernel"))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
