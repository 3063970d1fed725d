"""The official client asks its person, in both eras, against the real server; and the real command line answers."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import mcp_types
import pytest
from mcp import Client, StdioServerParameters

ERAS = ("legacy", "2026-07-28")
every_era = pytest.mark.parametrize("era", ERAS)
COMMAND = {"command": "echo said; echo b >> a.txt"}
DEADLINE = 60


class Place:
    """A workspace and a state folder, with the server and the command line over them."""

    def __init__(self, folder: Path, workspace: Path) -> None:
        self.workspace = workspace
        self.environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.pathsep.join(sys.path),
            "HOME": str(folder),
            "HANDRAIL_STATE_DIR": str(folder / "state"),
            "HANDRAIL_CONFIG": str(folder / "config.toml"),
            "HANDRAIL_NOTIFY": "off",
        }
        (folder / "config.toml").write_text('[mcp]\npermission_wait = "10 min"\n')
        (workspace / "a.txt").write_text("a\n")

    def server(self, *words: str) -> StdioServerParameters:
        args = ["-m", "handrail", "mcp", "--workspace", str(self.workspace), *words]
        return StdioServerParameters(command=sys.executable, args=args, env=self.environment)

    def run(self, *words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-m", "handrail", *words],
            cwd=self.workspace,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE,
        )
        return done.returncode, done.stdout + done.stderr

    def approvals(self) -> list[dict[str, Any]]:
        code, told = self.run("approvals", "--json")
        assert code == 0, told
        return json.loads(told)["waiting"]

    @property
    def text(self) -> str:
        return (self.workspace / "a.txt").read_text()


@pytest.fixture
def place(tmp_path: Path, workspace: Path) -> Place:
    return Place(tmp_path, workspace)


class Person:
    """Answers forms, one after the other, and remembers what they said."""

    def __init__(self, *replies: dict[str, Any]) -> None:
        self.shown: list[mcp_types.ElicitRequestFormParams] = []
        self._replies = list(replies)

    async def __call__(self, _: Any, params: Any) -> mcp_types.ElicitResult:
        self.shown.append(params)
        return mcp_types.ElicitResult(**self._replies.pop(0))


def accepts(answer: str, **more: Any) -> dict[str, Any]:
    return {"action": "accept", "content": {"answer": answer, **more}}


def play(
    place: Place,
    era: str,
    person: Person | None,
    scene: Callable[[Client], Awaitable[None]],
    words: tuple[str, ...] = ("--mode", "ask"),
) -> None:
    async def run() -> None:
        info = mcp_types.Implementation(name="Claude Code", version="1")
        server = place.server(*words)
        async with asyncio.timeout(2 * DEADLINE):
            async with Client(server, mode=era, elicitation_callback=person, client_info=info) as client:
                await scene(client)

    asyncio.run(run())


def error_of(result: Any) -> str:
    return result.structured_content["error"]["code"]


@every_era
def test_a_person_keeps_what_a_command_did(place: Place, era: str) -> None:
    person = Person(accepts("once"))

    async def scene(client: Client) -> None:
        result = await client.call_tool("exec", COMMAND)
        assert not result.is_error
        assert result.structured_content is not None
        assert result.structured_content["ok"]
        assert "said" in result.content[0].text  # pyright: ignore

    play(place, era, person, scene)
    assert place.text == "a\nb\n"
    [form] = person.shown
    assert "$ echo said; echo b >> a.txt" in form.message
    assert "Your files are untouched" in form.message
    assert not place.approvals()
    code, told = place.run("audit", "verify")
    assert code == 0, told


@every_era
def test_a_person_says_no_in_a_form_or_by_declining_it(place: Place, era: str) -> None:
    person = Person(accepts("deny", reason="not here"), {"action": "decline"})

    async def scene(client: Client) -> None:
        no = await client.call_tool("exec", COMMAND)
        assert error_of(no) == "PERMISSION_DENIED"
        assert "not here" in no.content[0].text  # pyright: ignore
        assert error_of(await client.call_tool("exec", COMMAND)) == "PERMISSION_DENIED"

    play(place, era, person, scene)
    assert place.text == "a\n"


@every_era
def test_a_person_takes_only_the_output(place: Place, era: str) -> None:
    async def scene(client: Client) -> None:
        result = await client.call_tool("exec", COMMAND)
        assert "said" in result.content[0].text  # pyright: ignore

    play(place, era, Person(accepts("output")), scene)
    assert place.text == "a\n"


@every_era
def test_a_yes_for_the_session_is_asked_for_once(place: Place, era: str) -> None:
    person = Person(accepts("session"))

    async def scene(client: Client) -> None:
        assert not (await client.call_tool("exec", {"command": "mkdir one"})).is_error
        assert not (await client.call_tool("exec", {"command": "mkdir two"})).is_error

    play(place, era, person, scene)
    assert len(person.shown) == 1
    assert (place.workspace / "two").is_dir()


@every_era
def test_calls_at_the_same_time_that_all_ask_are_each_answered(place: Place, era: str) -> None:
    answers = {"0.txt": "once", "1.txt": "deny", "2.txt": "once", "3.txt": "once"}

    async def person(_: Any, params: Any) -> mcp_types.ElicitResult:
        name = next(name for name in answers if name in params.message)
        return mcp_types.ElicitResult(**accepts(answers[name]))

    async def scene(client: Client) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = {
                name: group.create_task(client.call_tool("write", {"path": name, "content": "x\n"})) for name in answers
            }
        assert [name for name, task in tasks.items() if task.result().is_error] == ["1.txt"]

    play(place, era, person, scene)  # pyright: ignore
    assert sorted(one.name for one in place.workspace.iterdir()) == ["0.txt", "2.txt", "3.txt", "a.txt"]


@every_era
@pytest.mark.parametrize("words", [("--mode", "plan")])
def test_a_mode_that_asks_nobody_asks_nobody(place: Place, era: str, words: tuple[str, ...]) -> None:
    person = Person()

    async def scene(client: Client) -> None:
        assert error_of(await client.call_tool("exec", COMMAND)) == "POLICY_DENIED"

    play(place, era, person, scene, words)
    assert not person.shown


@every_era
def test_what_is_left_for_later_is_answered_in_approvals_and_the_same_call_has_the_result(
    place: Place, era: str
) -> None:
    asked = Person({"action": "cancel"}, {"action": "cancel"})

    async def leave(client: Client) -> None:
        left = await client.call_tool("exec", COMMAND)
        assert error_of(left) == "PERMISSION_REQUIRED"
        [waiting] = place.approvals()
        assert waiting["sessionId"] == "mcp-claude-code"
        assert left.structured_content is not None
        assert left.structured_content["error"]["details"]["id"] == waiting["id"]
        assert f"handrail approvals allow {waiting['short']}" in left.content[0].text  # pyright: ignore
        again = await client.call_tool("exec", COMMAND)
        assert error_of(again) == "PERMISSION_REQUIRED"
        assert len(place.approvals()) == 1, "no second request"
        code, told = place.run("approvals", "allow", waiting["short"])
        assert code == 0, told

    async def collect(client: Client) -> None:
        kept = await client.call_tool("exec", COMMAND)
        assert kept.structured_content is not None
        assert kept.structured_content["ok"]
        assert "said" in kept.content[0].text  # pyright: ignore
        assert kept.structured_content["artifacts"]["files_changed"] == ["a.txt"]

    play(place, era, asked, leave)
    assert place.text == "a\nb\n"
    play(place, era, Person(), collect)  # another process, and nobody is asked
    assert place.text == "a\nb\n"
    audit = (place.workspace.parent / "state" / "audit.jsonl").read_text().splitlines()
    assert [json.loads(line)["ok"] for line in audit] == [True]
    code, told = place.run("audit", "verify")
    assert code == 0, told
    person = Person(accepts("deny"))

    async def anew(client: Client) -> None:
        assert error_of(await client.call_tool("exec", COMMAND)) == "PERMISSION_DENIED"

    play(place, era, person, anew)
    assert len(person.shown) == 1, "once: then the same call is a new one"


@every_era
def test_a_client_that_cannot_ask_is_told_of_progress_and_gets_what_is_answered_elsewhere(
    place: Place, era: str
) -> None:
    told: list[str] = []

    async def scene(client: Client) -> None:
        waits = asyncio.Event()

        async def progress(_: float, __: float | None, message: str | None) -> None:
            told.append(message or "")
            if "handrail approvals allow" in told[-1]:
                waits.set()

        async with asyncio.TaskGroup() as group:
            call = group.create_task(client.call_tool("exec", COMMAND, progress_callback=progress))
            await waits.wait()
            code, _ = await asyncio.to_thread(place.run, "approvals", "allow", place.approvals()[0]["id"])
            assert code == 0
        assert not call.result().is_error

    play(place, era, None, scene)
    assert place.text == "a\nb\n"
    assert any(line.startswith("waits for your answer: ") for line in told)


def test_an_answer_elsewhere_closes_the_form(place: Place) -> None:
    async def person(_: Any, __: Any) -> mcp_types.ElicitResult:
        [waiting] = await asyncio.to_thread(place.approvals)
        await asyncio.to_thread(place.run, "approvals", "deny", waiting["id"], "--reason", "no")
        await asyncio.Event().wait()  # a form that nobody looks at
        raise AssertionError

    async def scene(client: Client) -> None:
        assert error_of(await client.call_tool("exec", COMMAND)) == "PERMISSION_DENIED"

    play(place, "legacy", person, scene)  # pyright: ignore


def test_a_state_that_was_forged_runs_nothing(place: Place) -> None:
    async def scene(client: Client) -> None:
        first = await client.session.call_tool("exec", COMMAND, allow_input_required=True)
        assert isinstance(first, mcp_types.InputRequiredResult)
        state = first.request_state or ""
        yes: Any = {"permission": mcp_types.ElicitResult(**accepts("once"))}
        other = "B" if state[-9] == "A" else "A"
        for forged in (state[:-1], f"{state[:-9]}{other}{state[-8:]}", "h1.e30.AAAA", state.replace("h1", "h2")):
            with pytest.raises(Exception, match="Nothing was run"):
                await client.session.call_tool("exec", COMMAND, input_responses=yes, request_state=forged)
        with pytest.raises(Exception, match="other arguments"):
            await client.session.call_tool("exec", {"command": "touch b"}, input_responses=yes, request_state=state)
        assert place.text == "a\n"
        done = await client.session.call_tool("exec", COMMAND, input_responses=yes, request_state=state)
        assert not done.is_error  # pyright: ignore
        with pytest.raises(Exception, match="used before"):
            await client.session.call_tool("exec", COMMAND, input_responses=yes, request_state=state)

    play(place, "2026-07-28", Person(), scene)
    assert place.text == "a\nb\n"


class Raw:
    """A client that says what it wants, word by word, to a server that can be killed."""

    def __init__(self, place: Place) -> None:
        server = place.server("--mode", "ask")
        self.process = subprocess.Popen(
            [server.command, *server.args], env=server.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        able = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}
        self.send(id=1, method="initialize", params={**able, "clientInfo": {"name": "raw", "version": "1"}})
        self.reads(lambda message: message.get("id") == 1)
        self.send(method="notifications/initialized")

    def send(self, **message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def reads(self, told: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        assert self.process.stdout is not None
        return next(message for line in self.process.stdout if told(message := json.loads(line)))

    def asks(self) -> dict[str, Any]:
        self.send(id=2, method="tools/call", params={"name": "exec", "arguments": COMMAND})
        return self.reads(lambda message: message.get("method") == "elicitation/create")

    def close(self) -> None:
        self.process.communicate(timeout=DEADLINE)


def test_a_server_that_is_killed_with_an_open_form_leaves_its_request_to_the_same_call(place: Place) -> None:
    killed = Raw(place)
    killed.asks()
    [before] = place.approvals()
    killed.process.kill()
    killed.close()
    after = Raw(place)
    form = after.asks()
    [waiting] = place.approvals()
    assert (waiting["id"], waiting["sessionId"]) == (before["id"], "mcp-raw")
    after.send(id=form["id"], result=accepts("once"))
    result = after.reads(lambda message: message.get("id") == 2)["result"]
    assert result["structuredContent"]["ok"]
    after.close()
    assert place.text == "a\nb\n"
    code, told = place.run("audit", "verify")
    assert code == 0, told


def test_a_client_that_goes_with_an_open_form_leaves_the_request_and_no_process(place: Place) -> None:
    client = Raw(place)
    client.asks()
    client.close()
    assert client.process.returncode == 0
    assert len(place.approvals()) == 1
    assert place.text == "a\n"
