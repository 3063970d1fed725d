"""Process sessions: started, found, written to, read, stopped, removed."""

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest
from process_launches import comes_true

from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.protocol.errors import ToolError

Start = Callable[..., ProcessSession]


def printed(one: ProcessSession) -> bytes:
    return b"".join(one.log.kept())


def prints(one: ProcessSession, text: bytes) -> bool:
    return comes_true(lambda: text in printed(one), 60.0)


def test_it_is_known_by_what_it_is(start: Start) -> None:
    one = start("echo hello; read line; echo got $line")
    assert prints(one, b"hello\n")
    record = one.record()
    assert (record.id, record.state, record.session_id, record.cwd) == (one.id, "running", "here", ".")
    assert record.pid is not None
    one.write(b"words\n", eof=False)
    assert one.wait(60.0)
    record = one.record()
    assert (record.state, record.exit_code, record.reason, record.last_line) == ("ended", 0, None, "got words")
    assert printed(one) == b"hello\ngot words\n"


def test_it_is_stopped_and_removed(start: Start, sessions: ProcessSessions) -> None:
    one = start("sleep 1000")
    one.stop()
    record = one.record()
    assert (record.state, record.reason, record.signal) == ("ended", "stopped", "SIGTERM")
    with pytest.raises(ToolError) as caught:
        one.write(b"x", eof=False)
    assert caught.value.code == "PROCESS_ENDED"
    one.remove()
    assert sessions.list_sessions() == []
    assert not Path(one.folder).exists()


def test_any_beginning_of_its_id_that_no_other_has_will_do(start: Start, sessions: ProcessSessions) -> None:
    first, second = start("sleep 1000"), start("sleep 1000")
    assert [one.id for one in sessions.list_sessions()] == [first.id, second.id]
    assert sessions.find(first.id).id == first.id
    assert sessions.find(second.id[:14]).id == second.id
    with pytest.raises(ToolError) as caught:
        sessions.find("p-")
    assert caught.value.code == "PROCESS_NOT_FOUND"
    assert first.id in caught.value.message
    assert second.id in caught.value.message
    with pytest.raises(ToolError):
        sessions.find("p-nothing")


def test_one_that_is_removed_while_all_are_listed_is_left_out(start_confined: Start, sessions: ProcessSessions) -> None:
    removed, left = start_confined("true"), start_confined("true")

    def remove(frame: FrameType, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == ("return", "list_sessions"):
            sys.setprofile(None)
            removed.remove()

    sys.setprofile(remove)
    assert [record.id for record in sessions.records()] == [left.id]
