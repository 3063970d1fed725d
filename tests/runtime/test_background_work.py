"""What a session tells of its process sessions: exactly once, whoever is there, and without being asked."""

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from handrail import AsyncHandrail, Handrail
from handrail.process.sessions.keeper_client import start_keeper
from handrail.protocol.events import Event, Process
from handrail.runtime.background import emit_once
from handrail.settings import Settings
from handrail.store.state_dir import StateFolder

Make = Callable[..., Handrail]
SECONDS = 60.0


@pytest.fixture
def named(rail: Make) -> Iterator[Make]:
    """Opens the session s, over and over; nothing of it is left at the end."""
    yield lambda **options: rail(mode="full", session="s", **options)
    rail(mode="full", session="s").end_session()


def started(rail: Handrail, command: str) -> str:
    data = rail.exec(command, background=True).data
    assert data is not None
    assert data.session_id
    return data.session_id


def told(rail: Handrail) -> list[tuple[str, str]]:
    return [(event.process, event.state) for event in rail.events() if isinstance(event, Process)]


def wait_until(holds: Callable[[], Any]) -> None:
    until = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.02)


def folder_of(state: Path, process: str) -> Path:
    [session] = StateFolder(str(state)).sessions()
    return Path(session, "processes", process)


def test_a_live_runtime_tells_the_end_without_being_asked(named: Make) -> None:
    one, ended = named(), threading.Event()
    heard: list[Process] = []

    def listen(event: Event) -> None:
        if isinstance(event, Process) and event.state == "ended":
            heard.append(event)
            ended.set()

    one.subscribe(listen)
    process = started(one, "echo done; exit 3")
    assert ended.wait(SECONDS)
    [event] = heard
    assert (event.process, event.exit_code, event.reason, event.size) == (process, 3, None, 5)
    assert event.command == "echo done; exit 3"


def test_two_runtimes_tell_it_once(named: Make, workspace: Path) -> None:
    one, other = named(), named()
    processes = [started(one, f"until test -e go; do sleep 0.01; done; exit {n}") for n in range(4)]
    third = named()  # finds them running, and watches too
    (workspace / "go").touch()
    wait_until(lambda: sum(state == "ended" for _, state in told(other)) >= 4)
    for rail in (one, other, third):
        rail.close()
    assert sorted(told(named())) == sorted((process, state) for process in processes for state in ("started", "ended"))


def test_what_ended_while_nobody_was_there_is_told_when_the_session_is_opened(named: Make, workspace: Path) -> None:
    one = named()
    process = started(one, "until test -e go; do sleep 0.01; done")
    one.close()
    (workspace / "go").touch()
    wait_until((folder_of(workspace.parent / "state", process) / "end.json").exists)
    assert told(named()) == [(process, "started"), (process, "ended")]
    assert told(named()) == [(process, "started"), (process, "ended")]


@pytest.mark.parametrize("written", [False, True], ids=["before it was written down", "after it was written down"])
def test_who_is_killed_while_telling_is_made_up_for_exactly(named: Make, tmp_path: Path, written: bool) -> None:
    one = named()
    process = started(one, "true")
    wait_until(lambda: told(one) == [(process, "started"), (process, "ended")])
    one.close()
    claim = folder_of(tmp_path / "state", process) / "told-ended"
    claim.write_bytes(b"")  # as somebody leaves it who was killed in between
    if not written:
        import sqlite3

        [session] = StateFolder(str(tmp_path / "state")).sessions()
        with sqlite3.connect(Path(session, "journal.db")) as journal:
            journal.execute("DELETE FROM event WHERE kind = 'process' AND data LIKE '%ended%'")
        journal.close()
    assert told(named()) == [(process, "started"), (process, "ended")]
    assert claim.read_bytes() == b"told\n"


def test_who_is_killed_while_handing_over_leaves_what_is_told_to_its_end(named: Make) -> None:
    child = os.fork()
    if not child:
        _run_until(named(), emit_once, yield_ms=0)
    os.waitpid(child, 0)
    [process] = named().processes()
    named().process("remove", process.id)
    assert told(named()) == [(process.id, state) for state in ("started", "ended", "removed")]


def test_who_is_killed_while_a_call_only_begins_to_wait_leaves_nothing_running(named: Make) -> None:
    child = os.fork()
    if not child:
        _run_until(named(), start_keeper, yield_ms=600_000)
    os.waitpid(child, 0)
    assert named().processes() == ()
    assert told(named()) == []


def _run_until(rail: Handrail, moment: Callable[..., object], *, yield_ms: int) -> NoReturn:
    """Starts a command in a child, which is gone as soon as the function returns."""
    code = moment.__code__
    sys.setprofile(lambda frame, event, _: os._exit(9) if event == "return" and frame.f_code is code else None)
    rail.exec("sleep 1000", yield_ms=yield_ms)
    os._exit(0)


