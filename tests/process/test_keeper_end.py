"""Kept commands end: when they are stopped, over a limit, idle, or when their keeper does."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import FrameType

import msgspec
import pytest
from process_launches import comes_true, launched, running

from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.process.sessions.store import KeeperRecord, is_alive, read_record
from handrail.process.tree import kill_orphans
from handrail.protocol.errors import ToolError
from handrail.sandbox.profile import ResourceLimits
from in_time import cut_short

Start = Callable[..., ProcessSession]
HEARD = ("call", "_read_report")


def known(one: ProcessSession) -> KeeperRecord:
    found = read_record(one.folder)
    assert found is not None
    return found


def prints(one: ProcessSession, text: bytes) -> bool:
    return comes_true(lambda: text in b"".join(one.log.kept()), 60.0)


def test_every_process_of_the_tree_is_asked_to_end(start: Start) -> None:
    child = "trap 'sleep 0.2; echo child says bye; exit' TERM; echo ready; while :; do sleep 0.05; done"
    one = start(f'bash -c "{child}" & wait; echo shell goes on')
    assert prints(one, b"ready")
    one.stop()
    assert prints(one, b"child says bye")
    assert one.record().reason == "stopped"


def test_who_does_not_want_to_end_is_killed(
    start_in: Callable[[int], Start], sessions: ProcessSessions, mark: str
) -> None:
    """In every tier, all at once: each is given its seconds to end by itself."""
    command = f"trap '' TERM INT HUP; (setsid sleep {mark} &); echo ready; while :; do sleep 1000; done"
    made = [start_in(tier)(command) for tier in (2, 1, 0)]
    assert all(prints(one, b"ready") for one in made)
    sessions.end_all("session")
    assert [(one.record().state, one.record().reason) for one in made] == [("ended", "session")] * 3
    assert running(mark) == []


def test_a_keeper_that_is_killed_takes_all_with_it(start: Start, mark: str) -> None:
    one = start(f"(setsid sleep {mark} &); echo ready; sleep {mark}")
    assert prints(one, b"ready")
    os.kill(known(one).keeper.number, signal.SIGKILL)
    assert one.wait(60.0)
    assert one.record().state == "lost"
    assert (one.record().ended, one.record().exit_code, one.record().reason) == (None, None, None)
    assert b"".join(one.log.kept()) == b"ready\n"
    one.stop()
    assert running(mark) == []
    assert one.record().state == "lost"


def test_a_keeper_that_hangs_is_killed_with_what_it_keeps(start_confined: Start, mark: str) -> None:
    one = start_confined(f"echo ready; sleep {mark}")
    assert prints(one, b"ready")
    os.kill(known(one).keeper.number, signal.SIGSTOP)
    assert one.record().state == "running"
    one.stop()
    assert running(mark) == []
    assert (one.record().state, one.record().reason) == ("ended", "stopped")


def test_a_machine_that_was_started_anew_has_lost_it(start_confined: Start) -> None:
    one = start_confined("sleep 1000")
    one.stop()
    Path(one.folder, "end.json").unlink()
    # Its numbers are those of a process that is not its own.
    found = known(one)
    us = msgspec.structs.replace(found, boot="another", keeper=found.keeper._replace(number=os.getpid()))
    Path(one.folder, "record.json").write_bytes(msgspec.json.encode(us))
    assert one.record().state == "lost"
    one.stop()
    one.remove()
    assert not Path(one.folder).exists()


def test_a_number_that_is_another_process_now_is_left_alone(start_confined: Start) -> None:
    one = start_confined("sleep 1000")
    one.stop()
    Path(one.folder, "end.json").unlink()
    other = subprocess.Popen(["sleep", "1000"])
    found = known(one)
    named = type(found.keeper)(other.pid, found.keeper.started)
    Path(one.folder, "record.json").write_bytes(msgspec.json.encode(msgspec.structs.replace(found, keeper=named)))
    one.remove()
    assert other.poll() is None
    other.kill()
    other.wait()


def test_nobody_asks_for_it_and_it_prints_nothing(start_confined: Start) -> None:
    one = start_confined("sleep 1000", idle_seconds=0.3)
    assert one.wait(60.0)
    assert one.record().reason == "idle"


def test_who_reads_the_log_keeps_it_alive(start_confined: Start) -> None:
    def read_for(milliseconds: int) -> ProcessSession:
        seconds = milliseconds / 1000
        one = start_confined(f"echo x; sleep {2 * seconds}; echo y", idle_seconds=seconds)
        assert comes_true(lambda: bool(one.log.read_from(0, 10)) and not one.running)
        return one

    one, _ = cut_short(read_for, 500, lambda one: one.record().reason is None)  # who reads may come too late
    assert one.record().reason is None
    assert one.record().exit_code == 0


def hear_nothing(frame: FrameType, event: str, _: object) -> None:
    """Closes the ear before there is a keeper that could speak, however fast; is gone when it should listen."""
    if (event, frame.f_code.co_name) == ("call", "_run_keeper") and frame.f_back is not None:
        os.close(frame.f_back.f_locals["reading"])
    if (event, frame.f_code.co_name) == HEARD:
        os._exit(9)


def test_whose_starter_dies_before_it_heard_of_it_was_never_there(start: Start, tmp_path: Path, mark: str) -> None:
    child = os.fork()
    if not child:
        sys.setprofile(hear_nothing)
        start(f"sleep {mark}")
        os._exit(0)
    os.waitpid(child, 0)
    assert comes_true(lambda: not any((tmp_path / "processes").iterdir()), 60.0)
    assert running(mark) == []


def test_a_keeper_that_is_killed_while_it_starts_leaves_nothing(
    start_confined: Start, sessions: ProcessSessions, tmp_path: Path, mark: str
) -> None:
    def kill(frame: FrameType, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == HEARD:
            sys.setprofile(None)
            [folder] = (tmp_path / "processes").iterdir()
            for process in keepers_of(folder):
                os.kill(process, signal.SIGKILL)

    sys.setprofile(kill)
    with suppress(ToolError):  # unless it was faster than we
        start_confined(f"sleep {mark}")
    assert comes_true(lambda: all(one.record().state == "lost" for one in sessions.list_sessions()))
    assert comes_true(lambda: running(mark) == [])


def keepers_of(folder: Path) -> list[int]:
    """Those that have it open, but for this process."""
    numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [number for number in numbers if number != os.getpid() and str(folder) in opened_by(number)]


def opened_by(process: int) -> set[str]:
    """What it has open; a file that it closes meanwhile hides no other."""
    found: set[str] = set()
    with suppress(OSError):
        for name in os.listdir(f"/proc/{process}/fd"):
            with suppress(OSError):
                found.add(os.readlink(f"/proc/{process}/fd/{name}"))
    return found


def test_a_child_that_is_forked_during_a_start_holds_nothing_of_it(start_confined: Start) -> None:
    children: list[int] = []

    def fork(frame: FrameType, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == HEARD:
            sys.setprofile(None)
            children.append(os.fork())
            if not children[0]:
                signal.pause()

    sys.setprofile(fork)
    one = start_confined("sleep 1000")
    try:
        os.kill(known(one).keeper.number, signal.SIGKILL)
        assert comes_true(lambda: one.record().state == "lost", 60.0)
    finally:
        os.kill(children[0], signal.SIGKILL)
        os.waitpid(children[0], 0)


def test_what_is_stopped_has_ended_whoever_holds_its_lock(start_confined: Start) -> None:
    one = start_confined("sleep 1000")
    os.kill(known(one).keeper.number, signal.SIGSTOP)
    looking = os.open(one.folder, os.O_RDONLY | os.O_DIRECTORY)
    holder = Thread(target=fcntl.flock, args=(looking, fcntl.LOCK_SH))
    holder.start()  # it has the lock as soon as the keeper is gone
    one.stop()
    holder.join(60.0)
    os.close(looking)
    assert (one.record().state, one.record().reason) == ("ended", "stopped")


def test_whose_folder_is_removed_by_somebody_else_ends(start: Start, mark: str) -> None:
    one = start(f"(setsid sleep {mark} &); while echo ready; do sleep 0.1; done")
    assert prints(one, b"ready")
    keeper = known(one).keeper
    shutil.rmtree(one.folder, ignore_errors=True)
    assert comes_true(lambda: not is_alive(keeper), 60.0)
    assert running(mark) == []
    shutil.rmtree(one.folder, ignore_errors=True)


def test_memory_is_limited(start: Start) -> None:
    one = start("head -c 300M /dev/zero | tail", limits={"memory": 64 << 20})
    assert one.wait(60.0)
    assert one.record().reason == "memory"


def test_processes_are_limited(start: Start) -> None:
    one = start("for i in $(seq 100); do sleep 1000 & done; wait", limits={"processes": 30})
    assert one.wait(60.0)
    assert one.record().reason == "processes"


def test_its_ports_are_seen(start: Start) -> None:
    python = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin") or sys.executable
    program = "import socket, time; s = socket.create_server(('127.0.0.1', 0)); print(s.getsockname()[1], flush=True)"
    one = start(f'{python} -c "{program}; time.sleep(1000)" || echo refused')
    assert comes_true(lambda: one.record().last_line.isdigit() or one.record().last_line == "refused", 60.0)
    said = one.record().last_line
    assert one.record().ports == (() if said == "refused" else (int(said),))


def test_what_keepers_keep_is_not_taken_for_abandoned(start_confined: Start) -> None:
    one = start_confined("echo ready; cat")
    assert prints(one, b"ready")
    kill_orphans()  # of another run there may be something to end
    one.write(b"", eof=True)
    assert one.wait(60.0)
    assert one.record().exit_code == 0


def test_a_program_that_is_not_there_is_told(sessions: ProcessSessions) -> None:
    launch = launched(lambda status, lifeline: ("/nowhere/bwrap", "--"), own_processes=True)
    with pytest.raises(ToolError) as caught:
        sessions.start(launch, session_id="s", command="x", cwd=".", limits=ResourceLimits(), idle_seconds=9)
    assert caught.value.code == "SANDBOX_UNAVAILABLE"
    assert sessions.list_sessions() == []


def test_a_sandbox_that_cannot_be_made_is_told(sessions: ProcessSessions) -> None:
    launch = launched(
        lambda status, lifeline: (
            "/usr/bin/bwrap",
            "--ro-bind",
            "/nowhere",
            "/x",
            "--json-status-fd",
            str(status),
            "true",
        ),
        own_processes=True,
    )
    with pytest.raises(ToolError) as caught:
        sessions.start(launch, session_id="s", command="x", cwd=".", limits=ResourceLimits(), idle_seconds=9)
    assert caught.value.code == "SANDBOX_UNAVAILABLE"
    assert sessions.list_sessions() == []


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    launch = launched(lambda status, lifeline: ("/bin/true",), own_processes=False)
    with pytest.raises(ToolError) as caught:
        ProcessSessions(str(tmp_path / "file" / "processes")).start(
            launch, session_id="s", command="x", cwd=".", limits=ResourceLimits(), idle_seconds=9
        )
    assert caught.value.code == "IO_ERROR"
