"""A call that asks, at a client that can show forms, one that goes by rounds, and one that can do neither."""

import json
import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.mcp import approval_watch
from handrail.mcp.calls import ClientCalls, UnansweredCall, has_answer
from handrail.mcp.protocol import Caller
from handrail.mcp.request_state import build_input_required, resume_with_answer
from handrail.mcp.stdio.approval import ask_person, deliver
from handrail.mcp.stdio.call_runner import CallRunner
from handrail.mcp.stdio.notifications import Notifier
from handrail.mcp.stdio.requests import ClientRequest, StdioConnection
from handrail.mcp.stdio.streams import MessageWriter
from handrail.mcp.workers import MAX_WORKERS, Workers
from handrail.protocol.permissions import Answer
from handrail.settings import Settings
from handrail.settings.model import Tools

Make = Callable[..., Handrail]
WRITE = {"path": "a.txt", "content": "a\n"}
FORMS = Caller(name="x", protocol="2025-11-25", elicits=True)
ROUNDS = Caller(name="x", protocol="2026-07-28", elicits=True)
NEITHER = Caller(name="x", protocol="2025-06-18")
DEADLINE = 60.0


class Client:
    """The other end of a real connection."""

    def __init__(self, calls: ClientCalls) -> None:
        self.calls = calls
        self.failures: list[Exception] = []
        self.workers = Workers(self.failures.append)
        source, self._sink = os.pipe()
        self.connection = StdioConnection(MessageWriter(self._sink, lambda: None), self.workers)
        self._messages: queue.Queue[dict[str, Any]] = queue.Queue()
        self._seen: list[dict[str, Any]] = []
        self._reader = threading.Thread(target=self._read, args=(source,))
        self._reader.start()
        self._last = 0
        self.progress: list[str] = []
        self._exchanges: list[ClientRequest] = []

    def call(
        self, caller: Caller, arguments: Any = WRITE, name: str = "write", seconds: float = DEADLINE, **more: Any
    ) -> ClientRequest:
        """Makes a call as the server does that reads it."""
        self._last += 1
        params = {"name": name, "arguments": arguments, **more}
        exchange = ClientRequest(self.connection, f"call {self._last}", params, caller)
        exchange.send_progress = self.progress.append
        self._exchanges.append(exchange)
        found = resume_with_answer(self.calls, params) if has_answer(params) else self.calls.begin(name, arguments)
        if isinstance(found, UnansweredCall):
            ask_person(exchange, self.calls, found, seconds)
        else:
            deliver(exchange, self.calls, found)
        return exchange

    def sees(self, told: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Waits for a message."""
        until = time.monotonic() + DEADLINE
        while True:
            for message in self._seen:
                if told(message):
                    self._seen.remove(message)
                    return message
            try:
                self._seen.append(self._messages.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                raise AssertionError(f"only {self._seen} came") from None

    def result(self, exchange: ClientRequest) -> dict[str, Any]:
        return self.sees(lambda message: message.get("id") == exchange.request_id)["result"]

    def form(self) -> dict[str, Any]:
        return self.sees(lambda message: message.get("method") == "elicitation/create")

    def send_back(self, form: dict[str, Any], **reply: Any) -> None:
        assert self.connection.take_reply(form["id"], reply)

    def close(self) -> None:
        for exchange in self._exchanges:
            exchange.cancel()
        self.connection.drop_asked()  # whoever still waits writes nothing more: the pipe's number may be another's soon
        assert self.workers.end(DEADLINE)
        os.close(self._sink)
        self._reader.join()
        assert not self.failures

    def _read(self, source: int) -> None:
        with open(source, "rb") as lines:
            for line in lines:
                self._messages.put(json.loads(line))


@pytest.fixture
def opened(rail: Make, monkeypatch: pytest.MonkeyPatch) -> Make:
    monkeypatch.setenv("HANDRAIL_NOTIFY", "off")
    options: dict[str, Any] = {"mode": "ask", "session": "mcp-client", "on_permission": lambda _: None}
    return lambda **more: rail(**(options | more))


@pytest.fixture
def client(opened: Make) -> Iterator[Client]:
    one = Client(ClientCalls(opened()))
    yield one
    one.close()


def code(result: dict[str, Any]) -> str:
    return result["structuredContent"]["error"]["code"]


# Forms


@pytest.mark.parametrize(("reply", "made"), [({"answer": "once"}, True), ({"answer": "deny", "reason": "no"}, False)])
def test_a_form_is_sent_back_with_an_answer(client: Client, workspace: Path, reply: Any, made: bool) -> None:
    exchange = client.call(FORMS)
    form = client.form()
    assert not (workspace / "a.txt").exists()
    client.send_back(form, action="accept", content=reply)
    result = client.result(exchange)
    assert result["isError"] is not made
    assert (workspace / "a.txt").exists() is made
    if not made:
        assert code(result) == "PERMISSION_DENIED"
        assert '"no"' in result["content"][0]["text"]


def test_the_oldest_version_gets_a_form_that_it_knows(client: Client, workspace: Path) -> None:
    exchange = client.call(Caller(protocol="2025-06-18", elicits=True))
    form = client.form()
    assert "mode" not in form["params"]
    assert form["params"]["requestedSchema"]["properties"]["answer"]["enum"] == ["once", "edits", "deny"]
    client.send_back(form, action="accept", content={"answer": "once"})
    assert not client.result(exchange)["isError"]


def test_a_declined_form_is_a_no(client: Client, workspace: Path) -> None:
    exchange = client.call(FORMS)
    client.send_back(client.form(), action="decline")
    assert code(client.result(exchange)) == "PERMISSION_DENIED"
    assert not (workspace / "a.txt").exists()


def test_a_dismissed_form_leaves_it_waiting_and_the_same_call_shows_it_again(client: Client) -> None:
    exchange = client.call(FORMS)
    client.send_back(client.form(), action="cancel")
    assert code(client.result(exchange)) == "PERMISSION_REQUIRED"
    again = client.call(FORMS)
    client.send_back(client.form(), action="accept", content={"answer": "once"})
    assert not client.result(again)["isError"]
    assert not client.calls.rail.waiting()


CHECK = {"command": "sh check.sh | tee report.txt"}
"""Runs the tests: what it prints depends on a file that it only reads."""


def run_check(client: Client, **reply: Any) -> tuple[str, str]:
    """What the form for the tests shows, and what the model reads after that reply."""
    exchange = client.call(FORMS, CHECK, "exec")
    form = client.form()
    client.send_back(form, **reply)
    return form["params"]["message"], client.result(exchange)["content"][0]["text"]


@pytest.mark.parametrize("editor", ["edit", "elsewhere"])
def test_a_repeated_command_shows_and_returns_how_it_goes_after_a_change(
    client: Client, workspace: Path, editor: str
) -> None:
    (workspace / "check.sh").write_text("echo failed\n")
    shown, _ = run_check(client, action="cancel")
    assert 'last: "failed"' in shown
    assert "Preview from just now." in shown
    if editor == "edit":
        change = {"path": "check.sh", "oldText": "failed", "newText": "passed"}
        edited = client.call(FORMS, change, "edit")
        client.send_back(client.form(), action="accept", content={"answer": "once"})
        assert not client.result(edited)["isError"]
    else:
        (workspace / "check.sh").write_text("echo passed\n")
    shown, told = run_check(client, action="accept", content={"answer": "once"})
    assert 'last: "passed"' in shown
    assert "failed" not in told
    assert (workspace / "report.txt").read_text() == "passed\n"
    assert not client.calls.rail.waiting()


def test_a_repeated_command_is_not_tried_again_while_nothing_has_changed(client: Client, workspace: Path) -> None:
    (workspace / "check.sh").write_text("date +%s%N\n")
    first, _ = run_check(client, action="cancel")
    again, _ = run_check(client, action="cancel")
    assert again == first


def test_a_repeated_edit_shows_the_file_as_it_is_now(client: Client, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    change = {"path": "a.txt", "oldText": "one", "newText": "two"}
    exchange = client.call(FORMS, change, "edit")
    client.send_back(client.form(), action="cancel")
    client.result(exchange)
    (workspace / "a.txt").write_text("zero\none\n")
    again = client.call(FORMS, change, "edit")
    form = client.form()
    assert "\n zero\n" in form["params"]["message"]
    client.send_back(form, action="accept", content={"answer": "once"})
    assert not client.result(again)["isError"]
    assert (workspace / "a.txt").read_text() == "zero\ntwo\n"


def test_a_repeated_edit_that_fits_no_more_fails_at_once(client: Client, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    change = {"path": "a.txt", "oldText": "one", "newText": "two"}
    exchange = client.call(FORMS, change, "edit")
    client.send_back(client.form(), action="cancel")
    client.result(exchange)
    (workspace / "a.txt").write_text("other\n")
    assert code(client.result(client.call(FORMS, change, "edit"))) == "NO_MATCH"


def test_nonsense_is_asked_about_once_more_and_then_left(client: Client, workspace: Path) -> None:
    exchange = client.call(FORMS)
    client.send_back(client.form(), action="accept", content={"answer": "everything"})
    form = client.form()
    assert "not one of the choices" in form["params"]["message"]
    client.send_back(form, action="accept", content={})
    assert code(client.result(exchange)) == "PERMISSION_REQUIRED"
    assert not (workspace / "a.txt").exists()


def test_an_answer_from_elsewhere_withdraws_the_form(client: Client, opened: Make, workspace: Path) -> None:
    exchange = client.call(FORMS)
    form = client.form()
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "once")
    withdrawn = client.sees(lambda message: message.get("method") == "notifications/cancelled")
    assert withdrawn["params"]["requestId"] == form["id"]
    assert not client.result(exchange)["isError"]
    assert (workspace / "a.txt").exists()
    assert not client.connection.take_reply(form["id"], {"action": "accept", "content": {"answer": "once"}})


def test_a_form_that_was_tried_again_elsewhere_is_shown_anew(client: Client, opened: Make, workspace: Path) -> None:
    exchange = client.call(FORMS, {"command": "touch a.txt"}, "exec")
    form = client.form()
    elsewhere = opened()
    elsewhere.retry(elsewhere.waiting()[0].id, "touch b.txt")
    client.sees(lambda message: message.get("method") == "notifications/cancelled")
    second = client.form()
    assert second["id"] != form["id"]
    assert "touch b.txt" in second["params"]["message"]
    client.send_back(second, action="accept", content={"answer": "once"})
    assert not client.result(exchange)["isError"]
    assert [one.name for one in workspace.iterdir()] == ["b.txt"]


def test_a_call_that_its_client_cancels_withdraws_the_form(client: Client, workspace: Path) -> None:
    exchange = client.call(FORMS)
    form = client.form()
    assert exchange.cancel()
    withdrawn = client.sees(lambda message: message.get("method") == "notifications/cancelled")
    assert withdrawn["params"]["requestId"] == form["id"]
    assert len(client.calls.rail.waiting()) == 1, "the request waits on"
    again = client.call(FORMS)
    client.send_back(client.form(), action="accept", content={"answer": "once"})
    assert not client.result(again)["isError"]


def test_a_call_that_is_cancelled_while_its_yes_is_carried_out_ends_and_the_same_call_is_a_new_one(
    opened: Make,
) -> None:
    client = Client(ClientCalls(opened(settings=Settings(preview="never"))))
    rail, command = client.calls.rail, {"command": "sleep 100; touch a.txt"}
    exchange = client.call(FORMS, command, "exec")
    client.send_back(client.form(), action="accept", content={"answer": "once"})
    until = time.monotonic() + DEADLINE
    while rail.deferred_calls.status(exchange.call_id)[0] != "started":
        assert time.monotonic() < until
        time.sleep(0.01)
    assert exchange.cancel()
    assert rail.cancel_call(exchange.call_id)
    while rail.deferred_calls.has_any():
        assert time.monotonic() < until
        time.sleep(0.01)
    again = client.call(NEITHER, command, "exec", seconds=0.0)
    assert code(client.result(again)) == "PERMISSION_REQUIRED"
    assert again.call_id != exchange.call_id
    client.close()


def test_a_call_that_is_cancelled_before_its_yes_is_carried_out_waits_on(client: Client, workspace: Path) -> None:
    exchange, form = client.call(FORMS), client.form()
    go_on = threading.Event()
    for _ in range(MAX_WORKERS):
        client.workers.add(lambda: go_on.wait(DEADLINE) and None)
    client.send_back(form, action="accept", content={"answer": "once"})
    assert exchange.cancel()
    go_on.set()
    assert client.workers.end(DEADLINE)
    assert not (workspace / "a.txt").exists(), "nothing runs for who does not wait any more"
    assert len(client.calls.rail.waiting()) == 1


def test_a_result_that_could_not_be_written_is_there_for_the_same_call(opened: Make) -> None:
    rail = opened()
    calls = ClientCalls(rail)
    asks = calls.begin("write", WRITE)
    assert isinstance(asks, UnansweredCall)
    result = calls.answer(asks, Answer(kind="once"))
    assert not isinstance(result, UnansweredCall)
    source, sink = os.pipe()
    os.close(source)
    connection = StdioConnection(MessageWriter(sink, lambda: None), Workers(lambda _: None))
    deliver(ClientRequest(connection, "call 1", {}, FORMS), calls, result)
    os.close(sink)
    rail.close()
    again = ClientCalls(opened()).begin("write", WRITE)
    assert not isinstance(again, UnansweredCall)
    assert again.tool_call_id == asks.call_id


def test_a_client_that_fails_to_show_a_form_waits_as_others_do(client: Client, opened: Make) -> None:
    exchange = client.call(FORMS)
    assert client.connection.take_reply(client.form()["id"], None)
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "once")
    assert not client.result(exchange)["isError"]


def test_calls_that_all_ask_each_have_their_form(client: Client, workspace: Path) -> None:
    exchanges = [client.call(FORMS, {"path": f"{number}.txt", "content": "x\n"}) for number in range(20)]
    forms = [client.form() for _ in exchanges]
    for form in reversed(forms):
        answer = "deny" if "13.txt" in form["params"]["message"] else "once"
        client.send_back(form, action="accept", content={"answer": answer})
    results = [client.result(exchange) for exchange in exchanges]
    assert [number for number, one in enumerate(results) if one["isError"]] == [13]
    assert len(list(workspace.iterdir())) == 19


def test_only_the_output_is_taken(client: Client, workspace: Path) -> None:
    exchange = client.call(FORMS, {"command": "echo said; touch a.txt"}, "exec")
    form = client.form()
    assert "output" in [one["const"] for one in form["params"]["requestedSchema"]["properties"]["answer"]["oneOf"]]
    client.send_back(form, action="accept", content={"answer": "output"})
    assert "said" in client.result(exchange)["content"][0]["text"]
    assert not any(workspace.iterdir())


def test_a_yes_for_the_session_asks_no_more(client: Client) -> None:
    exchange = client.call(FORMS, {"command": "mkdir one"}, "exec")
    form = client.form()
    client.send_back(form, action="accept", content={"answer": "session"})
    assert not client.result(exchange)["isError"]
    assert not client.result(client.call(FORMS, {"command": "mkdir two"}, "exec"))["isError"]


def test_plain_edits_are_allowed_by_a_form_and_the_next_one_does_not_ask(client: Client, workspace: Path) -> None:
    call = client.call(FORMS)
    form = client.form()
    assert "\nWrite a.txt?\n" in form["params"]["message"]
    offered = form["params"]["requestedSchema"]["properties"]["answer"]["oneOf"]
    assert {"const": "edits", "title": "allow it, and allow plain edits in this session"} in offered
    client.send_back(form, action="accept", content={"answer": "edits"})
    assert not client.result(call)["isError"]
    again = client.call(FORMS, {"path": "b.txt", "content": "b\n"})
    assert not client.result(again)["isError"]
    assert (workspace / "b.txt").read_text() == "b\n"


def test_a_question_is_a_form_too(opened: Make) -> None:
    client = Client(ClientCalls(opened(settings=Settings(tools=Tools(enable=("question",))))))
    exchange = client.call(FORMS, {"question": "Which?", "options": ["this", "that"]}, "question")
    client.send_back(client.form(), action="accept", content={"choice": "2"})
    assert client.result(exchange)["structuredContent"]["data"]["chosen"] == ["that"]
    client.close()


@pytest.mark.parametrize("options", [{"mode": "plan"}, {"unattended": True}])
def test_where_nobody_is_to_be_asked_nobody_is(opened: Make, workspace: Path, options: Any) -> None:
    client = Client(ClientCalls(opened(**options)))
    assert code(client.result(client.call(FORMS))) in {"POLICY_DENIED", "PERMISSION_DENIED"}
    assert not any(workspace.iterdir())
    client.close()


# Rounds


def test_a_call_goes_by_rounds_where_there_is_no_handshake(client: Client, workspace: Path) -> None:
    first = client.result(client.call(ROUNDS))
    assert first["resultType"] == "input_required"
    said = {"permission": {"action": "accept", "content": {"answer": "once"}}}
    second = client.result(client.call(ROUNDS, requestState=first["requestState"], inputResponses=said))
    assert second["resultType"] == "complete"
    assert not second["isError"]
    assert (workspace / "a.txt").exists()


def test_a_round_without_an_answer_asks_again(client: Client) -> None:
    first = client.result(client.call(ROUNDS))
    second = client.result(client.call(ROUNDS, requestState=first["requestState"]))
    assert second["resultType"] == "input_required"


# Neither


def test_a_client_that_cannot_ask_waits_is_told_and_gets_the_result(
    client: Client, opened: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_watch, "_REMIND_SECONDS", 0.0)
    exchange = client.call(NEITHER)
    until = time.monotonic() + DEADLINE
    while len(client.progress) < 2:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert client.progress[0].startswith("waits for your answer: handrail approvals allow ")
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "once")
    assert not client.result(exchange)["isError"]
    assert (workspace / "a.txt").exists()


def test_after_a_while_it_is_told_how_to_go_on_and_the_same_call_has_the_result(client: Client, opened: Make) -> None:
    left = client.result(client.call(NEITHER, seconds=0.0))
    assert code(left) == "PERMISSION_REQUIRED"
    request = client.calls.rail.waiting()[0]
    assert left["structuredContent"]["error"]["details"]["id"] == request.id
    text = left["content"][0]["text"]
    assert "handrail approvals allow " in text
    assert " After that, repeat the call with the same arguments to get its result." in text
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "once")
    assert not client.result(client.call(NEITHER))["isError"]
    assert code(client.result(client.call(NEITHER, seconds=0.0))) == "PERMISSION_REQUIRED"


def test_a_waiting_call_that_is_cancelled_is_left(client: Client) -> None:
    exchange = client.call(NEITHER)
    assert exchange.cancel()
    until = time.monotonic() + DEADLINE
    shown = client.calls.rail.waiting()[0].id
    while (found := client.calls.rail.deferred_calls.claim(client_digest())) is None:
        assert time.monotonic() < until
        time.sleep(0.01)
    assert found == client.calls.rail.waiting()[0].tool_call_id
    assert shown == client.calls.rail.waiting()[0].id


def client_digest() -> str:
    from handrail.mcp.calls import digest_call

    return digest_call("write", WRITE)


def test_many_that_wait_take_one_thread(client: Client) -> None:
    exchanges = [client.call(NEITHER, {"path": f"{number}.txt", "content": "x\n"}) for number in range(50)]
    until = time.monotonic() + DEADLINE
    while len(client.progress) < len(exchanges):
        assert time.monotonic() < until
        time.sleep(0.01)
    names = [thread.name for thread in threading.enumerate()]
    assert names.count("handrail-mcp-waiting") == 1
    assert names.count("handrail-mcp-worker") < len(exchanges)
    for exchange in exchanges:
        exchange.cancel()


def test_whatever_fails_the_client_is_answered(client: Client) -> None:
    exchange = client.call(FORMS)
    form = client.form()
    client.calls.rail.close()
    client.send_back(form, action="accept", content={"answer": "once"})
    failed = client.sees(lambda message: message.get("id") == exchange.request_id)
    assert failed["error"]["code"] == -32603


def test_a_call_that_was_left_stays_in_the_hand_that_took_it_up_before_its_client_could_read_so(opened: Make) -> None:
    calls = ClientCalls(opened())
    asks = calls.begin("write", WRITE)
    assert isinstance(asks, UnansweredCall)
    state = build_input_required(calls, asks)["requestState"]
    source, sink = os.pipe()
    outlet, failures, left = MessageWriter(sink, lambda: None), list[Exception](), threading.Event()
    connection = StdioConnection(outlet, Workers(failures.append))
    running = CallRunner(Notifier(connection), failures.append)
    connection.send({"unread": "x" * (1 << 20)})
    dismissed = {"requestState": state, "inputResponses": {"permission": {"action": "cancel"}}}
    params = {"name": "write", "arguments": WRITE, **dismissed}
    request = ClientRequest(connection, 1, params, ROUNDS)
    request.on_end(left.set)
    running.start(request, calls)
    assert left.wait(DEADLINE)
    taken_up = calls.begin("write", WRITE)
    assert isinstance(taken_up, UnansweredCall)
    with open(source, "rb") as lines:
        assert json.loads(lines.readline())["unread"]
        assert json.loads(lines.readline())["result"]["isError"]
    assert outlet.flush(DEADLINE)
    calls.park(taken_up)
    again = calls.begin("write", WRITE)
    assert isinstance(again, UnansweredCall)
    assert again.call_id == asks.call_id, "it is still there for the same call"
    assert all(workers.end(DEADLINE) for workers in running.workers)
    os.close(sink)
    assert not failures
