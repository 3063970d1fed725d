"""What a client does to harm the server, or by accident: races, floods, modes that it may not choose."""

import resource
import socket
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
import pytest
from msgspec.structs import replace
from tests.server.handlers import Api
from tests.server.serve_process import PATIENCE, TOKEN, ServeProcess
from tests.server.sockets import open_window, wait_until
from tests.server.test_server_feed import is_held, tell
from tests.server.test_server_tasks import Gate, create, finish

from handrail import Handrail
from handrail.mcp.http import listener
from handrail.models.scripted import ScriptedReply, call
from handrail.policy.config import Rule
from handrail.server import runner
from handrail.settings import LoadedSettings, Settings
from handrail.settings.model import Tools

PARTS = bytes([0x00, 0x80, 0, 0, 0, 0]) * 20_000
"""Empty parts of a message that does not end."""
PINGS = (bytes([0x89, 0x80 | 125, 0, 0, 0, 0]) + b"p" * 125) * 500
_Result = TypeVar("_Result")


def at_once(number: int, act: Callable[[int], _Result]) -> list[_Result]:
    with ThreadPoolExecutor(number) as threads:
        return list(threads.map(act, range(number)))


# Races


def test_prompts_that_come_at_once_are_all_given_to_the_model(api: Api) -> None:
    gate = Gate()
    task = create(api, ScriptedReply(text="Done.", waits=gate), *["Done."] * 5, prompt=None)
    accepted = at_once(6, lambda number: api.post(f"/api/tasks/{task}/prompt", {"text": f"Prompt {number}."}))
    gate.open()
    assert [one.status for one in accepted] == [202] * 6
    assert [one.body["queued"] for one in accepted].count(False) == 1
    finish(api, task)
    events = api.get(f"/api/tasks/{task}/events", limit=1_000).body["events"]
    given = "".join(event["text"] for event in events if event["kind"] == "user")
    assert all(f"Prompt {number}." in given for number in range(6))


def test_a_task_removed_by_many_at_once_is_removed_once(api: Api) -> None:
    task = create(api, prompt=None)
    assert sorted(one.status for one in at_once(6, lambda _: api.delete(f"/api/tasks/{task}"))) == [204] + [404] * 5


# Floods


def test_only_so_many_prompts_wait_for_a_turn(api: Api) -> None:
    gate = Gate()
    task = create(api, ScriptedReply(text="Done.", waits=gate))
    assert gate.reached.wait(PATIENCE)
    status = [api.post(f"/api/tasks/{task}/prompt", {"text": "x" * 300_000}).status for _ in range(5)]
    assert status == [202] * 3 + [429] * 2
    assert api.post(f"/api/tasks/{task}/cancel").status == 202
    gate.open()
    finish(api, task, "cancelled")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeProcess]:
    with ServeProcess(tmp_path_factory.mktemp("attacks")) as one:
        yield one


@contextmanager
def raw_socket(server: ServeProcess, path: str, token: str = "") -> Generator[socket.socket]:
    """A WebSocket after its handshake, without a library that keeps to the protocol."""
    header = f"Authorization: Bearer {token}\r\n" if token else ""
    with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as connection:
        head = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n{header}Connection: Upgrade\r\n"
            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDAwMDAwMDAwMDAwMDAwMA==\r\n\r\n"
        )
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 101"
        yield connection


@pytest.mark.parametrize(("beginning", "flood"), [(b"", PINGS), (bytes([0x01, 0x80, 0, 0, 0, 0]), PARTS)])
@pytest.mark.parametrize("token", [TOKEN, ""])
def test_frames_without_end_take_no_memory(server: ServeProcess, beginning: bytes, flood: bytes, token: str) -> None:
    with server.client() as client:
        task = client.post("/api/tasks", json={}).json()["id"]
    before = read_memory(server)
    with raw_socket(server, f"/ws/{task}", token) as connection:
        try:
            for _ in range((24 << 20) // len(flood)):
                connection.sendall(beginning + flood)
                beginning = b""
        except OSError:  # the server hung up
            pass
        with server.client() as client:
            assert client.get("/healthz").status_code == 200  # it has read the rest
        assert read_memory(server) - before < 12 << 20


def read_memory(server: ServeProcess) -> int:
    lines = Path(f"/proc/{server.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmRSS"))


