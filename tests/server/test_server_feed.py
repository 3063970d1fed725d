"""Following a task: every event once, in order, from any number, also for slow readers and after a crash."""

import asyncio
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any

import bench.server
import pytest
from bench.server.followers import Follower, follow, request
from tests.server.handlers import Api, open_api
from tests.server.sockets import open_window, wait_until

from handrail.models.scripted import call
from handrail.protocol.calls import ToolCall
from handrail.protocol.events import Notice
from handrail.server import websocket

DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
FOLLOWERS, STEPS = (200, 1_250) if DEEP else (20, 125)
"""A step of the busy task has four events."""


def create(api: Api, *script: Any) -> str:
    """A task whose first turn has ended."""
    api.host.script = list(script)
    task: str = api.post("/api/tasks", {"prompt": "Work."}).body["id"]
    with open_window(api.url, api.token, task) as window:
        window.take_state("done")
    return task


def tell(api: Api, task: str, *texts: str) -> None:
    """Another process records events."""
    with api.open(task) as rail:
        rail.conversation.tell(*((Notice, {"text": text}) for text in texts))


def read_all(api: Api, task: str) -> list[dict[str, Any]]:
    events, after = list[dict[str, Any]](), 0
    while page := api.get(f"/api/tasks/{task}/events", after=after, limit=3).body:
        events += page["events"]
        if page["next"] == after:
            return events
        after = page["next"]
    raise AssertionError("unreachable")


class Stream:
    """Server-sent events."""

    def __init__(self, response: HTTPResponse) -> None:
        assert response.status == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        self._lines = response

    def __iter__(self) -> Iterator[dict[str, str]]:
        fields: dict[str, str] = {}
        for line in self._lines:
            name, found, value = line.decode().rstrip("\n").partition(": ")
            if found:
                fields[name] = value
            elif fields:
                yield fields
                fields = {}


def open_stream(api: Api, task: str, after: int = 0, **headers: str) -> tuple[HTTPConnection, Stream]:
    client = HTTPConnection(api.url.removeprefix("http://"), timeout=60)
    given = {"Authorization": f"Bearer {api.token}", **headers}
    client.request("GET", f"/api/tasks/{task}/stream?after={after}", headers=given)
    return client, Stream(client.getresponse())


def test_a_follower_gets_the_stored_events_and_then_the_new_ones(api: Api) -> None:
    task = create(api, call("read", path="a.txt"), "Done.", "Again.")
    with open_window(api.url, api.token, task) as window:
        last = window.catch_up()
        assert window.seqs == list(range(1, last + 1))
        assert window.events == read_all(api, task)
        window.ask("prompt", text="More.")
        assert window.take_event("end")["text"] == "Again."
    assert window.seqs == list(range(1, len(window.events) + 1))


def test_a_follower_resumes_after_any_event(api: Api) -> None:
    task = create(api, "Done.")
    tell(api, task, *map(str, range(250)))  # several pages
    for after in (0, 1, 99, 100, 101, 200, 257):
        with open_window(api.url, api.token, task, after) as window:
            last = window.catch_up()
            assert window.seqs == list(range(after + 1, last + 1))
    with open_window(api.url, api.token, task, 10_000) as window:
        window.catch_up()
        tell(api, task, "after all")
        assert window.take_event("notice")["text"] == "after all"
        assert len(window.events) == 1


def test_a_wrong_number_and_an_unknown_task_close_the_connection(api: Api) -> None:
    task = create(api, "Done.")
    with open_window(api.url, api.token, f"{task}", -1) as window:
        assert window.read_to_end() == 4400
    with open_window(api.url, api.token, "nothing") as window:
        assert window.read_to_end() == 4404


def test_events_of_another_process_are_followed(api: Api) -> None:
    task = create(api, "Done.")
    with open_window(api.url, api.token, task) as window:
        window.catch_up()
        with api.open(task) as rail, rail.conversation.lease():
            rail.set_mode("plan")
            assert window.take_state("running")["mode"] == "plan"
        assert window.take_state("done")["mode"] == "plan"


def test_a_stream_has_the_numbers_of_events_as_ids(api: Api) -> None:
    task = create(api, "Done.")
    client, stream = open_stream(api, task)
    taken = list[dict[str, str]]()
    for fields in stream:
        taken.append(fields)
        if fields.get("event") == "caught_up":
            break
    client.close()
    events = [json.loads(fields["data"]) for fields in taken if "event" not in fields]
    assert events == read_all(api, task)
    assert [fields["id"] for fields in taken if "id" in fields] == [str(event["seq"]) for event in events]
    client, stream = open_stream(api, task, 0, **{"Last-Event-ID": str(events[-2]["seq"])})
    assert next(fields["id"] for fields in stream if "id" in fields) == str(events[-1]["seq"])
    client.close()
    assert api.get("/api/tasks/nothing/stream").status == 404


