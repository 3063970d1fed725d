"""Kept commands, many and large: whatever is killed, they are found again with their log, and end with their tree."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from keeper_runtime import launch, launcher, sessions_in
from test_exec_trees import Stage
from tests.escape.starting import ordinary_number, python_for

from handrail.process.sessions.keeper_client import LogSizes
from handrail.process.sessions.sessions import ProcessSession
from handrail.process.sessions.store import read_record
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import ResourceLimits
from leftovers import MARK, marked

RUNTIME = Path(__file__).with_name("keeper_runtime.py")
REPOSITORY = Path(__file__).parents[2]
GONE_WITHIN = 30.0
MOST_MEMORY_KB = 40 << 10
Start = Callable[..., ProcessSession]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can reach; at the end no command of its is left."""
    place = Path(tempfile.mkdtemp(prefix="handrail-"))
    place.chmod(0o755)
    yield place
    for one in sessions_in(place).list_sessions():
        one.remove()
    assert marked(str(place)) == []
    shutil.rmtree(place)


@pytest.fixture
def start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    monkeypatch.setenv(MARK, str(folder))
    sandbox = launcher(folder, 2, (MARK,))

    def go(command: str, sizes: LogSizes | None = None) -> ProcessSession:
        made = launch(sandbox, folder / "workspace", command)
        options = {
            "session_id": "cli",
            "command": command,
            "cwd": ".",
            "limits": ResourceLimits(),
            "idle_seconds": 600.0,
        }
        return sessions_in(folder, sizes).start(made, **options)

    return go


def keeper_of(one: ProcessSession) -> int:
    known = read_record(one.folder)
    assert known is not None
    return known.keeper.number


def test_many_at_once_are_listed_written_to_and_stopped(start: Start, folder: Path, deep: bool) -> None:
    made = [start(f"read word; echo {number} $word; sleep 1000") for number in range(64 if deep else 16)]
    assert [one.id for one in sessions_in(folder).list_sessions()] == [one.id for one in made]
    for one in made:
        one.write(b"said\n", eof=False)
    for number, one in enumerate(made):
        while not one.log.size:
            assert not one.wait(0.02)
        assert one.record().last_line == f"{number} said"
        assert memory_of(one) < MOST_MEMORY_KB
    sessions_in(folder).end_all("session")
    assert {one.record().reason for one in made} == {"session"}


def memory_of(one: ProcessSession) -> int:
    status = Path(f"/proc/{keeper_of(one)}/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


def test_a_server_that_prints_much_is_kept_in_bounded_memory_and_disk(start: Start, deep: bool) -> None:
    """A gigabyte in a deep run; every day as much, in the same proportion, as keeps the day short."""
    part = 1 if deep else 64
    sizes, size = LogSizes(kept=(64 << 20) // part, segment=(8 << 20) // part), (1 << 30) // part
    one = start(f"seq -w 1 999999999 | head -c {size}; read word; echo $word", sizes)
    while one.log.size < size:
        assert not one.wait(0.05)
    assert memory_of(one) < MOST_MEMORY_KB
    stored = sum(path.stat().st_size for path in Path(one.folder).glob("log-*"))
    assert stored <= sizes.head + sizes.kept + sizes.segment
    lines = iter(range(1, 10**9))
    kept = b"".join(one.log.kept())
    assert kept[: sizes.head] == b"".join(b"%09d\n" % next(lines) for _ in range(sizes.head // 10 + 1))[: sizes.head]
    first = (size - sizes.kept) // 10 + 1
    tail = b"".join(b"%09d\n" % number for number in range(first, size // 10 + 2))
    assert kept.endswith(tail[(size - sizes.kept) % 10 : (size - sizes.kept) % 10 + sizes.kept])
    assert one.record().dropped == size - len(kept)
    one.write(b"last\n", eof=False)
    assert one.wait(60.0)
    assert one.record().last_line.endswith("last")


@pytest.mark.parametrize("user", ["as it is", "ordinary"])
def test_who_comes_after_a_killed_runtime_finds_everything(folder: Path, user: str) -> None:
    number = ordinary_number() if user == "ordinary" and os.geteuid() == 0 else None
    if user == "ordinary" and (number is None or not python_for(number)):
        pytest.skip("this user is one, or there is no Python for one")
    if number is not None:
        os.chown(folder, number, number)
    commands = [f"echo hello {place}; read word; echo {place} $word" for place in range(3)]
    runtime = subprocess.Popen(
        as_user(number, "start", str(folder), "2", *commands),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        **who(number),
    )
    assert runtime.stdin is not None
    assert runtime.stdout is not None
    ids = json.loads(runtime.stdout.readline())
    os.kill(runtime.pid, signal.SIGKILL)
    runtime.wait()
    runtime.stdin.close()
    runtime.stdout.close()
    done = subprocess.run(
        as_user(number, "attach", str(folder), "2"), capture_output=True, check=True, timeout=120, **who(number)
    )
    expected = [[name, "ended", 0, f"{place} words"] for place, name in enumerate(ids)]
    assert json.loads(done.stdout) == expected
    assert os.listdir(folder / "processes") == []


def as_user(number: int | None, *arguments: str) -> list[str]:
    return [python_for(number), str(RUNTIME), *arguments]


def who(number: int | None) -> dict[str, object]:
    folders = [str(REPOSITORY), str(REPOSITORY / "src"), *(path for path in sys.path if "site-packages" in path)]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(folders), "PYTHONDONTWRITEBYTECODE": "1"}
    identity = {} if number is None else {"user": number, "group": number, "extra_groups": []}
    return {"env": environment, "cwd": "/", **identity}


def test_keepers_that_are_killed_leave_nothing_but_the_log(start: Start, folder: Path) -> None:
    made = [start("(setsid sleep 1000 &); echo printed; sleep 1000") for _ in range(4)]
    for one in made:
        while not one.log.size:
            assert not one.wait(0.02)
        os.kill(keeper_of(one), signal.SIGKILL)
    for one in made:
        assert one.wait(60.0)
        one.stop()
        assert one.record().state == "lost"
        assert b"".join(one.log.kept()) == b"printed\n"
        with pytest.raises(ToolError) as caught:
            one.write(b"x", eof=False)
        assert caught.value.code == "PROCESS_ENDED"
    assert marked(str(folder)) == []


def test_nothing_is_left_of_trees_that_are_stopped(folder: Path, deep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of tier 2 and of tier 1, together: who does not want to end takes its time."""
    sessions = sessions_in(folder)
    for first in range(300, 500 if deep else 304, 4):
        stages = [Stage(folder, seed, 2 - seed % 2, leaves=False) for seed in range(first, first + 4)]
        with contextlib.ExitStack() as watching:
            watches = [watching.enter_context(stage.watch()) for stage in stages]
            for stage, watch in zip(stages, watches, strict=True):
                monkeypatch.setenv(MARK, stage.mark)
                made = launch(launcher(folder, stage.tier, (MARK,)), stage.workspace, stage.command)
                sessions.start(
                    made, session_id="cli", command="x", cwd=".", limits=ResourceLimits(), idle_seconds=600.0
                )
                assert watch.wait_ready(60), watch.trouble
            sessions.end_all("session")
            assert {one.record().state for one in sessions.list_sessions()} == {"ended"}
            assert [watch.left_after(GONE_WITHIN) for watch in watches] == [[], [], [], []], first