def test_who_is_killed_while_removing_leaves_nothing_and_it_is_told_once(named: Make) -> None:
    first = named()
    processes = [started(first, "true") for _ in range(12)]  # more than there are files in the folder of one
    wait_until(lambda: len(told(first)) == 2 * len(processes))
    first.close()
    for place, process in enumerate(processes):
        child = os.fork()
        if not child:
            _remove_and_die(named(), process, place)
        os.waitpid(child, 0)
    second = named()
    assert second.processes() == ()
    assert sorted(told(second)) == sorted(
        (one, state) for one in processes for state in ("started", "ended", "removed")
    )


def _remove_and_die(rail: Handrail, process: str, place: int) -> NoReturn:
    """Removes it in a child, which is gone at once when a file is about to be unlinked for the so-manieth time."""
    left = [place]

    def count_down(event: str, args: tuple[Any, ...]) -> None:
        if event == "os.remove" and (process in str(args[0]) or args[1] >= 0):
            if not left[0]:
                os._exit(9)
            left[0] -= 1

    try:
        sys.addaudithook(count_down)
        rail.process("remove", process)
    finally:
        os._exit(0)


def test_a_listener_may_ask_about_what_it_is_told(named: Make) -> None:
    one, heard = named(), threading.Event()
    polled: list[Any] = []

    def listen(event: Event) -> None:
        if isinstance(event, Process) and event.state == "ended":
            polled.append(one.process("poll", event.process))
            heard.set()

    one.subscribe(listen)
    started(one, "echo bye")
    assert heard.wait(SECONDS)
    assert polled[0].data.output == "bye\n"
    assert [state for _, state in told(one)] == ["started", "ended"]


def test_a_named_session_keeps_what_goes_on_and_a_nameless_one_does_not(rail: Make, named: Make) -> None:
    one, nameless = named(), rail(mode="full")
    process = started(one, "cat")
    other = started(nameless, "cat")
    one.close()
    nameless.close()
    assert [record.state for record in named().processes()] == ["running"]
    again = rail(session=nameless.session_id)
    assert again.processes() == ()
    assert told(again) == [(other, "started"), (other, "ended"), (other, "removed")]
    assert told(named())[0] == (process, "started")


def test_what_cannot_be_told_at_the_end_keeps_nothing_else_from_ending(named: Make, tmp_path: Path) -> None:
    one = named()
    processes = [started(one, "sleep 1000") for _ in range(3)]
    full = Path(folder_of(tmp_path / "state", processes[0]), "told-ended")
    full.mkdir()  # in the place of a file that cannot be written
    one.end_session()
    assert [record.id for record in named().processes()] == processes[:1]
    full.rmdir()
    again = named()
    assert (again.processes()[0].state, again.processes()[0].reason) == ("ended", "session")


def test_the_end_of_a_session_says_why(named: Make) -> None:
    one = named()
    process = started(one, "cat")
    one.end_session()
    again = named()
    ended = [event for event in again.events() if isinstance(event, Process) and event.state == "ended"]
    assert [(event.process, event.reason) for event in ended] == [(process, "session")]


def test_a_session_that_started_nothing_watches_nothing(rail: Make) -> None:
    before = set(threading.enumerate())
    one = rail()
    one.ls(".")
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_closing_ends_the_watching(named: Make) -> None:
    before = set(threading.enumerate())
    one = named()
    started(one, "cat")
    assert {thread.name for thread in threading.enumerate() if thread not in before} == {"handrail-processes"}
    one.close()
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_a_forked_child_leaves_its_parents_processes_alone(named: Make) -> None:
    one = named()
    process = started(one, "cat")
    child = os.fork()
    if child == 0:
        try:
            one.end_session()
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert one.process("write", process, data="still here\n").ok
    wait_until(lambda: one.process("log", process).content == "still here\n")
    assert one.process("kill", process).ok
    assert told(one) == [(process, "started"), (process, "ended")]


def test_cancelling_the_session_leaves_what_goes_on(named: Make) -> None:
    one = named()
    started(one, "cat")
    one.cancel()
    assert [record.state for record in one.processes()] == ["running"]


async def _work(rail: AsyncHandrail) -> Any:
    data = (await rail.exec("cat", background=True)).data
    assert data is not None
    await rail.process("write", data.session_id, data="x\n", eof=True)
    return [record.id for record in await rail.processes()] == [data.session_id]


def test_the_async_face_has_them_too(workspace: Path, tmp_path: Path) -> None:
    import asyncio

    async def run() -> bool:
        rail = AsyncHandrail(workspace, mode="full", state_dir=tmp_path / "state", settings=Settings(), session="s")
        found = await _work(rail)
        await rail.end_session()
        return found

    assert asyncio.run(run())


def test_what_is_removed_in_the_midst_of_telling_stops_nobody(named: Make, tmp_path: Path) -> None:
    one = named()
    process = started(one, "true")
    wait_until(lambda: told(one) == [(process, "started"), (process, "ended")])
    one.close()
    folder = folder_of(tmp_path / "state", process)
    (folder / "told-ended").unlink()
    os.rename(folder, tmp_path / "aside")
    os.mkdir(folder)  # as somebody leaves it who is just removing it
    assert named().processes() == ()