def test_in_a_dialect_a_follower_gets_its_records(workspace: Path, tmp_path: Path) -> None:
    with open_api(workspace, tmp_path / "state", dialect="devminds") as api:
        api.host.script = ["Done.", "Again."]
        task: str = api.post("/api/tasks", {"prompt": "Work."}).body["id"]
        frames = list[dict[str, Any]]()
        with open_window(api.url, api.token, task) as window:
            window.take(
                lambda frame: frames.append(frame) or frame.get("event", {}).get("type") == "agent.run.finished"
            )
        records = [frame["event"] for frame in frames if frame["type"] == "event"]
        assert records == api.get(f"/api/tasks/{task}/events").body["events"]
        numbers = [frame["seq"] for frame in frames if frame["type"] == "event" and "seq" in frame]
        assert numbers == sorted(set(numbers))
        with open_window(api.url, api.token, task, numbers[0]) as window:
            first = window.take(lambda frame: frame["type"] == "event")
        assert first["event"] == records[1]


def test_in_a_dialect_a_follower_may_ask_for_the_events_of_handrail(workspace: Path, tmp_path: Path) -> None:
    with open_api(workspace, tmp_path / "state", dialect="devminds") as api:
        api.host.script = ["Done.", "Again."]
        task: str = api.post("/api/tasks", {"prompt": "Work."}).body["id"]
        with (
            open_window(api.url, api.token, task) as spoken,
            open_window(api.url, api.token, task, query="&events=canonical") as window,
        ):
            first = window.take_event("end")["seq"]
            spoken.take(lambda frame: frame.get("event", {}).get("type") == "agent.run.finished")
            assert window.ask("prompt", text="More.")["type"] == "done"
            last = window.take_event("end")["seq"]
        assert window.seqs == list(range(1, last + 1))
        assert first < last
        assert spoken.events[0].keys() != window.events[0].keys()


def test_a_viewer_follows_and_may_do_nothing(api: Api) -> None:
    task = create(api, "Done.")
    token = api.state.open_tokens().add("eve", "viewer")
    with open_window(api.url, token, task) as window:
        window.catch_up()
        assert window.ask("prompt", text="More.")["code"] == "FORBIDDEN"
        assert window.ask("cancel")["code"] == "FORBIDDEN"


def test_a_frame_that_is_not_valid_is_refused_and_the_connection_stays(api: Api) -> None:
    task = create(api, "Done.", "Again.")
    with open_window(api.url, api.token, task) as window:
        window.catch_up()
        for frame in ("", "{", '{"type":"nothing"}', '{"type":"prompt","id":"f"}', b"\xff", "[" * 10_000):
            window.connection.send(frame)
            assert window.take(lambda one: one["type"] == "error")["code"] == "INVALID_ARGUMENT"
        assert window.ask("answer", request="e0", kind="once")["code"] == "NOT_FOUND"
        assert window.ask("prompt", text="More.")["type"] == "done"
        window.take_event("end")


def test_the_output_of_a_preview_is_shown(api: Api) -> None:
    api.host.script = [call("exec", command="touch made"), "Done."]
    task: str = api.post("/api/tasks", {}).body["id"]
    with api.server.runner.rail(task) as rail:
        if rail.sandbox_tier < 3:
            pytest.skip("commands have no preview here")
    with open_window(api.url, api.token, task) as window:
        window.catch_up()
        api.post(f"/api/tasks/{task}/prompt", {"text": "Work."})
        begun = window.take(lambda frame: frame["type"] == "preview")
        assert begun["output"] == ""
        shown = ToolCall(
            tool_call_id=begun["toolCallId"], name="exec", args={}, trace_id="", timestamp=datetime.now(UTC)
        )
        api.server.runner.feeds.show_output(task, shown, "first")
        assert window.take(lambda frame: frame["type"] == "preview")["output"] == "first"
        window.take_state("waiting")


def test_a_broken_event_is_skipped_and_named(api: Api) -> None:
    task = create(api, "Done.")
    tell(api, task, "one", "two", "three")
    with api.server.runner.rail(task) as rail:
        last = max(event.seq for event in rail.events())
        rail._session.journal.database.run("UPDATE event SET data = X'00' WHERE seq = ?", (last - 1,))
    with open_window(api.url, api.token, task) as window:
        window.catch_up()
        assert window.seqs == [*range(1, last - 1), last]
    assert api.get(f"/api/tasks/{task}/events", limit=200).body["broken"] == [last - 1]


