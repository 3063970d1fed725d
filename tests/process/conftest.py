"""Runs launches of both kinds, and checks after each test that nothing of them is left."""

import functools
import itertools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from process_launches import MakeLaunch, Run, confined, own_children, running, sandboxed, supervised

from handrail.process.result import CommandResult
from handrail.process.run import run_launch
from handrail.process.sessions.keeper_client import LogSizes
from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits

_marks = itertools.count(1)


@functools.cache
def _bubblewrap_works() -> bool:
    try:
        command = ["/usr/bin/bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true"]
        return subprocess.run(command, check=False, capture_output=True).returncode == 0
    except OSError:
        return False


@pytest.fixture
def in_namespace() -> MakeLaunch:
    """Launches in bubblewrap."""
    if not _bubblewrap_works():
        pytest.skip("no bubblewrap here")
    return confined


@pytest.fixture(params=["confined", "supervised"])
def make(request: pytest.FixtureRequest) -> MakeLaunch:
    """Launches of one kind, then of the other."""
    return supervised if request.param == "supervised" else request.getfixturevalue("in_namespace")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """Runs a launch; no descriptor, child or file may be left of it, but for what it spilled."""
    before = set(os.listdir("/proc/self/fd")), own_children()
    kept: set[str] = set()

    def go(launch: Launch, **options: Any) -> CommandResult:
        limits = ResourceLimits(**{"seconds": 60.0, **options.pop("limits", {})})
        cancelled = options.pop("cancelled", lambda: False)
        ran = run_launch(launch, limits=limits, cancelled=cancelled, **{"spill_folder": str(tmp_path), **options})
        kept.update(printed.spilled for printed in (ran.output, ran.errors) if printed and printed.spilled)
        return ran

    yield go
    assert (set(os.listdir("/proc/self/fd")), own_children()) == before
    assert {str(path) for path in tmp_path.glob("output-*")} == kept


@pytest.fixture
def mark() -> Iterator[str]:
    """A number of seconds that no other process sleeps; at the end nobody does."""
    text = f"98765.{os.getpid():08}{next(_marks):06}"
    yield text
    assert running(text) == []


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[ProcessSessions]:
    """Process sessions; at the end all are removed, and nothing of them runs."""
    chosen = ProcessSessions(str(tmp_path / "processes"), sizes=LogSizes(head=1 << 12, kept=1 << 20, segment=1 << 17))
    before = set(os.listdir("/proc/self/fd")), own_children()
    yield chosen
    for one in chosen.list_sessions():
        one.remove()
    assert (set(os.listdir("/proc/self/fd")), own_children()) == before
    assert running(str(tmp_path)) == []


@pytest.fixture
def start_in(sessions: ProcessSessions, tmp_path: Path) -> Callable[[int], Callable[..., ProcessSession]]:
    """What starts commands under a keeper, in a tier."""

    def of(tier: int) -> Callable[..., ProcessSession]:
        launch = sandboxed(tier, tmp_path)

        def go(command: str, **options: Any) -> ProcessSession:
            limits = ResourceLimits(**options.pop("limits", {}))
            chosen = {"session_id": "here", "cwd": ".", "idle_seconds": 600.0, **options}
            return sessions.start(launch(command, limits), command=command, limits=limits, **chosen)

        return go

    return of


@pytest.fixture
def start_confined(start_in: Callable[[int], Callable[..., ProcessSession]]) -> Callable[..., ProcessSession]:
    """Starts a command under a keeper, in namespaces."""
    return start_in(2)


@pytest.fixture(params=["tier 2", "tier 1", "tier 0"])
def start(
    request: pytest.FixtureRequest, start_in: Callable[[int], Callable[..., ProcessSession]]
) -> Callable[..., ProcessSession]:
    """The same in one tier after the other."""
    return start_in(int(request.param[-1]))
