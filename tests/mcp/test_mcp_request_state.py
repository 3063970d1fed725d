"""Rounds: a call that asks is made again with what was said and a signed state, which counts for that call, once."""

import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail
from handrail.mcp import request_state
from handrail.mcp.calls import ClientCalls, UnansweredCall, has_answer
from handrail.mcp.request_state import Signer, build_input_required, resume_with_answer
from handrail.protocol.errors import StoreError
from handrail.protocol.events import ToolCallEnd
from handrail.protocol.jsonrpc import ProtocolError
from handrail.protocol.results import ToolResult
from handrail.store.state_dir import StateFolder

Make = Callable[..., Handrail]
WRITE = {"path": "a.txt", "content": "a\n"}
YES = {"permission": {"action": "accept", "content": {"answer": "once"}}}


@pytest.fixture
def opened(rail: Make) -> Make:
    options: dict[str, Any] = {"mode": "ask", "session": "mcp-client", "on_permission": lambda _: None}
    return lambda **more: rail(**(options | more))


def begun(calls: ClientCalls, arguments: Any = WRITE) -> tuple[UnansweredCall, str]:
    """A call that asks, and the state that its client keeps."""
    asks = calls.begin("write", arguments)
    assert isinstance(asks, UnansweredCall)
    told = build_input_required(calls, asks)
    assert told["resultType"] == "input_required"
    assert "Your files are untouched" in told["inputRequests"]["permission"]["params"]["message"]
    return asks, told["requestState"]


def again(calls: ClientCalls, state: Any, responses: Any = YES, arguments: Any = WRITE, **more: Any) -> Any:
    params = {"name": "write", "arguments": arguments, "requestState": state, "inputResponses": responses, **more}
    return resume_with_answer(calls, params)


def refused(calls: ClientCalls, state: Any, responses: Any = YES, **more: Any) -> str:
    with pytest.raises(ProtocolError) as failure:
        again(calls, state, responses, **more)
    assert failure.value.code == -32602
    assert "Nothing was run" in failure.value.message
    return failure.value.message


