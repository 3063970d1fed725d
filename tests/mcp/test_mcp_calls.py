"""Calls that were left waiting: the same call again gets what came of it, once, whoever died meanwhile."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Handrail, ToolError, tool
from handrail.mcp.calls import ClientCalls, UnansweredCall, digest_call
from handrail.protocol.events import ToolCallEnd, ToolCallError
from handrail.protocol.permissions import Answer, Reply
from handrail.runtime.approvals import expire_requests
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.state import StoredState
from handrail.store.state_dir import StateFolder

Make = Callable[..., Handrail]
YES, NO = Answer(kind="once"), Answer(kind="deny", reason="not now")
WRITE = {"path": "a.txt", "content": "a\n"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=3), JSON, max_size=3)


@pytest.fixture
def opened(rail: Make) -> Make:
    """Opens the session of one client: each time as another process would."""
    options: dict[str, Any] = {"mode": "ask", "session": "mcp-client", "on_permission": lambda _: None}
    return lambda **more: rail(**(options | more))


def asking(calls: ClientCalls, arguments: Any = WRITE, name: str = "write") -> UnansweredCall:
    found = calls.begin(name, arguments)
    assert isinstance(found, UnansweredCall)
    return found


def test_a_call_that_asks_is_left_and_answered_elsewhere_and_gives_its_result_once(
    opened: Make, workspace: Path, tmp_path: Path
) -> None:
    here = ClientCalls(opened())
    asks = asking(here)
    interim = here.park(asks).interim
    assert interim.error is not None
    assert interim.error.code == "PERMISSION_REQUIRED"
    assert asks.requests[0].id in interim.content
    assert "handrail approvals allow" in interim.content
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "once")
    kept = here.begin("write", {"content": "a\n", "path": "a.txt"})
    assert not isinstance(kept, UnansweredCall)
    assert kept.ok
    assert kept.tool_call_id == asks.call_id
    assert (workspace / "a.txt").read_text() == "a\n"
    here.mark_delivered(kept.tool_call_id)
    (workspace / "a.txt").unlink()
    assert asking(here).call_id != asks.call_id, "the next one is a new call"
    found = StoredState(str(tmp_path / "state")).verify()
    assert found.intact, found
    assert found.records == 1


def test_the_kept_result_of_a_command_says_how_old_it_is(opened: Make, workspace: Path) -> None:
    (workspace / "check.sh").write_text("echo failed | tee report.txt\n")
    command = {"command": "sh check.sh"}
    calls = ClientCalls(opened())
    first = asking(calls, command, "exec")
    calls.park(first)
    (workspace / "check.sh").write_text("echo passed | tee report.txt\n")
    calls.rail.answer(calls.rail.waiting()[0], "once")
    kept = calls.begin("exec", command)
    assert not isinstance(kept, UnansweredCall)
    assert kept.content.startswith("failed\n")
    assert [note for note in kept.warnings if note.startswith("This command ran ")]
    calls.mark_delivered(kept.tool_call_id)
    again = asking(calls, command, "exec")
    assert again.requests[0].preview is not None
    assert again.requests[0].preview.output == "passed\n"


def test_a_preview_that_is_made_again_for_a_repeated_call_can_be_cancelled(opened: Make, workspace: Path) -> None:
    (workspace / "slow.sh").write_text("touch made\n")
    calls = ClientCalls(opened())
    first = asking(calls, {"command": "sh slow.sh"}, "exec")
    calls.park(first)
    (workspace / "slow.sh").write_text("touch made; sleep 60\n")

    def cancel(call_id: str) -> None:
        assert call_id == first.call_id
        threading.Thread(target=cancel_once_begun, args=(calls.rail, call_id)).start()

    with pytest.raises(ToolError, match="cancelled"):
        calls.begin("exec", {"command": "sh slow.sh"}, None, cancel)
    assert [one.id for one in calls.rail.waiting()] == [first.requests[0].id]


def cancel_once_begun(rail: Handrail, call_id: str) -> None:
    while not rail.cancel_call(call_id):
        threading.Event().wait(0.005)


def test_the_same_call_waits_on_the_same_request(opened: Make) -> None:
    calls = ClientCalls(opened())
    first = asking(calls)
    calls.park(first)
    again = asking(calls)
    assert again.revisions == first.revisions
    assert len(calls.rail.waiting()) == 1
    result = calls.answer(again, YES)
    assert not isinstance(result, UnansweredCall)
    assert result.ok


def test_other_arguments_never_get_it(opened: Make) -> None:
    calls = ClientCalls(opened())
    calls.park(asking(calls))
    calls.rail.answer(calls.rail.waiting()[0], "once")
    other = calls.begin("write", {**WRITE, "content": "b\n"})
    assert isinstance(other, UnansweredCall)
    read = calls.begin("read", {"path": "a.txt"})
    assert not isinstance(read, UnansweredCall)
    assert read.ok


def test_of_two_same_calls_at_the_same_time_one_gets_it(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    first = asking(calls)
    calls.park(first)
    calls.rail.answer(calls.rail.waiting()[0], "once")
    found: list[Any] = []
    gate = threading.Barrier(2)

    def call() -> None:
        gate.wait()
        found.append(calls.begin("write", WRITE))

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [one.call_id if isinstance(one, UnansweredCall) else one.tool_call_id for one in found]
    assert ids.count(first.call_id) == 1
    assert len(set(ids)) == 2


def test_what_is_in_hand_is_in_no_other(opened: Make) -> None:
    calls = ClientCalls(opened())
    first = asking(calls)
    second = asking(calls)  # the first is still being asked about
    assert first.call_id != second.call_id
    calls.park(first)
    assert asking(calls).call_id == first.call_id


def test_a_no_is_kept_too(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    calls.park(asking(calls))
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "deny", reason="not that one")
    kept = calls.begin("write", WRITE)
    assert not isinstance(kept, UnansweredCall)
    assert kept.error is not None
    assert kept.error.code == "PERMISSION_DENIED"
    assert "not that one" in kept.content
    assert not (workspace / "a.txt").exists()


def test_a_result_that_is_old_is_not_given(opened: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = ClientCalls(opened())
    first = asking(calls)
    calls.park(first)
    calls.rail.answer(calls.rail.waiting()[0], "deny")
    monkeypatch.setattr("handrail.mcp.calls.KEPT_FOR", timedelta(0))
    assert asking(calls).call_id != first.call_id


def test_a_request_that_a_yes_here_would_not_count_for_is_put_anew(
    opened: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = {"command": "touch a.txt"}
    before = ClientCalls(opened())
    first = asking(before, command, "exec")
    before.park(first)
    before.rail.close()
    monkeypatch.setenv("LANG", "de_AT.UTF-8")
    after = ClientCalls(opened())
    second = asking(after, command, "exec")
    assert second.call_id != first.call_id
    result = after.answer(second, YES)
    assert not isinstance(result, UnansweredCall)
    assert result.ok


def test_a_call_whose_request_expired_is_put_anew(opened: Make, tmp_path: Path) -> None:
    before = ClientCalls(opened())
    first = asking(before)
    before.park(first)
    before.rail.close()
    assert expire_requests(StateFolder(str(tmp_path / "state")), None, 0) == 1
    after = ClientCalls(opened())
    second = asking(after)
    assert second.call_id != first.call_id
    assert [request.id for request in after.rail.waiting()] == [second.requests[0].id]


def test_what_was_left_survives_the_process(opened: Make) -> None:
    before = ClientCalls(opened())
    first = asking(before)
    before.rail.close()  # it had it in hand, and was never told to leave it
    after = ClientCalls(opened())
    assert asking(after).revisions == first.revisions


ASKS_AND_DIES = """
import os, signal, sys
from handrail import Handrail
from handrail.mcp.calls import ClientCalls
from handrail.protocol.events import ToolCallPermissionRequired
from handrail.settings import Settings

