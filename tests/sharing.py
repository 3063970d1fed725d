"""Several runs of pytest side by side share the tests: each file is run by whoever comes to it first.

They are whole processes of their own, as a single run is: no thread and no descriptor of a pool is in them, so tests
may fork, count what is open and send signals to themselves. A run takes part when HANDRAIL_SHARE names a folder that
all of them have; scripts/test makes it.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from itertools import chain, filterfalse, pairwise
from pathlib import Path

import pytest

FOLDER = "HANDRAIL_SHARE"
UNTIL = "HANDRAIL_UNTIL"
"""The second of the epoch from which on a run starts no more tests; for `scripts/test --quick`."""
STOP = "stop"
"""A file in the folder: whoever sees it takes no more tests, and says what is in it."""


def alone(item: pytest.Item) -> bool:
    """Whether no other test may run at the same time."""
    return item.get_closest_marker("alone") is not None


class Share:
    """The part of one run."""

    def __init__(self, folder: Path, until: float = float("inf")) -> None:
        self._folder = folder
        self._until = until
        self._left_out = 0
        self._taken: dict[str, bool] = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """What has to be alone comes first."""
        items.sort(key=alone, reverse=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Runs what this run takes, and says nothing of the rest."""
        if session.testsfailed or session.config.option.collectonly:
            return None
        with self._one_at_a_time():
            self._run_all(list(filter(self._takes, filter(alone, session.items))))
        self._run_all(filter(self._takes, filterfalse(alone, session.items)))
        return True

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Says how many tests the time did not suffice for."""
        if self._left_out:
            terminalreporter.write_line(f"time is up: {self._left_out} tests were not run; scripts/test runs all")

    @contextlib.contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Every run passes through here before its other tests, so nothing else runs while one is inside."""
        # Of a process, and not of a descriptor: what a test forks does not hold it.
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.lockf(lock, fcntl.LOCK_EX)
        yield
        os.close(lock)

    def _run_all(self, items: Iterable[pytest.Item]) -> None:
        for item, following in pairwise(chain(items, [None])):
            assert item is not None
            if time.time() < self._until:
                self._run(item, following)
            else:
                self._left_out += 1

    def _run(self, item: pytest.Item, following: pytest.Item | None) -> None:
        if (self._folder / STOP).exists():
            raise item.session.Interrupted((self._folder / STOP).read_text())
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        if item.session.shouldfail:
            raise item.session.Failed(item.session.shouldfail)
        if item.session.shouldstop:
            raise item.session.Interrupted(item.session.shouldstop)

    def _takes(self, item: pytest.Item) -> bool:
        file = item.nodeid.partition("::")[0]
        if file not in self._taken:
            self._taken[file] = self._is_first(file)
        return self._taken[file]

    def _is_first(self, file: str) -> bool:
        try:
            os.mkdir(self._folder / file.replace("/", "%"))
        except FileExistsError:
            return False
        return True
