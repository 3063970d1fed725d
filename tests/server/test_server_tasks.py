"""Tasks over HTTP: turns run, wait for answers, go on, are cancelled, forked and removed."""

import asyncio
import threading
from typing import Any

import pytest
from msgspec.structs import replace
from tests.server.handlers import Api
from tests.server.sockets import Window, open_window, wait_until

from handrail.models.base import ModelError, ModelRequest
from handrail.models.scripted import ScriptedReply, call
from handrail.protocol.messages import ResultsMessage, UserMessage
from handrail.server import runner
from handrail.settings import Settings
from handrail.settings.model import Tools

WRITE = call("write", path="b.txt", content="new\n")


class Gate:
    """Lets a model wait in the middle of its answer."""

    def __init__(self) -> None:
        self.reached, self._open = threading.Event(), threading.Event()

    async def __call__(self, _number: int) -> None:
        self.reached.set()
        await asyncio.to_thread(self._open.wait, 60)

    def open(self) -> None:
        self._open.set()


def create(api: Api, *script: Any, prompt: str | None = "Work.", **fields: Any) -> str:
    api.host.script = list(script)
    response = api.post("/api/tasks", {"prompt": prompt, **fields} if prompt else fields)
    assert response.status == 201, response
    return response.body["id"]


def follow(api: Api, task: str, after: int = 0):
    return open_window(api.url, api.token, task, after)


def finish(api: Api, task: str, state: str = "done") -> dict[str, Any]:
    with follow(api, task) as window:
        return window.take_state(state)


def find_request(window: Window) -> str:
    return window.take_event("tool_call.permission-required")["permission_request"]["id"]


def approve(window: Window, request: str) -> dict[str, Any]:
    return window.ask("answer", request=request, kind="once", revision=0)


def test_a_task_runs_its_first_prompt_to_the_end(api: Api) -> None:
    task = create(api, call("read", path="a.txt"), "Done.", prompt="Look at it.\nThen stop.")
    done = finish(api, task)
    assert (done["title"], done["mode"], done["model"], done["here"]) == ("Look at it.", "ask", "scripted:script", True)
    listed = api.get("/api/tasks", text="look AT", state="done").body
    assert [one["id"] for one in listed["tasks"]] == [task]
    assert api.get("/api/tasks", state="running").body == {"tasks": [], "total": 0}


def test_a_task_without_a_prompt_waits_for_it(api: Api) -> None:
    task = create(api, "Done.", prompt=None, mode="plan")
    assert api.get(f"/api/tasks/{task}").body["state"] == "idle"
    assert [one["id"] for one in api.get("/api/tasks").body["tasks"]] == [task]
    accepted = api.post(f"/api/tasks/{task}/prompt", {"text": "Go."})
    assert (accepted.status, accepted.body["queued"]) == (202, False)
    assert finish(api, task)["mode"] == "plan"


def test_a_prompt_during_a_turn_reaches_the_model_with_its_next_results(api: Api) -> None:
    gate, seen = Gate(), list[ModelRequest]()

    def look(request: ModelRequest) -> str:
        seen.append(request)
        return "Done."

    task = create(api, ScriptedReply(calls=(("ls", {"path": "."}),), waits=gate), look)
    assert gate.reached.wait(60)
    assert api.post(f"/api/tasks/{task}/prompt", {"text": "And be quick."}).body["queued"]
    gate.open()
    finish(api, task)
    results, steering = seen[0].messages[-2:]
    assert isinstance(results, ResultsMessage)
    assert isinstance(steering, UserMessage)
    assert steering.text == "And be quick."


def test_a_prompt_that_comes_too_late_for_a_turn_starts_the_next_one(api: Api) -> None:
    gate = Gate()
    task = create(api, ScriptedReply(text="First.", waits=gate), "Second.")
    assert gate.reached.wait(60)
    assert api.post(f"/api/tasks/{task}/prompt", {"text": "More."}).body["queued"]
    gate.open()
    with follow(api, task) as window:
        assert [window.take_event("end")["text"] for _ in range(2)] == ["First.", "Second."]


