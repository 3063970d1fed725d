"""A client over HTTP that hangs up while a person is asked: nothing is lost by it, asked twice or run twice."""

import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from http_process import PATIENCE, HttpProcess
from plain_http import Session, call, hears

from handrail.mcp.calls import ClientCalls, UnansweredCall
from handrail.mcp.http.request_runner import HeldCall
from handrail.protocol.permissions import Answer

_FORMS = {"elicitation": {}}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpProcess]:
    with HttpProcess(tmp_path_factory.mktemp("hanging-up"), "--mode", "ask") as one:
        yield one


def _wait_until_left(server: HttpProcess) -> None:
    """Waits until no call of the server is in a hand: it knows that its client is gone."""
    until = time.monotonic() + PATIENCE
    while _in_hand(server.folder):
        assert time.monotonic() < until
        time.sleep(0.01)


def _in_hand(folder: Path) -> int:
    held = 0
    for path in (folder / "state").rglob("journal.db"):
        database = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        held += database.execute("SELECT count(*) FROM left_call WHERE holder IS NOT NULL").fetchone()[0]
        database.close()
    return held


def _write(name: str) -> dict[str, Any]:
    return call("write", {"path": name, "content": f"{name}\n"})


@pytest.mark.parametrize("able", [{}, _FORMS], ids=["elsewhere", "form"])
def test_what_was_allowed_after_it_hung_up_is_there_for_the_same_call(server: HttpProcess, able: Any) -> None:
    name = f"kept-{len(able)}.txt"
    with Session(server, **able) as client:
        with client.begin(_write(name)):
            request = server.waiting()
        server.approvals("allow", request)
        assert (server.workspace / name).read_text() == f"{name}\n"
        (server.workspace / name).unlink()
        result = client.result(_write(name))
    assert not result["isError"], result
    assert not (server.workspace / name).exists(), "it ran a second time"
    assert server.approvals()["waiting"] == []


@pytest.mark.parametrize("able", [{}, _FORMS], ids=["elsewhere", "form"])
def test_who_hangs_up_and_calls_again_is_asked_about_the_one_call(server: HttpProcess, able: Any) -> None:
    name = f"again-{len(able)}.txt"
    with Session(server, **able) as client:
        with client.begin(_write(name)):
            request = server.waiting()
        _wait_until_left(server)
        with client.begin(_write(name)) as again:
            hears(again, b"200 OK")
            server.approvals("deny", request)
            assert server.approvals()["waiting"] == []
    _wait_until_left(server)


def test_what_its_client_never_got_is_there_for_the_same_call_and_what_it_got_is_not(rail: Callable[..., Any]) -> None:
    calls = ClientCalls(rail(mode="ask", session="mcp-client", on_permission=lambda _: None))

    def begun(hand: HeldCall) -> Any:
        return hand.hold(calls.begin("write", {"path": "a.txt", "content": "a\n"}))

    cut_off, again, later = HeldCall(calls), HeldCall(calls), HeldCall(calls)
    asks = begun(cut_off)
    done = cut_off.hold(calls.answer(asks, Answer(kind="once")))
    cut_off.settle(reached=True)  # something was sent, but not this
    assert begun(again) == done
    again.is_offered = True
    again.settle(reached=True)
    assert begun(later).call_id != asks.call_id


def test_a_call_that_was_left_to_others_is_not_touched_by_who_left_it(rail: Callable[..., Any]) -> None:
    calls = ClientCalls(rail(mode="ask", session="mcp-client", on_permission=lambda _: None))
    hand = HeldCall(calls)
    asks = hand.hold(calls.begin("write", {"path": "a.txt", "content": "a\n"}))
    assert isinstance(asks, UnansweredCall)
    calls.park(asks)
    hand.hold({"content": []})
    assert calls.claim(asks.call_id, "write", asks.digest) is not None
    assert hand.is_empty
    hand.settle(reached=True)
    assert calls.has_claimed(asks.call_id)
