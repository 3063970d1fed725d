"""Workspaces over real folders, with either resolver, and a process that swaps names in them."""

import ctypes
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.files import has_openat2
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace


@pytest.fixture(params=["kernel", "walk"])
def resolver(request: pytest.FixtureRequest) -> str:
    """Who resolves paths: the kernel (openat2), or our own walk."""
    if request.param == "kernel" and not has_openat2():
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


# Does what it is told, over and over, until its input ends.
FLIPPER = """
import ctypes, os, sys, threading
rename = ctypes.CDLL(None).renameat2
here = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
over = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
flips = turns = 0
def swap(one, other):
    global flips
    flips += rename(here, one, here, other, 2) == 0
while not over.is_set():
    turns += 1
    if turns == 200:  # it is really running, however busy the machine is
        print("ready", flush=True)
"""


@pytest.fixture
def flipping(workspace: Path) -> Callable[[str], AbstractContextManager[None]]:
    """Runs statements in another process as long as a block lasts; `swap` in them exchanges two names."""
    if not hasattr(ctypes.CDLL(None), "renameat2"):
        pytest.skip("swapping names takes renameat2")

    @contextmanager
    def running(statements: str) -> Iterator[None]:
        command = [sys.executable, "-c", f"{FLIPPER}{textwrap.indent(statements, '    ')}\nprint(flips)"]
        with subprocess.Popen(
            command, cwd=workspace, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as flipper:
            assert flipper.stdout is not None
            assert flipper.stdout.readline() == "ready\n"
            try:
                yield
            finally:
                flips, _ = flipper.communicate(timeout=60)
        assert int(flips) > 100, "the other process did nothing"

    return running