def test_the_server_lets_go_of_an_event_stream_that_nobody_reads(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listener, "UNREAD_SECONDS", 1)
    task = create(api, prompt=None)
    tell(api, task, *("x" * 50_000 for _ in range(400)))
    address = ("127.0.0.1", int(api.url.rpartition(":")[2]))
    with socket.create_connection(address, PATIENCE) as connection:
        head = f"GET /api/tasks/{task}/stream HTTP/1.1\r\nHost: {address[0]}:{address[1]}\r\n"
        connection.sendall(f"{head}Authorization: Bearer {api.token}\r\n\r\n".encode())
        assert connection.recv(15) == b"HTTP/1.1 200 OK"
        wait_until(lambda: not is_held(api, connection.getsockname()[1]))


def test_many_streams_do_not_use_up_the_descriptors(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, before[1]))  # as a shell gives it, in small
    try:
        server = ServeProcess(tmp_path, settings="[server]\nrequests = 10_000\n")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    with server, server.client() as client, ExitStack() as held:
        for _ in range(60):  # two descriptors for each stream, and eight for each session
            held.enter_context(server.follow(client.post("/api/tasks", json={}).json()["id"]))
        with server.client() as other:
            assert other.get("/api/info").status_code == 200


# What a role may not do


def test_a_fork_gives_an_operator_no_mode_that_only_an_admin_may_choose(server: ServeProcess) -> None:
    with server.client() as admin, server.client(server.add_token("ann", "operator")) as operator:
        task = admin.post("/api/tasks", json={"mode": "full"}).json()["id"]
        refused = operator.post(f"/api/tasks/{task}/fork", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN")
        assert admin.post(f"/api/tasks/{task}/fork", json={}).json()["mode"] == "full"


def test_an_operator_gives_no_work_to_a_task_whose_mode_only_an_admin_may_choose(api: Api) -> None:
    api.host.loaded = replace(api.host.loaded, settings=Settings(tools=Tools(enable=("question",))))
    asking = call("question", question="Which one?", options=["left", "right"])
    question = finish(api, create(api, asking, "Done.", mode="full"), "waiting")["id"]
    request = finish(api, create(api, call("write", path="b.txt", content="b\n"), "Done."), "waiting")["id"]
    assert api.post(f"/api/tasks/{request}/mode", {"mode": "full"}).status == 200
    inbox = api.get("/api/inbox").body
    asked, question_id = inbox["requests"][0]["request"]["id"], inbox["questions"][0]["question"]["toolCallId"]
    token = api.state.open_tokens().add("ann", "operator")
    body = {"name": "ls", "args": {"path": "."}, "task": question}
    work: dict[str, dict[str, Any]] = {
        f"/api/tasks/{question}/prompt": {"text": "left"},
        f"/api/tasks/{question}/resume": {},
        f"/api/tasks/{question}/fork": {},
        f"/api/questions/{question_id}/reply": {"chosen": ["left"]},
        f"/api/requests/{asked}/answer": {"kind": "once", "revision": 0},
        f"/api/requests/{asked}/retry": {},
        "/api/call": body,
        "/api/call/check": body,
    }
    with httpx2.Client(base_url=api.url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as operator:
        for path, given in work.items():
            has_body = not path.endswith("/resume")
            refused = operator.post(path, json=given) if has_body else operator.post(path)
            assert (refused.status_code, refused.json()["code"]) == (403, "FORBIDDEN"), path
            assert "full" in refused.json()["message"]
        with open_window(api.url, token, question) as window:
            assert window.ask("prompt", text="left")["code"] == "FORBIDDEN"
            assert window.ask("reply", question=question_id, chosen=["left"])["code"] == "FORBIDDEN"
            assert window.ask("answer", request=asked, kind="deny")["code"] == "FORBIDDEN"
        assert api.get("/api/inbox").body == inbox
        assert operator.post(f"/api/tasks/{request}/mode", json={"mode": "ask"}).status_code == 200
        assert operator.post(f"/api/requests/{asked}/answer", json=work[f"/api/requests/{asked}/answer"]).is_success
        assert operator.post(f"/api/tasks/{question}/cancel").status_code == 202
    finish(api, question, "cancelled")


def test_an_operator_answers_no_request_that_another_program_made_in_the_mode_full(api: Api) -> None:
    rule = Rule(id="mine", verdict="confirm", tool="write", pattern="*", layer="user")
    loaded = LoadedSettings(settings=Settings(mode="full"), sources={}, rules=(rule,))
    with api.open("shell", mode=None, settings=loaded) as rail:
        assert not rail.write("b.txt", "b\n").ok
    [waiting] = api.get("/api/inbox").body["requests"]
    assert waiting["mode"] == "full"
    token = api.state.open_tokens().add("ann", "operator")
    with httpx2.Client(base_url=api.url, headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE) as operator:
        path = f"/api/requests/{waiting['request']['id']}/answer"
        assert operator.post(path, json={"kind": "once", "revision": 0}).status_code == 403
        assert operator.post("/api/tasks/shell/prompt", json={"text": "Work."}).status_code == 403
    assert api.post(path, {"kind": "once", "revision": 0}).status == 200


def test_a_task_that_cannot_be_opened_leaves_no_folder(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_MAX_OPEN", 0)
    assert api.post("/api/tasks", {}).status == 503
    home = Path(api.state.home(api.workspace))
    assert not home.exists() or not [one for one in home.iterdir() if one.is_dir()]


def test_a_prompt_without_a_model_leaves_no_task(tmp_path: Path) -> None:
    with ServeProcess(tmp_path) as server, server.client() as client:
        assert client.post("/api/tasks", json={"prompt": "Work."}).status_code == 400
        assert client.get("/api/tasks").json()["total"] == 0


def test_the_audit_of_other_folders_is_only_for_an_admin(server: ServeProcess, tmp_path: Path) -> None:
    state = server.environment["HANDRAIL_STATE_DIR"]
    for folder, name in ((server.workspace, "own.txt"), (tmp_path, "other.txt")):
        with Handrail(folder, state_dir=state, settings=Settings(), mode="auto") as rail:
            rail.write(name, "x\n")
    for role, seen in (("viewer", ["own.txt"]), ("operator", ["own.txt"]), ("admin", ["own.txt", "other.txt"])):
        with server.client(server.add_token(f"reader-{role}", role)) as client:
            records = client.get("/api/audit").json()["records"]
        assert [path for one in records for path in one["files_changed"]] == seen


# The end


@pytest.mark.parametrize("in_task", [True, False])
def test_a_signal_cancels_direct_calls(tmp_path: Path, *, in_task: bool) -> None:
    started = ServeProcess(tmp_path, "--mode", "full", settings="[server]\ndirect_calls = true\n")
    with started as server, ThreadPoolExecutor(1) as threads, server.client() as client, server.client() as other:
        task = client.post("/api/tasks", json={}).json()["id"] if in_task else None
        body = {"name": "exec", "args": {"command": "sleep 50"}, "task": task}
        response = threads.submit(client.post, "/api/call", json=body)
        events = f"/api/tasks/{task or 'server-owner'}/events"
        wait_until(lambda: "tool_call.running" in other.get(events).text)
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 30
        assert response.exception() is not None or response.result().json()["result"]["ok"] is False
