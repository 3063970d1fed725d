"""A server that ends while its tasks work: nothing that it acknowledged is lost, and each turn can be resumed."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import bench.server
import pytest
from bench.server.followers import request
from tests.server.handlers import Api, open_api
from tests.server.sockets import open_window
from tests.server.test_server_tasks import Gate, create, finish

from handrail.models.scripted import ScriptedReply, call
from handrail.server.open_task import OpenTask


def list_prompts(api: Api, task: str) -> list[str]:
    events: list[dict[str, Any]] = api.get(f"/api/tasks/{task}/events", limit=1_000).body["events"]
    return [event["text"] for event in events if event["kind"] == "user"]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_prompt_that_waits_for_a_turn_outlives_the_server(tmp_path: Path, number: int) -> None:
    with bench.server.serve(str(tmp_path), 3, 60.0) as served:
        task = request(served.port, "POST", "/api/tasks", {"prompt": "Work."})["id"]
        with open_window(f"http://127.0.0.1:{served.port}", bench.server.program.TOKEN, task) as window:
            window.take_event("text")
            path = f"/api/tasks/{task}/prompt"
            assert request(served.port, "POST", path, {"text": "And this."})["queued"]
            assert request(served.port, "POST", path, {"text": "And that."})["queued"]
            served.process.send_signal(number)
            served.process.wait()
    with bench.server.serve(str(tmp_path), 3, 0.0) as served:
        assert request(served.port, "GET", f"/api/tasks/{task}")["state"] == "interrupted"
        request(served.port, "POST", f"/api/tasks/{task}/resume")
        with open_window(f"http://127.0.0.1:{served.port}", bench.server.program.TOKEN, task) as window:
            assert window.take_event("end")["reason"] == "done"
        texts = [event["text"] for event in window.events if event["kind"] == "user"]
        assert texts == ["Work.", "And this.", "And that."]


@pytest.mark.parametrize("prompt", ["Work.", None])
def test_a_prompt_is_stored_before_its_turn_begins(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompt: str | None
) -> None:
    async def wait(_task: OpenTask, *_: object, **__: object) -> None:
        await asyncio.sleep(0)

    with monkeypatch.context() as patched, open_api(workspace, tmp_path / "state") as api:
        patched.setattr(OpenTask, "_run_turns", wait)
        task = create(api, prompt=prompt)
        if prompt is None:
            assert api.post(f"/api/tasks/{task}/prompt", {"text": "Work."}).status == 202
    with open_api(workspace, tmp_path / "state") as api:
        assert api.get(f"/api/tasks/{task}").body["state"] == "interrupted"
        api.host.script = ["Done."]
        assert api.post(f"/api/tasks/{task}/resume").status == 202
        finish(api, task)
        assert list_prompts(api, task) == ["Work."]
        assert api.post(f"/api/tasks/{task}/resume").status == 409


def test_prompts_that_were_never_given_to_the_model_are_cancelled(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(_task: OpenTask, *_: object, **__: object) -> None:
        await asyncio.sleep(0)

    with open_api(workspace, tmp_path / "state") as api:
        task = create(api, "Done.")
        finish(api, task)
        monkeypatch.setattr(OpenTask, "_run_turns", wait)
        assert api.post(f"/api/tasks/{task}/prompt", {"text": "More."}).status == 202
        monkeypatch.undo()
        with open_window(api.url, api.token, task) as window:
            window.take_state("interrupted")
            assert api.post(f"/api/tasks/{task}/cancel").status == 202
            window.take_state("done")
            assert "More." in next(event["text"] for event in window.events if event["kind"] == "notice")
        assert list_prompts(api, task) == ["Work."]


def test_a_turn_that_the_end_of_the_server_stops_can_be_resumed(workspace: Path, tmp_path: Path) -> None:
    gate = Gate()
    script = [call("read", path="a.txt"), ScriptedReply(text="First.", waits=gate)]
    with open_api(workspace, tmp_path / "state") as api:
        task = create(api, *script)
        assert gate.reached.wait(60)
    gate.open()
    with open_api(workspace, tmp_path / "state") as api:
        assert api.get(f"/api/tasks/{task}").body["state"] == "interrupted"
        api.host.script = script
        assert api.post(f"/api/tasks/{task}/resume").status == 202
        with open_window(api.url, api.token, task) as window:
            assert window.take_event("end")["text"] == "First."
        kinds = [event["kind"] for event in window.events]
        assert (kinds.count("tool_call.start"), kinds.count("end"), kinds.count("user")) == (1, 1, 1)


def test_a_command_that_the_end_of_the_server_stops_is_told_to_the_model(workspace: Path, tmp_path: Path) -> None:
    script = [call("exec", command="sleep 50"), "Done."]
    with open_api(workspace, tmp_path / "state") as api:
        task = create(api, *script, mode="full")
        with open_window(api.url, api.token, task) as window:
            window.take_event("tool_call.running")
    with open_api(workspace, tmp_path / "state") as api:
        assert api.get(f"/api/tasks/{task}").body["state"] == "interrupted"
        api.host.script = script
        assert api.post(f"/api/tasks/{task}/resume").status == 202
        with open_window(api.url, api.token, task) as window:
            assert window.take_event("end")["text"] == "Done."
        results = [event["result"] for event in window.events if event["kind"].startswith("tool_call.er")]
        assert [result["error"]["code"] for result in results] == ["CANCELLED"]