def test_a_client_that_does_not_read_is_dropped_and_resumes(workspace: Path, tmp_path: Path) -> None:
    with open_api(workspace, tmp_path / "state", slow_seconds=0.2) as api:
        task = create(api, "Done.")
        tell(api, task, *("x" * 50_000 for _ in range(400)))  # more than all buffers take
        last: int = api.get(f"/api/tasks/{task}").body["lastSeq"]
        with open_window(api.url, api.token, task, max_queue=1) as window:
            window.take_event("user")
            wait_until(lambda: not api.server.runner.feeds._feeds)
            assert window.read_to_end() == 4408
        assert window.seqs == list(range(1, len(window.seqs) + 1))
        rest = list(window.seqs)
        while rest[-1] < last:
            with open_window(api.url, api.token, task, rest[-1]) as window:
                window.catch_up()
                rest += window.seqs
        assert rest == list(range(1, last + 1))


def test_the_server_lets_go_of_a_client_that_never_reads(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(websocket, "_GOODBYE_SECONDS", 0.2)
    with open_api(workspace, tmp_path / "state", slow_seconds=0.2) as api:
        task = create(api, "Done.")
        tell(api, task, *("x" * 50_000 for _ in range(400)))
        with open_window(api.url, api.token, task, max_queue=1, close_timeout=0.1) as window:
            window.take_event("user")
            port = window.connection.socket.getsockname()[1]
            wait_until(lambda: not is_held(api, port))


def is_held(api: Api, port: int) -> bool:
    """Whether a process has the server's end of a connection. The kernel goes on with what it has accepted."""
    served, other = f":{int(api.url.rpartition(':')[2]):04X}", f":{port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return any(row[1].endswith(served) and row[2].endswith(other) and row[9] != "0" for row in rows)


# Load


def check_order(followers: list[Follower], last: int) -> None:
    for follower in followers:
        assert [each.seq for each in follower.deliveries] == list(range(1, last + 1))


def test_many_followers_of_a_busy_task_get_every_event_once_in_order(tmp_path: Path) -> None:
    with bench.server.serve(str(tmp_path), STEPS, 0.0) as served:
        found = asyncio.run(bench.server.measure(served, FOLLOWERS, FOLLOWERS // 10))
    assert found.events > 4 * STEPS
    assert found.wrong == 0
    assert found.growth < bench.server.GROWTH_LIMIT


def test_followers_resume_without_a_gap_after_the_server_was_killed(tmp_path: Path) -> None:
    asyncio.run(kill_and_resume(str(tmp_path)))


async def kill_and_resume(folder: str) -> None:
    def send(port: int, method: str, path: str, body: Any = None) -> Any:
        return asyncio.to_thread(request, port, method, path, body)

    with bench.server.serve(folder, STEPS, 0.005) as served:
        task = (await send(served.port, "POST", "/api/tasks", {"prompt": "Work."}))["id"]
        before = [await follow(served.port, task) for _ in range(5)]
        while min(len(one.deliveries) for one in before) < STEPS:
            await asyncio.sleep(0.01)
        served.process.kill()
        await asyncio.gather(*(one.ended.wait() for one in before))
    with bench.server.serve(folder, STEPS, 0.0, served.port) as served:
        assert (await send(served.port, "GET", f"/api/tasks/{task}"))["state"] == "interrupted"
        after = [await follow(served.port, task, one.deliveries[-1].seq) for one in before]
        await send(served.port, "POST", f"/api/tasks/{task}/resume")
        await asyncio.gather(*(one.ended.wait() for one in after))
        shown = await send(served.port, "GET", f"/api/tasks/{task}")
    assert shown["state"] == "done"
    for one, other in zip(before, after, strict=True):
        seqs = [each.seq for each in (*one.deliveries, *other.deliveries)]
        assert seqs == list(range(1, shown["lastSeq"] + 1))


def test_a_prompt_to_an_interrupted_task_continues_it(tmp_path: Path) -> None:
    with bench.server.serve(str(tmp_path), 3, 60.0) as served:
        task = request(served.port, "POST", "/api/tasks", {"prompt": "Work."})["id"]
        with open_window(f"http://127.0.0.1:{served.port}", bench.server.program.TOKEN, task) as window:
            window.take_event("text")
            served.process.kill()
    with bench.server.serve(str(tmp_path), 3, 0.0) as served:
        request(served.port, "POST", f"/api/tasks/{task}/prompt", {"text": "Go on."})
        with open_window(f"http://127.0.0.1:{served.port}", bench.server.program.TOKEN, task) as window:
            assert window.take_event("end")["calls"] == 3
