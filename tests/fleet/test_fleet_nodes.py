"""Nodes of a fleet: any number of `handrail serve --database URL` over the same sessions."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from fleets import Fleet, run_git
from tests.server.handlers import Host
from tests.server.serve_process import ServeProcess
from tests.server.sockets import open_window, wait_until

import postgres
from handrail.fleet.options import GitWorkspace, RunOptions, SharedFolder
from handrail.fleet.sessions import Outcome, TenantLimits
from handrail.protocol.events import Notice, User
from handrail.server.fleet_tasks import FleetTasks, NodeOptions
from handrail.server.options import ApiFailure
from handrail.server.routes import ROUTES
from handrail.state import StoredState
from handrail.store.transcript import Messages

SHARED = {
    *("info.get_info", "info.get_settings", "info.get_schema", "info.get_document", "calls.list_tools"),
    *("tasks.get_task", "trace.get_trace", "events.list_events", "events.stream_events", "policy.explain"),
}
MANY = "[server]\nwebsockets = 1000\nrequests = 1000\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    with Fleet(tmp_path) as fleet:
        yield fleet


@pytest.fixture
def start(fleet: Fleet, tmp_path: Path) -> Iterator[Callable[..., ServeProcess]]:
    """Starts a node with a state folder of its own."""
    with ExitStack() as stack:

        def start(name: str, *options: str) -> ServeProcess:
            folder = tmp_path / name
            folder.mkdir()
            served = ("--workspace", str(tmp_path / "shared"), "--model", "append:2", "--model", "ask")
            (tmp_path / "shared").mkdir(exist_ok=True)
            words = ("--database", fleet.url, *served, *options)
            return stack.enter_context(ServeProcess(folder, *words, settings=MANY))

        yield start


def post(client: httpx2.Client, path: str, **body: Any) -> Any:
    answer = client.post(path, json=body) if body else client.post(path)
    assert answer.status_code < 300, answer.text
    return answer.json()


def get(client: httpx2.Client, path: str, **query: Any) -> Any:
    answer = client.get(path, params=query) if query else client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def wait_for_state(client: httpx2.Client, task: str, state: str) -> Any:
    wait_until(lambda: get(client, f"/api/tasks/{task}")["state"] == state)
    return get(client, f"/api/tasks/{task}")


def read_codes(answer: httpx2.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


def test_a_task_goes_on_at_another_node(fleet: Fleet, start: Callable[..., ServeProcess], tmp_path: Path) -> None:
    first, second = start("first"), start("second")
    shared = str(tmp_path / "shared")
    fleet.start_worker()
    with first.client() as here, second.client() as there:
        task = post(here, "/api/tasks", prompt="Go on.", workspace=shared, mode="ask")["id"]
        with open_window(first.address, first.token, task) as window:
            asked = window.take_event("tool_call.permission-required")["permission_request"]
            seen = window.seqs
            assert window.take_state("waiting")["waiting"] == 1
        [waiting] = get(there, "/api/inbox")["requests"]
        assert (waiting["task"], waiting["request"]["id"], waiting["workspace"]) == (task, asked["id"], shared)
        stale = there.post(f"/api/requests/{asked['id']}/answer", json={"kind": "once", "revision": 7})
        assert read_codes(stale) == (409, "CONFLICT")
        with open_window(second.address, second.token, task, after=seen[-1]) as window:
            answer = {"kind": "once", "revision": asked.get("revision", 0)}
            assert post(there, f"/api/requests/{asked['id']}/answer", **answer)["left"] == 0
            late = here.post(f"/api/requests/{asked['id']}/answer", json=answer)
            assert late.status_code in {404, 409}
            again = window.take_event("tool_call.permission-required")["permission_request"]
            assert window.ask("answer", request=again["id"], kind="once", revision=0)["type"] == "done"
            window.take_event("end")
            window.take_state("done")
            while window.events[-1]["kind"] != "end":
                window.take_event("end")
            assert seen + window.seqs == list(range(1, window.seqs[-1] + 1))
        events = get(here, f"/api/tasks/{task}/events?after={seen[-1]}")
        assert [event["seq"] for event in events["events"]] == window.seqs[: len(events["events"])]
        assert read_stream(there, task, seen[-1]) == window.seqs
        assert [phase["phase"] for phase in get(there, f"/api/tasks/{task}/trace")["traces"][0]["spans"]]
        assert (tmp_path / "shared" / "log.txt").read_text() == "line-0\nline-1\n"
        listed = get(there, "/api/tasks?state=done&text=go on")
        assert [one["id"] for one in listed["tasks"]] == [task]
        assert listed["tasks"][0]["filesChanged"] == 1
        assert len(get(there, "/api/audit")["records"]) == 2
        checked = post(here, "/api/audit/verify")
        assert checked["intact"]
        assert checked["records"] == 2
        undo_changes(here, there, shared, tmp_path)
        assert get(there, "/api/processes")["processes"] == []
        assert 'handrail_sessions{state="idle"} 1.0' in here.get("/metrics").text
        assert httpx2.get(f"{first.address}/metrics").status_code == 401
        explained = post(there, "/api/policy/explain", command="rm -rf /", workspace=shared)
        assert explained["decision"]["decision"] in {"deny", "ask"}
        for path in (f"/api/tasks/{task}/fork", "/api/call/check"):
            body = {} if "fork" in path else {"name": "read", "args": {}}
            assert read_codes(here.post(path, json=body)) == (422, "UNAVAILABLE")
        assert there.delete(f"/api/tasks/{task}").status_code == 204
        assert here.get(f"/api/tasks/{task}").status_code == 404
        assert get(here, "/api/audit")["records"] == []
    assert first.stop() == 0


def read_stream(client: httpx2.Client, task: str, after: int) -> list[int]:
    """The numbers of the stored events of a stream of server-sent events."""
    ids: list[int] = []
    with client.stream("GET", f"/api/tasks/{task}/stream", headers={"Last-Event-ID": str(after)}) as stream:
        for line in stream.iter_lines():
            if line == "event: caught_up":
                break
            if line.startswith("id: "):
                ids.append(int(line.removeprefix("id: ")))
    return ids


def undo_changes(here: httpx2.Client, there: httpx2.Client, shared: str, tmp_path: Path) -> None:
    """A change of a shared folder is undone on a node that has the folder, and redone on another."""
    changes = get(here, f"/api/changes?workspace={shared}")["changes"]
    assert [one["number"] for one in changes] == [2, 1]
    assert "+line-1" in get(there, f"/api/changes/2?workspace={shared}")["diff"]
    assert post(there, f"/api/changes/2/undo?workspace={shared}", preview=True)["result"] is None
    assert post(there, f"/api/changes/2/undo?workspace={shared}", preview=False)["result"]["ok"]
    assert (tmp_path / "shared" / "log.txt").read_text() == "line-0\n"
    assert post(here, f"/api/redo?workspace={shared}", preview=False)["result"]["ok"]
    assert (tmp_path / "shared" / "log.txt").read_text() == "line-0\nline-1\n"


def test_a_node_has_a_handler_for_each_route_that_reads_the_state_of_one_machine(fleet: Fleet, tmp_path: Path) -> None:
    """A new route has to choose: its handler works for a node as well, or the node has one of its own."""

    async def list_own_handlers() -> set[str]:
        options = NodeOptions(StoredState(str(tmp_path / "state")), (), Host(), print)
        tasks = FleetTasks(options, asyncio.get_running_loop(), fleet.url)
        await tasks.close()
        return set(tasks.handlers)

    own, all_routes = asyncio.run(list_own_handlers()), {route.handler for route in ROUTES}
    assert own <= all_routes
    assert all_routes - own == SHARED


def test_a_clone_is_named_by_its_repository(
    fleet: Fleet, start: Callable[..., ServeProcess], tmp_path: Path, deep: bool
) -> None:
    if not deep:
        pytest.skip("in a deep run")
    repository = fleet.submit_with_repository("append:0", "other")
    url = f"git+{repository}"
    node = start("node", "--workspace", url)
    fleet.start_worker()
    with node.client() as client:
        task = post(client, "/api/tasks", prompt="Go on.", workspace=f"{url}#HEAD~0", mode="auto")
        assert task["workspace"] == f"{url}#HEAD~0"
        wait_for_state(client, task["id"], "done")
        assert len(get(client, "/api/tasks", workspace=url)["tasks"]) == 2
        [last, _] = get(client, "/api/changes", workspace=url, task=task["id"])["changes"]
        path = f"/api/changes/{last['number']}"
        assert read_codes(client.get(path, params={"workspace": url})) == (400, "INVALID_ARGUMENT")
        assert "+line-1" in get(client, path, workspace=url, task=task["id"])["diff"]
        undo = client.post(f"{path}/undo", params={"workspace": url}, json={})
        assert read_codes(undo) == (422, "UNAVAILABLE")
        other = client.post("/api/tasks", json={"prompt": "x", "workspace": "git+https://elsewhere.example/x.git"})
        assert read_codes(other) == (404, "NOT_FOUND")
    assert "line-1" in run_git("show", f"handrail/{task['id']}:log.txt", folder=repository)


def test_a_node_shows_only_what_it_serves_and_counts_a_task_for_its_token(
    fleet: Fleet, start: Callable[..., ServeProcess], tmp_path: Path
) -> None:
    fleet.submit("ask", "hidden")
    node = start("node")
    fleet.start_worker()
    fleet.wait_for("hidden", "waiting")
    shared = str(tmp_path / "shared")
    with node.client() as admin, node.client(node.add_token("team", "operator")) as team:
        assert get(admin, "/api/tasks")["tasks"] == []
        assert get(admin, "/api/inbox") == {"requests": [], "questions": [], "grants": []}
        assert admin.get("/api/tasks/hidden").status_code == 404
        assert admin.get("/api/tasks/hidden/events").status_code == 404
        task = post(team, "/api/tasks", workspace=shared, model="ask")
        assert (task["state"], task["mode"]) == ("idle", "ask")
        assert post(team, f"/api/tasks/{task['id']}/mode", mode="auto")["mode"] == "auto"
        post(team, f"/api/tasks/{task['id']}/prompt", text="Go on.")
        wait_for_state(team, task["id"], "waiting")
        assert post(team, f"/api/tasks/{task['id']}/prompt", text="More.")["queued"]
        fleet.sessions.set_limits("team", TenantLimits(sessions=1))
        refused = team.post("/api/tasks", json={"prompt": "More.", "workspace": shared})
        assert read_codes(refused) == (429, "TOO_MANY")
        [question] = get(team, "/api/inbox")["questions"]
        call = question["question"]["toolCallId"]
        assert read_codes(team.post(f"/api/questions/{call}/reply", json={"chosen": ["c"]})) == (
            400,
            "INVALID_ARGUMENT",
        )
        assert read_codes(admin.delete(f"/api/tasks/{task['id']}")) == (409, "CONFLICT")
        post(team, f"/api/tasks/{task['id']}/cancel")
        assert wait_for_state(team, task["id"], "cancelled")["waiting"] == 0
        [dropped] = [one for one in fleet.events(task["id"]) if isinstance(one, Notice)]
        assert dropped.text.endswith("was dropped: More.")
        assert read_codes(team.post(f"/api/tasks/{task['id']}/cancel")) == (409, "CONFLICT")
        assert read_codes(team.post(f"/api/tasks/{task['id']}/resume")) == (409, "CONFLICT")


def test_a_prompt_for_a_task_at_work_reaches_the_model(
    fleet: Fleet, start: Callable[..., ServeProcess], tmp_path: Path
) -> None:
    node = start("node", "--model", "sleep:1")
    with node.client() as client:
        task = post(
            client, "/api/tasks", prompt="Go on.", workspace=str(tmp_path / "shared"), model="sleep:1", mode="auto"
        )
        for text in ("More.", "And more."):
            assert post(client, f"/api/tasks/{task['id']}/prompt", text=text)["queued"]
        fleet.start_worker()
        wait_for_state(client, task["id"], "done")
    assert [one.text for one in fleet.events(task["id"]) if isinstance(one, User)] == ["Go on.", "More.", "And more."]
    assert fleet.verify(task["id"]) == ()


def fail_before_its_first_event(fleet: Fleet, session: str) -> None:
    claim = fleet.sessions.claim(session, "worker")
    assert claim is not None
    fleet.sessions.release(claim, "failed", Outcome(reason="error", code="INVALID_ARGUMENT", message="no revision"))


def test_tasks_are_found_by_text_although_one_failed_before_its_first_event(fleet: Fleet) -> None:
    options = RunOptions(model="ask", workspace=GitWorkspace("https://git.example/shop.git", "nowhere"))
    session = fleet.sessions.submit("Alpha.", options)
    fail_before_its_first_event(fleet, session)
    fleet.sessions.submit("Beta.", options, session=session)
    assert [one.id for one in fleet.sessions.list_sessions(text="alpha")] == [session]
    assert fleet.sessions.list_sessions(text="beta") == []


def test_prompts_of_several_clients_at_once_are_all_kept(fleet: Fleet) -> None:
    session = fleet.sessions.submit("Go on.", RunOptions(model="ask", workspace=GitWorkspace("https://git.example/x")))
    together = threading.Barrier(8)

    def queue(text: str) -> bool:
        together.wait()
        return fleet.sessions.queue(session, text)

    texts = [f"More {number}." for number in range(8)]
    with ThreadPoolExecutor(8) as clients:
        assert all(clients.map(queue, texts))
    kept = Messages(fleet.sessions.open_view(session)).list_prompts()
    assert sorted(one.text for one in kept) == texts
    assert [one.number for one in kept] == list(range(1, 9))


def test_a_prompt_that_a_failed_turn_left_comes_before_the_next_one(fleet: Fleet) -> None:
    options = RunOptions(model="ask", workspace=GitWorkspace("https://git.example/x"))
    session = fleet.sessions.submit("First.", options)
    assert fleet.sessions.queue(session, "Second.")
    fail_before_its_first_event(fleet, session)
    assert not fleet.sessions.queue(session, "Third.")
    fleet.sessions.submit("Third.", options, session=session)
    assert [one.text for one in fleet.events(session) if isinstance(one, User)] == ["First.", "Second.\n\nThird."]
    assert Messages(fleet.sessions.open_view(session)).list_prompts() == []


@pytest.mark.parametrize(
    ("workspace", "is_shown"),
    [
        (SharedFolder("/srv/site"), True),
        (SharedFolder("/srv/site#private"), False),
        (GitWorkspace("/srv/shop"), True),
        (GitWorkspace("/srv/shop", "fix/#7"), True),
        (GitWorkspace("/srv/shop#private"), False),
    ],
)
def test_a_hash_in_a_name_shows_no_other_workspace(
    fleet: Fleet, tmp_path: Path, workspace: GitWorkspace | SharedFolder, is_shown: bool
) -> None:
    session = fleet.sessions.submit("Go on.", RunOptions(model="ask", workspace=workspace))

    async def list_shown() -> list[str]:
        served = ("/srv/site", "git+/srv/shop")
        options = NodeOptions(StoredState(str(tmp_path / "state")), served, Host(), print)
        tasks = FleetTasks(options, asyncio.get_running_loop(), fleet.url)
        try:
            query = dict.fromkeys(("workspace", "text", "state")) | {"offset": 0, "limit": 10}
            request: Any = SimpleNamespace(query=query)
            return [one.id for one in tasks.list_tasks(request).tasks]
        finally:
            await tasks.close()

    assert asyncio.run(list_shown()) == ([session] if is_shown else [])


def test_no_undo_while_a_task_works_in_the_folder_under_another_name(fleet: Fleet, tmp_path: Path) -> None:
    folder, link = tmp_path / "site", tmp_path / "link"
    folder.mkdir()
    link.symlink_to(folder)
    fleet.sessions.submit("Go on.", RunOptions(model="ask", workspace=SharedFolder(str(folder))))

    async def undo() -> None:
        options = NodeOptions(StoredState(str(tmp_path / "state")), (str(link),), Host(), print)
        tasks = FleetTasks(options, asyncio.get_running_loop(), fleet.url)
        try:
            request: Any = SimpleNamespace(query={"workspace": str(link)}, params={"number": "1"}, body=None)
            tasks.undo_change(request)
        finally:
            await tasks.close()

    with pytest.raises(ApiFailure, match="A task works in this folder"):
        asyncio.run(undo())


def test_a_node_and_its_streams_outlive_a_restart_of_the_database(tmp_path: Path, deep: bool) -> None:
    if not deep:
        pytest.skip("in a deep run")
    server, shared = postgres.Server(), tmp_path / "shared"
    shared.mkdir()
    (tmp_path / "node").mkdir()
    with Fleet(tmp_path, server=server) as fleet:
        words = ("--database", fleet.url, "--workspace", str(shared), "--model", "append:3")
        with ServeProcess(tmp_path / "node", *words) as node, node.client() as client:
            task = post(client, "/api/tasks", workspace=str(shared), mode="auto")["id"]
            with open_window(node.address, node.token, task) as window:
                assert window.catch_up() == 1
                server.stop()
                answers: list[int] = []
                asking = threading.Thread(target=lambda: answers.append(client.get("/api/tasks").status_code))
                asking.start()
                server.start()
                asking.join()
                post(client, f"/api/tasks/{task}/prompt", text="Go on.")
                fleet.start_worker()
                window.take(lambda frame: frame["type"] == "event" and frame["event"]["kind"] == "user")
                window.take_event("end")
                assert window.seqs == list(range(1, window.seqs[-1] + 1))
        assert answers == [200]


def test_listeners_of_one_node_get_every_event_once_and_in_order(
    fleet: Fleet, start: Callable[..., ServeProcess], tmp_path: Path, count: Callable[[int], int]
) -> None:
    """500 in a deep run. Half of them begin while the events come."""
    most, heard = max(20, count(500)), dict[int, list[int]]()
    node = start("node")
    with node.client() as client:
        task = post(client, "/api/tasks", workspace=str(tmp_path / "shared"), mode="auto")["id"]

        def listen(number: int) -> None:
            seqs = heard[number] = []
            with open_window(node.address, node.token, task) as window:
                while not window.events or window.events[-1]["kind"] != "end":
                    window.take(lambda frame: frame["type"] == "event")
            seqs += window.seqs

        listeners = [threading.Thread(target=listen, args=(number,)) for number in range(most)]
        for listener in listeners[: most // 2]:
            listener.start()
        post(client, f"/api/tasks/{task}/prompt", text="Go on.")
        fleet.start_worker()
        for listener in listeners[most // 2 :]:
            listener.start()
        for listener in listeners:
            listener.join()
    assert len(heard) == most
    last = heard[0][-1]
    assert last > 10
    assert all(seqs == list(range(1, last + 1)) for seqs in heard.values())
