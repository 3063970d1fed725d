"""The inbox over HTTP: requests and questions of any session are shown and answered once."""

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from tests.server.handlers import Api

from handrail.models.scripted import call
from handrail.protocol.calls import Parked, ToolCall
from handrail.protocol.events import End, ToolCallEnd, ToolCallError
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Tools

ASKING = Settings(tools=Tools(enable=("question",)))


def park(api: Api, command: str = "touch made", session: str = "other") -> str:
    """Leaves a request of another program in the inbox; its id."""
    with api.open(session) as rail:
        result = rail.call("exec", {"command": command})
    assert result.error is not None
    return result.error.details["id"]


def park_write(api: Api, **args: Any) -> str:
    with api.open("other") as rail:
        result = rail.call("write", args)
    assert result.error is not None
    return result.error.details["id"]


def answer(api: Api, request: str, kind: str = "once", **fields: Any):
    return api.post(f"/api/requests/{request}/answer", {"kind": kind, "revision": 0, **fields})


def wait_for_result(api: Api, session: str = "other") -> ToolResult[Any]:
    """The first result of a session."""
    found: list[ToolResult[Any]] = []
    ready = threading.Event()

    def note(event: Any) -> None:
        found.append(event.result)
        ready.set()

    with api.server.runner.rail(session) as rail:
        rail.subscribe(note, kinds={ToolCallEnd, ToolCallError})
        stored = [event.result for event in rail.events() if isinstance(event, ToolCallEnd | ToolCallError)]
        assert stored or ready.wait(60)
    return (stored or found)[0]


def test_the_inbox_lists_what_waits_in_every_session(api: Api) -> None:
    first, second = park(api), park(api, "touch more", session="another")
    listed = api.get("/api/inbox").body["requests"]
    assert [(one["request"]["id"], one["task"], one["state"]) for one in listed] == [
        (first, "other", "waiting"),
        (second, "another", "waiting"),
    ]
    assert listed[0]["workspace"] == api.workspace
    assert listed[0]["mode"] == "ask"


def test_an_approval_commits_what_was_shown(api: Api, workspace: Path) -> None:
    request = park(api)
    shown = api.get(f"/api/requests/{request}").body
    assert shown["outdated"] == []
    done = answer(api, request, revision=shown["waiting"]["request"].get("revision", 0))
    assert (done.status, done.body) == (200, {"task": "other", "subject": request, "left": 0})
    assert wait_for_result(api).ok
    assert (workspace / "made").exists()


def test_a_second_answer_is_a_conflict(api: Api) -> None:
    request = park(api)
    assert answer(api, request, "deny").status == 200
    again = answer(api, request)
    assert (again.status, again.body["code"]) == (409, "CONFLICT")


def test_of_two_answers_at_once_one_counts(api: Api) -> None:
    request = park(api)
    found: list[int] = []
    kinds = ("once", "deny")
    threads = [
        threading.Thread(target=lambda kind=kind: found.append(answer(api, request, kind).status)) for kind in kinds
    ]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert sorted(found) == [200, 409]


def test_a_denial_reaches_the_model_with_its_reason(api: Api, workspace: Path) -> None:
    request = park(api)
    assert answer(api, request, "deny", revision=None, reason="use mkdir").status == 200
    result = wait_for_result(api)
    assert result.error is not None
    assert "use mkdir" in result.error.message
    assert not (workspace / "made").exists()


def test_an_approval_without_a_revision_is_refused(api: Api) -> None:
    assert answer(api, park(api), revision=None).status == 400


def test_an_approval_of_an_older_revision_is_refused(api: Api, workspace: Path) -> None:
    request = park(api)
    fresh = api.post(f"/api/requests/{request}/retry", {"command": "touch better"}).body["waiting"]["request"]
    assert (fresh["command"], fresh["revision"]) == ("touch better", 1)
    late = answer(api, request)
    assert (late.status, late.body["details"]) == (409, {"revision": 1})
    assert answer(api, request, revision=1).status == 200
    assert wait_for_result(api).ok
    assert sorted(path.name for path in workspace.iterdir()) == ["better"]