def test_a_yes_in_the_second_round_runs_the_call(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    result = again(calls, state)
    assert result.ok
    assert (workspace / "a.txt").read_text() == "a\n"


def test_a_state_counts_once(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    asks, state = begun(calls)
    result = again(calls, state)
    assert "used before" in refused(calls, state), "its result is in hand"
    calls.mark_delivered(result.tool_call_id)
    (workspace / "a.txt").unlink()
    assert "used before" in refused(calls, state)
    assert not (workspace / "a.txt").exists()
    ends = [one for one in calls.rail.events() if isinstance(one, ToolCallEnd)]
    assert [one.tool_call_id for one in ends] == [asks.call_id]


def test_a_state_whose_result_was_not_delivered_gives_it_to_the_next_process(opened: Make, workspace: Path) -> None:
    before = ClientCalls(opened())
    asks, state = begun(before)
    assert again(before, state).ok
    before.rail.close()
    (workspace / "a.txt").unlink()
    after = ClientCalls(opened())
    kept = again(after, state)
    assert kept.ok
    assert kept.tool_call_id == asks.call_id
    assert not (workspace / "a.txt").exists(), "it is not run a second time"


def test_of_many_who_answer_at_once_one_does(opened: Make) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    found: list[Any] = []
    gate = threading.Barrier(4)

    def answer() -> None:
        gate.wait()
        try:
            found.append(again(calls, state))
        except ProtocolError as error:
            found.append(error)

    threads = [threading.Thread(target=answer) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(one, ToolResult) for one in found) == 1
    assert sum(isinstance(one, ProtocolError) for one in found) == 3


def test_a_state_belongs_to_its_name_and_arguments(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    assert "other arguments" in refused(calls, state, arguments={**WRITE, "content": "evil\n"})
    assert "another name" in refused(calls, state, name="exec")
    assert "another name" in refused(calls, state, name=7)
    assert not any(workspace.iterdir())
    assert again(calls, state).ok, "what was refused used nothing up"


def test_a_state_belongs_to_its_session_and_its_workspace(opened: Make, tmp_path: Path) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for other in (ClientCalls(opened(session="other")), ClientCalls(opened(workspace=elsewhere))):
        begun(other)
        assert "another session" in refused(other, state)
    assert "The requestState is not from this server, or was changed" in refused(
        ClientCalls(opened(state_dir=tmp_path / "other")), state
    )


def test_two_states_cannot_be_swapped(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    other = {"path": "b.txt", "content": "b\n"}
    _, first = begun(calls)
    _, second = begun(calls, other)
    refused(calls, second)
    refused(calls, first, arguments=other)
    assert not any(workspace.iterdir())


def test_a_state_grows_old(opened: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = ClientCalls(opened())
    asks, state = begun(calls)
    now = request_state.time.time()
    monkeypatch.setattr(request_state.time, "time", lambda: now + request_state.STATE_SECONDS + 1)
    assert "too old" in refused(calls, state)
    monkeypatch.setattr(request_state.time, "time", lambda: now - 3_600)
    assert "too old" in refused(calls, state)
    found = calls.begin("write", WRITE)
    assert isinstance(found, UnansweredCall)
    assert found.revisions == asks.revisions, "the call itself waits on"


def test_a_state_belongs_to_its_version(opened: Make) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    params = {"name": "write", "arguments": WRITE, "requestState": state, "inputResponses": YES}
    with pytest.raises(ProtocolError, match="version 2026-07-28"):
        resume_with_answer(calls, params, "2027-01-01")


def test_responses_without_a_state_are_refused_and_neither_is_a_call_like_any_other(opened: Make) -> None:
    calls = ClientCalls(opened())
    assert not has_answer({"name": "write", "arguments": WRITE})
    refused(calls, None)


@pytest.mark.parametrize(
    "responses",
    [{"permission": {"action": "cancel"}}, {"permission": {"action": "cancel", "content": {"answer": "once"}}}],
)
def test_a_dismissed_form_leaves_the_call_waiting(opened: Make, responses: Any) -> None:
    calls = ClientCalls(opened())
    asks, state = begun(calls)
    told = again(calls, state, responses).interim
    assert told.error.code == "PERMISSION_REQUIRED"
    assert told.tool_call_id == asks.call_id
    assert len(calls.rail.waiting()) == 1
    assert again(calls, state).ok, "and it can still be answered"


def test_a_declined_form_is_a_no(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    denied = again(calls, state, {"permission": {"action": "decline"}})
    assert denied.error.code == "PERMISSION_DENIED"
    assert not any(workspace.iterdir())


@pytest.mark.parametrize(
    "nonsense", [{}, {"permission": None}, {"permission": {"action": "accept"}}, {"other": YES["permission"]}]
)
def test_nonsense_is_asked_about_once_more_and_then_left(opened: Make, nonsense: Any) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    once_more = again(calls, state, nonsense)
    assert isinstance(once_more, UnansweredCall)
    second = build_input_required(calls, once_more)
    assert "not one of the choices" in second["inputRequests"]["permission"]["params"]["message"]
    left = again(calls, second["requestState"], nonsense).interim
    assert left.error.code == "PERMISSION_REQUIRED"
    assert again(calls, second["requestState"]).ok


def test_no_response_asks_the_same_again(opened: Make) -> None:
    calls = ClientCalls(opened())
    asks, state = begun(calls)
    found = again(calls, state, None)
    assert isinstance(found, UnansweredCall)
    assert found.revisions == asks.revisions
    assert not found.again


def test_no_response_after_a_change_asks_with_a_new_preview_and_a_yes_to_the_old_one_keeps_that(
    opened: Make, workspace: Path
) -> None:
    (workspace / "check.sh").write_text("echo failed > report.txt\n")
    calls, command = ClientCalls(opened()), {"command": "sh check.sh"}
    asks = calls.begin("exec", command)
    assert isinstance(asks, UnansweredCall)
    state = build_input_required(calls, asks)["requestState"]
    (workspace / "check.sh").write_text("echo passed > report.txt\n")
    params: dict[str, Any] = {"name": "exec", "arguments": command, "requestState": state}
    anew = resume_with_answer(calls, params)
    assert isinstance(anew, UnansweredCall)
    assert anew.revisions != asks.revisions
    state = build_input_required(calls, anew)["requestState"]
    (workspace / "check.sh").write_text("echo later > report.txt\n")
    kept = resume_with_answer(calls, params | {"requestState": state, "inputResponses": YES})
    assert isinstance(kept, ToolResult)
    assert kept.ok
    assert (workspace / "report.txt").read_text() == "passed\n"


def test_responses_that_are_no_object_are_refused_and_the_call_waits(opened: Make) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    refused(calls, state, [1])
    assert again(calls, state).ok


def test_an_answer_from_elsewhere_counts_and_the_form_does_not(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    _, state = begun(calls)
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "deny", reason="no")
    assert again(calls, state).error.code == "PERMISSION_DENIED"
    assert not any(workspace.iterdir())


def test_a_yes_to_what_was_shown_before_is_none_to_what_is_shown_now(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    command = {"command": "touch a.txt"}
    asks = calls.begin("exec", command)
    assert isinstance(asks, UnansweredCall)
    state = build_input_required(calls, asks)["requestState"]
    elsewhere = opened()
    elsewhere.retry(asks.requests[0].id, "touch evil.txt")
    params = {"name": "exec", "arguments": command, "requestState": state, "inputResponses": YES}
    now = resume_with_answer(calls, params)
    assert isinstance(now, UnansweredCall)
    assert now.requests[0].command == "touch evil.txt"
    assert not any(workspace.iterdir())


STATE = b'{"call_id": "call-1", "digest": "x", "place": "y"}'


@given(st.integers(0, 10_000), st.integers(0, 255), st.binary(max_size=40))
def test_a_state_that_was_changed_anywhere_is_not_ours(place: int, change: int, other: bytes) -> None:
    signer, stranger = Signer(b"k" * 32, "p"), Signer(b"l" * 32, "p")
    text = signer.sign(STATE)
    assert signer.verify(text) == STATE
    at = place % len(text)
    changed = text[:at] + chr(change) + text[at + 1 :]
    assert signer.verify(changed) is None or changed == text
    assert signer.verify(text[:at]) is None
    assert signer.verify(text + chr(change)) is None
    assert signer.verify(stranger.sign(other)) is None
    assert signer.verify(other.decode("latin-1")) is None


@given(data=st.data())
def test_nothing_runs_by_a_state_that_is_not_ours(data: Any, forged: tuple[ClientCalls, str, Path]) -> None:
    calls, state, workspace = forged
    text = data.draw(
        st.one_of(
            st.text(max_size=200),
            st.integers(0, len(state) - 1).map(lambda at: state[:at]),
            st.tuples(st.integers(0, len(state) - 1), st.characters()).map(
                lambda one: state[: one[0]] + one[1] + state[one[0] + 1 :]
            ),
            st.just(state + "="),
            st.just(state * 50),
            st.integers(),
            st.lists(st.just(state), max_size=2),
        )
    )
    if text != state:
        refused(calls, text)
    assert not any(workspace.iterdir())
    assert len(calls.rail.waiting()) == 1


@pytest.fixture
def forged(opened: Make, workspace: Path) -> tuple[ClientCalls, str, Path]:
    calls = ClientCalls(opened())
    return calls, begun(calls)[1], workspace


def test_a_state_of_another_shape_is_refused(opened: Make) -> None:
    calls = ClientCalls(opened())
    refused(calls, Signer.load(calls).sign(msgspec.json.encode({"place": 1})))
    refused(calls, Signer.load(calls).sign(b"\xff"))


def test_the_key_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    found: list[bytes] = []
    threads = [threading.Thread(target=lambda: found.append(StateFolder(state).load_key("mcp"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 1
    assert len(found[0]) == 32
    assert stat.S_IMODE(os.stat(tmp_path / "state" / "mcp.key").st_mode) == 0o600
    assert os.listdir(state) == ["mcp.key"]
    assert StateFolder(str(tmp_path / "other")).load_key("mcp") != found[0]


def test_a_key_that_was_cut_signs_nothing(tmp_path: Path) -> None:
    (tmp_path / "mcp.key").write_bytes(b"short")
    with pytest.raises(StoreError, match="Remove it"):
        StateFolder(str(tmp_path)).load_key("mcp")
