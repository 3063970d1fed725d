"""A keeper's socket, and the keeper as a process: whoever speaks to it, it goes on; whatever ends, it stays."""

import json
import os
import socket
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from process_launches import comes_true, sandboxed

from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.process.sessions.store import read_record
from handrail.sandbox.profile import ResourceLimits

Start = Callable[..., ProcessSession]
LIMIT = 60.0


@pytest.fixture
def one(start_confined: Start) -> ProcessSession:
    return start_confined("cat")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connected(one: ProcessSession, opened: ExitStack) -> socket.socket:
    connection = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    connection.settimeout(LIMIT)
    connection.connect(os.path.join(one.folder, "socket"))
    return connection


def answers(one: ProcessSession, text: bytes) -> bool:
    one.write(text + b"\n", eof=False)
    return comes_true(lambda: text in b"".join(one.log.kept()), LIMIT)


def test_nobody_else_can_speak_to_it(one: ProcessSession) -> None:
    assert stat.S_IMODE(os.stat(one.folder).st_mode) == 0o700
    for name in os.listdir(one.folder):
        assert stat.S_IMODE(os.lstat(os.path.join(one.folder, name)).st_mode) == 0o600, name


@pytest.mark.parametrize(
    ("request_line", "said"),
    [
        (b"{}", "request"),
        (b"not json", "request"),
        (b"[1]", "request"),
        (b'{"v": 99, "do": "stop"}', "version"),
        (b'{"v": 1, "do": "dance"}', "request"),
        (b'{"v": 1, "do": "write", "size": "many", "eof": false}', "request"),
    ],
)
def test_nonsense_is_answered_and_does_no_harm(
    one: ProcessSession, opened: ExitStack, request_line: bytes, said: str
) -> None:
    connection = connected(one, opened)
    connection.sendall(request_line + b"\n")
    assert json.loads(connection.recv(4096))["error"] == said
    assert answers(one, b"goes on")


def test_a_request_without_an_end_is_not_waited_for(one: ProcessSession, opened: ExitStack) -> None:
    connection = connected(one, opened)
    connection.sendall(b"x" * 4096)
    assert connection.recv(1) == b""
    assert answers(one, b"goes on")


def test_who_says_nothing_or_half_keeps_nobody_waiting(one: ProcessSession, opened: ExitStack) -> None:
    silent = [connected(one, opened) for _ in range(20)]
    for connection in silent[:10]:
        connection.sendall(b'{"v": 1, "do": "wri')
    assert answers(one, b"goes on")


def test_a_writer_that_goes_away_gives_way_to_the_next(one: ProcessSession, opened: ExitStack) -> None:
    connection = connected(one, opened)
    connection.sendall(b'{"v": 1, "do": "write", "size": 1000, "eof": false}\nfirst\n')
    assert comes_true(lambda: one.log.size > 0, LIMIT)
    connection.close()
    assert answers(one, b"second")


def test_it_ends_with_whoever_waits_for_it_unless_they_have_let_go(start_confined: Start) -> None:
    kept, left = start_confined("cat"), start_confined("cat")
    with kept.bind_lifetime() as let_go:
        let_go()
    with left.bind_lifetime():
        assert answers(left, b"still here")
    assert left.wait(LIMIT)
    assert left.record().reason == "session"
    assert answers(kept, b"goes on")
    with left.bind_lifetime() as let_go:  # it has ended: there is nothing to wait for
        let_go()


def test_a_folder_with_a_long_path_will_do(tmp_path: Path) -> None:
    sessions = ProcessSessions(str(tmp_path / ("long" * 40) / ("path" * 40)))
    launch = sandboxed(2, tmp_path)("cat", ResourceLimits())
    one = sessions.start(launch, session_id="s", command="cat", cwd=".", limits=ResourceLimits(), idle_seconds=600.0)
    assert answers(one, b"words")
    one.remove()


def test_a_keeper_belongs_to_nobody(one: ProcessSession) -> None:
    known = read_record(one.folder)
    assert known is not None
    keeper = f"/proc/{known.keeper.number}"
    fields = Path(keeper, "stat").read_text().rpartition(")")[2].split()
    assert int(fields[1]) != os.getpid()
    assert int(fields[3]) != os.getsid(0)
    assert int(fields[4]) == 0, "it has a terminal"
    assert os.readlink(f"{keeper}/cwd") == "/"
    assert {os.readlink(f"{keeper}/fd/{number}") for number in range(3)} == {"/dev/null"}
    environment = Path(keeper, "environ").read_bytes()
    assert b"PATH=" not in environment


def test_a_hangup_and_an_interrupt_are_not_for_it(one: ProcessSession) -> None:
    known = read_record(one.folder)
    assert known is not None
    for number in (1, 2, 13):
        os.kill(known.keeper.number, number)
    assert answers(one, b"goes on")
    os.kill(known.keeper.number, 15)
    assert one.wait(LIMIT)
    assert one.record().reason == "stopped"