def test_an_outdated_approval_names_the_files(api: Api, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    request = park(api, "sed -i s/one/two/ a.txt")
    (workspace / "a.txt").write_text("other\n")
    assert api.get(f"/api/requests/{request}").body["outdated"] == ["a.txt"]
    refused = answer(api, request)
    assert (refused.status, refused.body["details"]) == (409, {"files": ["a.txt"]})
    assert api.get("/api/inbox").body["requests"][0]["request"]["id"] == request
    assert (workspace / "a.txt").read_text() == "other\n"


def test_only_the_output_is_kept(api: Api, workspace: Path) -> None:
    request = park(api, "touch made; echo done")
    assert answer(api, request, "output").status == 200
    result = wait_for_result(api)
    assert "done" in result.content
    assert not (workspace / "made").exists()


def test_a_grant_covers_the_class_that_was_chosen_and_is_revoked(api: Api) -> None:
    request = park(api, "mkdir one && touch two")
    offered = api.get(f"/api/requests/{request}").body["waiting"]["request"].get("grants", [])
    if len(offered) < 2:
        pytest.skip("nothing to choose from")
    assert answer(api, request, "session", grants=offered[:1]).status == 200
    [grant] = api.get("/api/inbox").body["grants"]
    assert grant["grant"]["command"] == offered[0]
    assert api.delete(f"/api/grants/{grant['id']}").status == 204
    assert api.get("/api/inbox").body["grants"] == []
    assert api.delete(f"/api/grants/{grant['id']}").status == 404


def test_a_grant_that_was_not_offered_is_refused(api: Api) -> None:
    assert answer(api, park(api), "session", grants=["rm"]).status == 400


def test_the_last_answer_of_a_batch_runs_it(api: Api, workspace: Path) -> None:
    now, args = datetime.now(UTC), {"content": "x\n"}
    calls = [
        ToolCall(tool_call_id=f"c{n}", name="write", args={"path": f"{n}.txt", **args}, trace_id="t", timestamp=now)
        for n in range(2)
    ]
    with api.open("other") as rail:
        parked = rail.batch(calls)
    assert isinstance(parked, Parked)
    first, second = (one.id for one in parked.requests)
    assert answer(api, first).body["left"] == 1
    assert not (workspace / "0.txt").exists()
    assert answer(api, second).body["left"] == 0
    wait_for_result(api)
    assert (workspace / "0.txt").exists()


DIES_AFTER_ITS_ANSWER = """
import os, sys
from handrail import Handrail
from handrail.protocol.events import ToolCallPermissionGranted
rail = Handrail(sys.argv[1], session="other", state_dir=sys.argv[2], mode="ask", on_permission="park")
request = rail.call("write", {"path": "a.txt", "content": "a"}).error.details["id"]
rail.subscribe(lambda event: os._exit(9), kinds={ToolCallPermissionGranted})
rail.answer(request, "once")
"""


def test_an_approved_call_whose_process_was_killed_is_run(api: Api, workspace: Path) -> None:
    command = [sys.executable, "-c", DIES_AFTER_ITS_ANSWER, api.workspace, api.state.path]
    assert subprocess.run(command, check=False).returncode == 9
    [waiting] = api.get("/api/inbox").body["requests"]
    assert waiting["state"] == "ready"
    assert not (workspace / "a.txt").exists()
    request = waiting["request"]["id"]
    assert answer(api, request, "deny").status == 409
    assert answer(api, request).status == 200
    assert wait_for_result(api).ok
    assert (workspace / "a.txt").read_text() == "a"
    assert api.get("/api/inbox").body["requests"] == []


def test_an_unknown_request_is_not_found(api: Api) -> None:
    assert api.get("/api/requests/ask_0").status == 404
    assert answer(api, "ask_0").status == 404


def test_a_file_edit_is_answered_too(api: Api, workspace: Path) -> None:
    request = park_write(api, path="b.txt", content="b\n")
    assert api.get(f"/api/requests/{request}").body["outdated"] == []
    assert answer(api, request).status == 200
    assert wait_for_result(api).ok
    assert (workspace / "b.txt").read_text() == "b\n"


def test_only_a_command_is_previewed_again(api: Api) -> None:
    request = park_write(api, path="b.txt", content="b\n")
    assert api.post(f"/api/requests/{request}/retry", {}).status == 409


# Questions


def ask(api: Api, **args: Any) -> str:
    """Leaves a question of another program in the inbox; its id."""
    with api.open("other", settings=ASKING) as rail:
        return rail.call("question", {"question": "Which one?", "options": ["left", "right"], **args}).tool_call_id


@pytest.fixture
def asking(api: Api) -> Api:
    """A server whose models may ask questions."""
    api.host.loaded = structs.replace(api.host.loaded, settings=ASKING)
    return api


def test_a_question_is_listed_and_gets_its_reply_once(asking: Api) -> None:
    question = ask(asking)
    [listed] = asking.get("/api/inbox").body["questions"]
    assert (listed["question"]["toolCallId"], listed["question"]["options"]) == (question, ["left", "right"])
    done = asking.post(f"/api/questions/{question}/reply", {"chosen": ["left"]})
    assert (done.status, done.body) == (200, {"task": "other", "subject": question, "left": 0})
    assert wait_for_result(asking).data == {"chosen": ["left"], "text": None}
    assert asking.post(f"/api/questions/{question}/reply", {"chosen": ["right"]}).status == 409


def test_a_reply_that_is_no_option_leaves_the_question_open(asking: Api) -> None:
    question = ask(asking)
    refused = asking.post(f"/api/questions/{question}/reply", {"text": "neither"})
    assert (refused.status, refused.body["code"]) == (400, "INVALID_ARGUMENT")
    assert len(asking.get("/api/inbox").body["questions"]) == 1


def test_a_question_is_put_aside(asking: Api) -> None:
    assert asking.post(f"/api/questions/{ask(asking)}/reply", {}).status == 200
    assert not wait_for_result(asking).ok


def test_an_unknown_question_is_not_found(api: Api) -> None:
    assert api.post("/api/questions/call-1-00000000000000aa/reply", {"text": "x"}).status == 404


# The model goes on


def test_after_the_last_answer_the_turn_of_the_model_goes_on(api: Api, workspace: Path) -> None:
    api.host.script = [call("write", path="a.txt", content="a\n"), "All done."]
    runner, ended = api.server.runner, threading.Event()
    task = runner.create(api.workspace, "ask", None, None).id
    with runner.rail(task) as rail:
        parked = threading.Event()
        rail.subscribe(lambda event: (parked if event.reason == "parked" else ended).set(), kinds={End})
        runner.prompt(task, "Write it.")
        assert parked.wait(60)
        [waiting] = api.get("/api/inbox").body["requests"]
        assert answer(api, waiting["request"]["id"]).body["left"] == 0
        assert ended.wait(60)
        assert [event.text for event in rail.events() if isinstance(event, End)][-1] == "All done."
    assert (workspace / "a.txt").read_text() == "a\n"