def test_a_request_waits_in_the_journal_and_the_turn_goes_on_after_its_answer(api: Api) -> None:
    task = create(api, WRITE, "Done.")
    with follow(api, task) as window:
        request = find_request(window)
        assert window.take_state("waiting")["waiting"] == 1
        assert approve(window, request)["type"] == "done"
        done = window.take_state("done")
    assert (done["filesChanged"], done["waiting"]) == (1, 0)


def test_a_question_gets_its_reply_over_the_socket(api: Api) -> None:
    api.host.loaded = replace(api.host.loaded, settings=Settings(tools=Tools(enable=("question",))))
    task = create(api, call("question", question="Which one?", options=["left", "right"]), "Done.")
    with follow(api, task) as window:
        question = window.take_event("tool_call.question-required")["tool_call_id"]
        window.take_state("waiting")
        assert window.ask("reply", question=question, text="neither")["code"] == "INVALID_ARGUMENT"
        assert window.ask("reply", question=question, chosen=["left"])["type"] == "done"
        assert window.ask("reply", question=question, chosen=["right"])["code"] == "CONFLICT"
        window.take_state("done")


def test_of_two_windows_that_answer_a_request_exactly_one_counts(api: Api) -> None:
    task = create(api, WRITE, "Done.")
    with follow(api, task) as one, follow(api, task) as other:
        request = find_request(one)
        one.take_state("waiting")
        replies: list[dict[str, Any]] = []
        threads = [threading.Thread(target=lambda w=w: replies.append(approve(w, request))) for w in (one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(reply["type"] for reply in replies) == ["done", "error"]
        assert next(reply for reply in replies if reply["type"] == "error")["code"] == "CONFLICT"
    finish(api, task)
    events = api.get(f"/api/tasks/{task}/events", limit=1_000).body["events"]
    assert [event["kind"] for event in events].count("tool_call.permission-granted") == 1


def test_the_turn_goes_on_after_the_last_of_two_answers_given_at_once(api: Api) -> None:
    task = create(api, [WRITE, call("write", path="c.txt", content="new\n")], "Done.")
    with follow(api, task) as one, follow(api, task) as other:
        requests = [find_request(one), find_request(one)]
        threads = [threading.Thread(target=approve, args=pair) for pair in zip((one, other), requests, strict=True)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert finish(api, task)["filesChanged"] == 2


def test_an_answer_to_a_call_of_a_person_leaves_the_running_turn_alone(api: Api) -> None:
    gate = Gate()
    task = create(api, WRITE, ScriptedReply(text="Done.", waits=gate))
    with follow(api, task) as window:
        first = find_request(window)
        window.take_state("waiting")
        args = {"path": "c.txt", "content": "new\n"}
        assert not api.post("/api/call", {"task": task, "name": "write", "args": args}).body["result"]["ok"]
        second = find_request(window)
        approve(window, first)
        assert gate.reached.wait(60)
        approve(window, second)
        wait_until(lambda: api.get(f"/api/tasks/{task}").body["filesChanged"] == 2)
        gate.open()
        assert window.take_event("end")["text"] == "Done."
        window.take_state("done")
        wait_until(lambda: not api.server.runner.find_live(task).is_busy)
        assert api.server.runner.find_live(task).failure == ""


def test_a_running_turn_is_cancelled(api: Api) -> None:
    gate = Gate()
    task = create(api, ScriptedReply(text="First.", waits=gate), "Second.")
    assert gate.reached.wait(60)
    api.post(f"/api/tasks/{task}/prompt", {"text": "Too late."})
    assert api.post(f"/api/tasks/{task}/cancel").status == 202
    with follow(api, task) as window:
        window.take_state("cancelled")
        assert "Too late." in next(event["text"] for event in window.events if event["kind"] == "notice")
    gate.open()
    assert api.post(f"/api/tasks/{task}/cancel").body["code"] == "CONFLICT"


def test_cancelling_a_waiting_turn_denies_its_requests(api: Api) -> None:
    task = create(api, WRITE, "Done.")
    with follow(api, task) as window:
        window.take_state("waiting")
        assert window.ask("cancel")["type"] == "done"
        assert window.take_state("cancelled")["waiting"] == 0
    assert api.get("/api/inbox").body["requests"] == []


def test_a_failed_turn_is_resumed(api: Api) -> None:
    failure = ModelError("UNAVAILABLE", "The provider is away.")
    task = create(api, ScriptedReply(text="First.", fails=(failure,)))
    assert finish(api, task, "failed")["reason"] == "The provider is away."
    assert api.post(f"/api/tasks/{task}/resume").status == 202
    finish(api, task)
    assert api.post(f"/api/tasks/{task}/resume").body["code"] == "CONFLICT"


def test_a_fork_has_the_transcript_before_a_prompt(api: Api) -> None:
    task = create(api, "First.", "Second.")
    finish(api, task)
    api.post(f"/api/tasks/{task}/prompt", {"text": "More."})
    with follow(api, task) as window:
        prompts = [window.take_event("user")["seq"] for _ in range(2)]
        window.take_event("end")
    whole = api.post(f"/api/tasks/{task}/fork", {}).body
    part = api.post(f"/api/tasks/{task}/fork", {"before": prompts[1]}).body
    none = api.post(f"/api/tasks/{task}/fork", {"before": prompts[0]}).body
    assert [one["title"] for one in (whole, part, none)] == ["Work.", "Work.", ""]
    assert api.post(f"/api/tasks/{task}/fork", {"before": prompts[1] + 1}).status == 400
    counts = [len(api.open(one["id"]).conversation.messages()) for one in (whole, part, none)]
    assert counts[0] > counts[1] > counts[2] == 0


def test_only_an_idle_task_is_removed(api: Api) -> None:
    gate = Gate()
    task = create(api, ScriptedReply(text="First.", waits=gate))
    assert gate.reached.wait(60)
    assert api.delete(f"/api/tasks/{task}").body["code"] == "CONFLICT"
    gate.open()
    finish(api, task)
    with follow(api, task) as window:
        window.catch_up()
        assert api.delete(f"/api/tasks/{task}").status == 204
        assert window.read_to_end() == 4404
    assert api.get(f"/api/tasks/{task}").status == 404


def test_a_task_in_which_another_process_works_is_left_to_it(api: Api) -> None:
    task = create(api, "First.", "Second.")
    finish(api, task)
    with api.open(task) as rail, rail.conversation.lease():
        assert api.get(f"/api/tasks/{task}").body["state"] == "running"
        assert api.post(f"/api/tasks/{task}/prompt", {"text": "More."}).body["code"] == "CONFLICT"
        assert api.post(f"/api/tasks/{task}/cancel").body["code"] == "CONFLICT"
    assert api.post(f"/api/tasks/{task}/prompt", {"text": "More."}).status == 202


def test_the_mode_of_a_task_outlives_its_session(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_MAX_OPEN", 1)
    task = create(api, "First.", prompt=None)
    assert api.post(f"/api/tasks/{task}/mode", {"mode": "auto"}).body["mode"] == "auto"
    with follow(api, task) as window:
        create(api, prompt=None)
        assert window.take(lambda frame: frame["type"] == "task" and not frame["task"]["here"])
    api.post(f"/api/tasks/{task}/prompt", {"text": "Work."})
    with api.server.runner.rail(task) as rail:
        assert rail.mode == "auto"


def test_an_idle_session_is_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_IDLE_SECONDS", 0.0)
    monkeypatch.setattr(runner, "_LOOK_SECONDS", 0.01)
    task = create(api, "First.")
    with follow(api, task) as window:
        window.take(lambda frame: frame["type"] == "task" and not frame["task"]["here"])
        assert api.get(f"/api/tasks/{task}").body["state"] == "done"


def test_ids_that_lead_elsewhere_name_no_task(api: Api) -> None:
    for spelled in ("..", "%2e%2e%2f", "a%2fb", "x" * 65, "nothing"):
        assert api.get(f"/api/tasks/{spelled}").status == 404