def die(event):
    if isinstance(event, ToolCallPermissionRequired):
        print(event.permission_request.id, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

rail = Handrail(sys.argv[1], mode="ask", session="mcp-client", state_dir=sys.argv[2], settings=Settings(),
                on_permission=lambda _: None)
rail.subscribe(die)
ClientCalls(rail).begin("write", {"path": "a.txt", "content": "a\\n"})
"""


@pytest.mark.parametrize("answered", [False, True])
def test_a_call_whose_process_was_killed_as_it_began_to_wait_is_found_and_runs_once(
    opened: Make, workspace: Path, tmp_path: Path, answered: bool
) -> None:
    command = [sys.executable, "-c", ASKS_AND_DIES, workspace, tmp_path / "state"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    if not answered:
        assert asking(ClientCalls(opened())).requests[0].id == done.stdout.strip()
        return
    elsewhere = opened()
    elsewhere.answer(done.stdout.strip(), "once")
    (workspace / "a.txt").unlink()
    found = ClientCalls(opened()).begin("write", WRITE)
    assert not isinstance(found, UnansweredCall), "it is asked about a second time"
    assert (found.ok, (workspace / "a.txt").exists()) == (True, False)


def test_a_call_that_another_live_process_has_just_parked_is_left_to_it(opened: Make) -> None:
    other = opened()
    other.call("write", WRITE)
    assert asking(ClientCalls(opened())).requests[0].id != other.waiting()[0].id


TAKES_AND_DIES = """
import os, signal, sys
from handrail import Handrail, tool
from handrail.mcp.calls import ClientCalls
from handrail.settings import Settings
rail = Handrail(sys.argv[1], mode="ask", session="mcp-client", state_dir=sys.argv[2], settings=Settings(),
                on_permission=lambda _: None)
calls = ClientCalls(rail)
found = calls.begin("write", {"path": "a.txt", "content": "a\\n"})
print(found.tool_call_id, flush=True)
if sys.argv[3] == "delivered":
    calls.mark_delivered(found.tool_call_id)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("delivered", [False, True])
def test_a_result_that_a_killed_process_had_in_hand_is_there_unless_it_was_delivered(
    opened: Make, workspace: Path, tmp_path: Path, delivered: bool
) -> None:
    calls = ClientCalls(opened())
    first = asking(calls)
    calls.park(first)
    calls.rail.answer(calls.rail.waiting()[0], "once")
    command = [sys.executable, "-c", TAKES_AND_DIES, workspace, tmp_path / "state", "delivered" if delivered else "no"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert done.stdout.strip() == first.call_id
    found = calls.begin("write", WRITE)
    if delivered:
        assert isinstance(found, UnansweredCall)
    else:
        assert not isinstance(found, UnansweredCall)
        assert found.tool_call_id == first.call_id


def test_a_call_that_somebody_is_running_is_waited_for(opened: Make) -> None:
    begun, gate = threading.Event(), threading.Event()

    @tool
    def deploy() -> str:
        """Deploys it."""
        begun.set()
        assert gate.wait(60)
        return "deployed"

    calls, elsewhere = ClientCalls(opened(tools=[deploy])), opened(tools=[deploy])
    first = asking(calls, {}, "deploy")
    calls.park(first)
    answering = threading.Thread(target=lambda: elsewhere.answer(elsewhere.waiting()[0], "once"))
    answering.start()
    assert begun.wait(60)
    running = asking(calls, {}, "deploy")
    assert running.call_id == first.call_id
    assert not running.revisions
    assert not calls.has_changed(running)
    assert calls.poll(running) is running
    interim = calls.park(running).interim
    assert interim.error is not None
    assert interim.error.retryable
    gate.set()
    answering.join()
    found = calls.begin("deploy", {})
    assert not isinstance(found, UnansweredCall)
    assert found.tool_call_id == first.call_id
    assert "deployed" in found.content


@pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
def test_a_call_may_ask_again_after_an_answer(opened: Make, workspace: Path) -> None:
    """What a command came to asks by itself: the yes to the command is none to that."""
    (workspace / ".git" / "hooks").mkdir(parents=True)
    (workspace / "gen.sh").write_text("echo x > .git/hooks/pre-commit; echo said")
    calls = ClientCalls(opened(settings=Settings(preview="never")))
    first = asking(calls, {"command": "bash gen.sh"}, "exec")
    second = calls.answer(first, YES)
    assert isinstance(second, UnansweredCall)
    assert second.call_id == first.call_id
    assert second.revisions != first.revisions
    assert second.requests[0].rule == "fs.protected"
    calls.park(second)
    third = asking(calls, {"command": "bash gen.sh"}, "exec")
    assert third.revisions == second.revisions
    done = calls.answer(third, YES)
    assert not isinstance(done, UnansweredCall)
    assert done.ok
    assert (workspace / ".git" / "hooks" / "pre-commit").read_text() == "x\n"


def test_a_yes_to_a_trial_that_files_changed_since_has_it_tried_again(opened: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    calls = ClientCalls(opened())
    asks = asking(calls, {"command": "sed -i s/o/0/ a.txt"}, "exec")
    if asks.requests[0].preview is None or asks.requests[0].preview.tried is None:
        pytest.skip("nothing is tried here")
    (workspace / "a.txt").write_text("two\n")
    again = calls.answer(asks, YES)
    assert isinstance(again, UnansweredCall)
    assert again.requests[0].revision == 1
    assert (workspace / "a.txt").read_text() == "two\n"
    done = calls.answer(again, YES)
    assert not isinstance(done, UnansweredCall)
    assert (workspace / "a.txt").read_text() == "tw0\n"


def test_an_answer_given_elsewhere_goes_before_one_that_comes_late(opened: Make, workspace: Path) -> None:
    calls = ClientCalls(opened())
    asks = asking(calls)
    elsewhere = opened()
    elsewhere.answer(elsewhere.waiting()[0], "deny")
    result = calls.answer(asks, YES)
    assert not isinstance(result, UnansweredCall)
    assert result.error is not None
    assert result.error.code == "PERMISSION_DENIED"
    assert not (workspace / "a.txt").exists()


def test_a_question_waits_and_its_reply_is_kept(opened: Make) -> None:
    settings = Settings(tools=Tools(enable=("question",)))
    calls = ClientCalls(opened(settings=settings))
    asked = {"question": "Which?", "options": ["this", "that"]}
    asks = asking(calls, asked, "question")
    interim = calls.park(asks).interim
    assert "handrail approvals reply" in interim.content
    elsewhere = opened(settings=settings)
    elsewhere.reply(elsewhere.waiting_questions()[0], Reply(chosen=("that",)))
    kept = calls.begin("question", asked)
    assert not isinstance(kept, UnansweredCall)
    assert kept.ok
    assert "that" in kept.content
    calls.mark_delivered(kept.tool_call_id)
    put_aside = calls.answer(asking(calls, asked, "question"), Answer(kind="deny"))
    assert not isinstance(put_aside, UnansweredCall)
    assert put_aside.error is not None
    assert put_aside.error.code == "CANCELLED"


@given(ARGUMENTS, ARGUMENTS)
def test_the_digest_tells_calls_apart_whatever_the_order_of_their_arguments(one: Any, other: Any) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (digest_call("read", one) == digest_call("read", other)) == same
    assert digest_call("read", one) != digest_call("write", one)
    assert digest_call("read", dict(reversed(one.items()))) == digest_call("read", one)


@given(steps=st.lists(st.sampled_from(("call", "leave", "hand over", "allow", "deny", "die")), max_size=14))
def test_whatever_happens_every_answer_is_carried_out_once_and_handed_over_until_it_arrived(
    steps: list[str], opened: Make, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("once")
    (folder / "workspace").mkdir()
    place: dict[str, Any] = {"workspace": folder / "workspace", "state_dir": folder / "state"}
    calls, elsewhere = ClientCalls(opened(**place)), opened(**place)
    in_hand: Any = None
    answered: str | None = None
    """The call that was answered, and whose result nobody has yet."""
    said = 0
    for step in steps:
        waiting = elsewhere.waiting()
        if step == "call" and in_hand is None:
            in_hand = calls.begin("write", WRITE)
            found = in_hand.call_id if isinstance(in_hand, UnansweredCall) else in_hand.tool_call_id
            assert found == (answered or (waiting[0].tool_call_id if waiting else found))
            assert isinstance(in_hand, UnansweredCall) == (answered is None)
        elif step == "leave" and isinstance(in_hand, UnansweredCall):
            calls.park(in_hand)
            in_hand = None
        elif step == "hand over" and in_hand is not None:
            in_hand = calls.poll(in_hand) if isinstance(in_hand, UnansweredCall) else in_hand
            if not isinstance(in_hand, UnansweredCall):
                calls.mark_delivered(in_hand.tool_call_id)
                in_hand = answered = None
        elif step in {"allow", "deny"} and waiting:
            elsewhere.answer(waiting[0], "once" if step == "allow" else "deny")
            answered, said = waiting[0].tool_call_id, said + 1
        elif step == "die":
            calls.rail.close()  # with whatever it has in hand
            calls, in_hand = ClientCalls(opened(**place)), None
    ends = [one for one in elsewhere.events() if isinstance(one, ToolCallEnd | ToolCallError)]
    assert len(ends) == said
    assert len(elsewhere.waiting()) <= 1
    calls.rail.close()
    elsewhere.close()
