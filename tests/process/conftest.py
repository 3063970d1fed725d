"""Runs launches of both kinds, and checks after each test that nothing of them is left."""

import functools
import itertools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from process_launches import MakeLaunch, Run, confined, own_children, running, supervised

from handrail.process.ran import Ran
from handrail.process.running import run_launch
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import Limits

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

    def go(launch: Launch, **options: Any) -> Ran:
        limits = Limits(**{"seconds": 60.0, **options.pop("limits", {})})
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
    text = f"98765.{os.getpid()}{next(_marks)}"
    yield text
    assert running(text) == []
