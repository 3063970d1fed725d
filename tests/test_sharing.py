"""Several runs that share the tests: each is run once, by whichever run; what has to be alone is."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sharing import FOLDER, STOP, UNTIL

TESTS = Path(__file__).parent
CONFTEST = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, {str(TESTS)!r})
from sharing import FOLDER, UNTIL, Share

def pytest_configure(config):
    config.pluginmanager.register(Share(Path(os.environ.pop(FOLDER)), float(os.environ.pop(UNTIL, "inf"))))
"""
SAYS = """
import os, pytest
@pytest.mark.parametrize("number", range(3))
def test_says(number):
    with open("said", "a") as said:
        said.write(f"{os.getpid()} {__name__}\\n")
"""
MEETS = """
import os
def test_waits_until_the_other_run_has_a_file_too():
    with open("meeting", "ab" if {first} else "rb") as meeting:
        assert {first} or meeting.read() == b""
def test_is_not_the_last_of_its_file():
    pass  # at the last, the next file is taken already
"""
ALONE = """
import os, pytest
@pytest.mark.alone
def test_{name}():
    os.mkdir("alone")
    os.rmdir("alone")
    with open("said", "a") as said:
        said.write(f"{{os.getpid()}} {{__name__}}\\n")
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder for tests, and one that runs of it share."""
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "share").mkdir()
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = alone\n")
    return folder


@pytest.fixture
def start(project: Path, tmp_path: Path) -> Iterator[Start]:
    """Starts runs that take part."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, FOLDER: str(tmp_path / "share"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    with ExitStack() as started:

        def go(**more: str) -> subprocess.Popen[str]:
            run = subprocess.Popen(words, cwd=project, env=environment | more, text=True, stdout=subprocess.PIPE)
            started.enter_context(run)
            started.callback(run.kill)
            return run

        yield go


def passed(run: subprocess.Popen[str]) -> int:
    """How many tests a run says that it ran, once it is over."""
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 0, out
    found = re.search(r"(\d+) passed", out)
    return int(found[1]) if found else 0


def test_each_file_is_run_once_by_one_of_them(project: Path, start: Start) -> None:
    os.mkfifo(project / "meeting")  # whoever opens it waits for the other
    for number, first in enumerate((True, False)):
        (project / f"test_{number}.py").write_text(MEETS.format(first=first))
    for number in range(2, 9):
        (project / f"test_{number}.py").write_text(SAYS)
    counts = [passed(run) for run in [start(), start()]]
    assert (sum(counts), min(counts) > 0) == (25, True)
    said = [line.split() for line in (project / "said").read_text().splitlines()]
    assert sorted(name for _, name in said) == sorted(f"test_{number}" for number in range(2, 9) for _ in range(3))
    assert len({(run, name) for run, name in said}) == 7


def test_what_has_to_be_alone_comes_before_the_others(project: Path, start: Start) -> None:
    for name in ("a", "b"):
        (project / f"test_{name}.py").write_text(ALONE.format(name=name))
    (project / "test_last.py").write_text(SAYS)
    assert sum(passed(run) for run in [start(), start()]) == 5
    names = [line.split()[1] for line in (project / "said").read_text().splitlines()]
    assert names == ["test_a", "test_b"] + ["test_last"] * 3


def test_who_is_told_to_stop_takes_no_more(project: Path, start: Start, tmp_path: Path) -> None:
    (project / "test_one.py").write_text(SAYS)
    (tmp_path / "share" / STOP).write_text("that is why")
    run = start()
    out, _ = run.communicate(timeout=60)
    assert (run.returncode, "Interrupted: that is why" in out) == (2, True)
    assert not (project / "said").exists()


def test_a_run_whose_time_is_up_runs_no_more_tests_and_says_how_many_are_missing(project: Path, start: Start) -> None:
    (project / "test_one.py").write_text(SAYS)
    out, _ = (run := start(**{UNTIL: "0"})).communicate(timeout=60)
    assert (run.returncode, "time is up: 3 tests were not run" in out) == (0, True)
    assert not (project / "said").exists()


def test_folders_that_are_shared_are_left_and_entered_in_order(project: Path, start: Start) -> None:
    for folder in ("one", "two", "three"):
        (project / folder).mkdir()
        for number in range(4):
            (project / folder / f"test_{folder}_{number}.py").write_text(SAYS)
    assert sum(passed(run) for run in [start(), start()]) == 36


def test_one_run_runs_them_all(project: Path, start: Start) -> None:
    (project / "test_one.py").write_text(SAYS)
    (project / "test_two.py").write_text(ALONE.format(name="two"))
    assert passed(start()) == 4
    assert passed(start()) == 0
