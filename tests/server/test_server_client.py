"""The Python client: typed answers, typed refusals, events that go on after a lost connection."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import Path
from socket import SHUT_RDWR

import pytest
from tests.server.handlers import TOKEN, Api, open_api
from tests.server.test_server_trace import make, say
from websockets.sync.server import ServerConnection, serve

from handrail.client import ApiException, Client
from handrail.models.scripted import call
from handrail.protocol.errors import UsageError
from handrail.protocol.events import End, User
from handrail.protocol.wire import encode
from handrail.server import wire


@pytest.fixture
def client(api: Api) -> Client:
    return Client(api.url, api.token)


def test_a_task_runs_to_its_end_with_an_approval(api: Api, client: Client, workspace: Path) -> None:
    api.host.script = [call("write", path="a.txt", content="a\n"), "Done."]
    task = client.create_task("Write it.", mode="ask")
    ends: list[str] = []
    for event in client.follow(task.id):
        if isinstance(event, End) and event.reason == "parked":
            [waiting] = client.get_inbox().requests
            assert client.answer(waiting.request, "once").left == 0
        elif isinstance(event, End):
            ends.append(event.text)
            break
    assert ends == ["Done."]
    assert (workspace / "a.txt").read_text() == "a\n"
    assert client.get_task(task.id).state == "done"
    assert [one.id for one in client.list_tasks(text="write").tasks] == [task.id]
    [change] = client.list_changes(task=task.id).changes
    assert "+a\n" in client.get_change(change.number).diff
    assert client.undo(change.number, preview=True).result is None
    assert client.undo(change.number).diff
    assert client.redo().diff
    [trace] = client.get_trace(task.id).traces
    assert trace.prompt == "Write it."
    assert client.verify_audit().intact
    assert [one and one.name for one in client.list_audit(limit=3).records] == ["write", "undo", "undo"]


def test_questions_about_the_policy_and_calls_have_types(client: Client) -> None:
    assert client.info().caller.role == "admin"
    assert client.explain(wire.PolicyQuestion(command="ls")).decision.decision == "allow"
    assert client.try_rule(wire.NewRule(rule={"id": "a", "deny": "ls"})).calls == 0
    assert "read" in {tool.name for tool in client.list_tools().tools}
    checked = client.check_call(wire.NewCall(name="write", args={"path": "a", "content": "b"}))
    assert checked.request is not None
    assert client.call(wire.NewCall(name="ls", args={"path": "."})).result.ok
    assert client.list_processes().processes == ()


def test_a_refusal_has_its_status_and_code(api: Api, client: Client) -> None:
    with pytest.raises(ApiException) as caught:
        client.get_task("none")
    assert (caught.value.status, caught.value.code) == (404, "NOT_FOUND")
    with pytest.raises(ApiException) as caught:
        Client(api.url, "wrong").info()
    assert (caught.value.status, caught.value.code) == (401, "UNAUTHORIZED")
    with pytest.raises(ApiException) as caught:
        client.redo()
    assert caught.value.code == "NO_CHANGE"
    for token, status in ((TOKEN, 404), ("wrong", 401)):
        with pytest.raises(ApiException) as caught:
            next(Client(api.url, token).follow("none"))
        assert caught.value.status == status


def test_an_address_without_a_scheme_is_refused() -> None:
    with pytest.raises(UsageError, match="http"):
        Client("localhost:7420", TOKEN)


def test_a_server_that_is_not_there_is_an_error() -> None:
    client = Client("http://127.0.0.1:9", TOKEN, timeout=0.2)
    with pytest.raises(OSError, match="refused"):
        client.info()
    with pytest.raises(OSError, match="cannot be reached"):
        next(client.follow("task"))


def test_events_go_on_after_a_restart_of_the_server(workspace: Path, tmp_path: Path) -> None:
    seqs: list[int] = []
    done, stored = threading.Event(), threading.Event()

    def follow(url: str, task: str) -> None:
        for event in Client(url, TOKEN).follow(task):
            seqs.append(event.seq)
            if isinstance(event, End):
                stored.set()
            if isinstance(event, End) and event.text == "Two.":
                done.set()
                return

    with open_api(workspace, tmp_path / "state") as first:
        first.host.script = ["One."]
        client, port = Client(first.url, TOKEN), int(first.url.rpartition(":")[2])
        task = client.create_task("Say one.").id
        thread = threading.Thread(target=follow, args=(first.url, task))
        thread.start()
        assert stored.wait(60)
    with open_api(workspace, tmp_path / "state", port=port) as second:
        second.host.script = ["One.", "Two."]
        client.prompt(task, "Say two.")
        assert done.wait(60)
        thread.join()
        last = client.get_task(task).last_seq
        assert seqs == list(range(1, last + 1))


# Close codes, from a server that closes on purpose


@contextmanager
def closing_server(handle: Callable[[ServerConnection, int], None]) -> Iterator[Client]:
    """`handle` gets each connection with the number that it asked to go on after."""

    def answer(connection: ServerConnection) -> None:
        assert connection.request is not None
        handle(connection, int(connection.request.path.rpartition("=")[2]))

    with serve(answer, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Client(f"http://127.0.0.1:{server.socket.getsockname()[1]}", TOKEN)
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("code", [wire.Closing.SLOW, wire.Closing.RESTARTING, 1001, None])
def test_a_client_goes_on_after_its_last_event(code: int | None) -> None:
    def handle(connection: ServerConnection, after: int) -> None:
        for seq in (after + 1, after + 2):
            connection.send(encode(wire.EventFrame(event=say(seq, seq, "text"))).decode())
        if code is None:
            connection.socket.shutdown(SHUT_RDWR)
        else:
            connection.close(code)

    with closing_server(handle) as client:
        assert [event.seq for event in islice(client.follow("task", 10), 6)] == [11, 12, 13, 14, 15, 16]


@pytest.mark.parametrize("code", [wire.Closing.UNAUTHORIZED, wire.Closing.FORBIDDEN, wire.Closing.NOT_FOUND])
def test_a_client_that_is_refused_does_not_come_again(code: int) -> None:
    with closing_server(lambda connection, _: connection.close(code, "for a reason")) as client:
        with pytest.raises(ApiException, match="for a reason") as caught:
            next(client.follow("task"))
        assert caught.value.status == code - 4_000


def test_other_frames_come_with_the_events() -> None:
    def handle(connection: ServerConnection, _after: int) -> None:
        connection.send(encode(wire.EventFrame(event=make(User, 1, 0, message_id="m", text="a"))).decode())
        connection.send(encode(wire.CaughtUpFrame(seq=1)).decode())
        connection.recv()

    with closing_server(handle) as client:
        frames = client.follow_frames("task")
        kinds = [*takewhile(lambda frame: not isinstance(frame, wire.CaughtUpFrame), frames)]
        frames.close()  # type: ignore[attr-defined]
    assert [type(frame) for frame in kinds] == [wire.EventFrame]


def test_a_method_takes_the_arguments_of_its_signature(client: Client) -> None:
    task = client.create_task(workspace=client.info().workspaces[0]).id
    assert client.set_mode(task, "plan").mode == "plan"
    first, *rest = [event["seq"] for event in client.list_events(task).events]
    assert [event["seq"] for event in client.list_events(task, first).events] == rest
    assert [event["seq"] for event in client.list_events(task, limit=1).events] == [first]
    for ask in (client.get_task, lambda: client.get_task(task, 1), lambda: client.get_task(task, before=1)):
        with pytest.raises(TypeError):
            ask()
    assert client.delete_task(task) is None
