"""Calls over stdio: many at once, cancelled, told of, and undisturbed by whatever prints."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from stdio_process import PATIENCE, Server, envelope, environment

from handrail import Handrail

HOLD = """
import os, subprocess, sys, time
from handrail import Context, tool

@tool(read_only=True, auto_execute=True)
def hold(context: Context, name: str) -> str:
    "Waits for a file."
    context.metadata(title=f"waits for {name}")
    while not os.path.exists(name):
        context.check_cancelled()
        time.sleep(0.005)
    return "went on"

@tool(read_only=True, auto_execute=True)
def noisy() -> str:
    "Prints in every way there is."
    print("printed")
    os.write(1, b"written\\n")
    subprocess.run(["sh", "-c", "echo from a child; cat; ls /proc/self/fd >&2"])
    return repr(sys.stdin.read())
"""


@pytest.fixture
def tooled(tmp_path: Path) -> Callable[..., Server]:
    """Starts a server whose user has tools of their own."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "own.py").write_text(HOLD)
    settings = tmp_path / "home" / ".config" / "handrail"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text(f'[tools]\nfolders = ["{tools}"]\n')
    return lambda *options, **more: Server(tmp_path, *options, **more)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with Server(tmp_path) as one:
        one.initialize()
        yield one


def text(result: dict[str, Any]) -> str:
    return result["content"][0]["text"]


def test_a_thousand_calls_at_once_are_all_answered_once(server: Server) -> None:
    (server.workspace / "a.txt").write_text("here\n")
    calls = [("grep", {"pattern": "here"}), ("find", {"pattern": "*.txt"}), *[("read", {"path": "a.txt"})] * 18]
    numbers = [server.call(*calls[number % len(calls)]) for number in range(1_000)]
    ping = server.request("ping")
    assert server.result(ping) == {}
    for number in numbers:
        assert server.result(number)["isError"] is False
    counted = Counter(message["id"] for message in server.came if "id" in message)
    assert set(counted.values()) == {1}


def test_a_client_that_writes_much_before_it_reads_is_answered_in_the_end(tmp_path: Path) -> None:
    """Both ends write, and neither reads: pipes hold 64 KiB."""
    (tmp_path / "workspace").mkdir()
    words = [sys.executable, "-m", "handrail", "mcp", "--workspace", str(tmp_path / "workspace")]
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(words, env=environment(tmp_path), **pipe) as process:  # type: ignore[call-overload]
        for number in range(5_000):
            told = {"jsonrpc": "2.0", "id": f"{number:0200}", "method": "ping"}
            process.stdin.write(json.dumps(told).encode() + b"\n")
        process.stdin.close()
        answers = [json.loads(line)["id"] for line in process.stdout]
        process.stdout.close()
    assert answers == [f"{number:0200}" for number in range(5_000)]


def test_pings_and_other_calls_go_on_while_a_command_runs(server: Server) -> None:
    os.mkfifo(server.workspace / "gate")
    waits = server.call("exec", {"command": "cat gate"})
    (server.workspace / "a.txt").write_text("here\n")
    queued = [server.call("write", {"path": f"{number}.txt", "content": "x"}) for number in range(20)]
    assert server.asks("ping")["result"] == {}
    assert "here" in text(server.result(server.call("read", {"path": "a.txt"})))
    assert "a.txt" in text(server.result(server.call("ls", {"path": "."})))
    server.notify("notifications/cancelled", requestId=waits)
    assert all(server.result(number)["isError"] is False for number in queued)
    assert not [message for message in server.came if message.get("id") == waits], "nobody waits for it"


def test_a_cancelled_command_is_gone_and_is_not_answered(server: Server) -> None:
    number = server.call("exec", {"command": "echo begun; sleep 600"}, _meta={"progressToken": "t"})
    server.sees(lambda message: message.get("method") == "notifications/progress")
    server.notify("notifications/cancelled", requestId=number, reason="the person pressed escape")
    after = server.result(server.call("exec", {"command": "echo after"}))
    assert "after" in text(after)
    assert not [message for message in server.came if message.get("id") == number]
    server.close()
    rail = Handrail(server.workspace, session="mcp-test-client", state_dir=server.workspace.parent / "state")
    codes = [event.result.error.code for event in rail.events() if event.__class__.__name__ == "ToolCallError"]
    rail.close()
    assert codes == ["CANCELLED"]


def test_a_call_that_runs_by_its_second_round_is_told_of_and_can_be_cancelled(tmp_path: Path) -> None:
    """It runs under the id that it was asked about with."""
    settings = tmp_path / "home" / ".config" / "handrail"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text('preview = "never"\n')
    with Server(tmp_path, mode="ask") as server:
        meta = envelope(clientCapabilities={"elicitation": {"form": {}}})
        command = {"command": "touch begun; echo begun; sleep 600"}
        first = server.result(server.call("exec", command, _meta=meta))
        said = {"permission": {"action": "accept", "content": {"answer": "once"}}}
        second = {"requestState": first["requestState"], "inputResponses": said}
        number = server.call("exec", command, _meta={**meta, "progressToken": "t"}, **second)
        server.sees(lambda message: message.get("method") == "notifications/progress")
        server.notify("notifications/cancelled", requestId=number)
        after = server.result(server.call("exec", {"command": "echo after"}, _meta=meta))
        assert "after" in text(after), "it is gone, or this one would wait for its turn"
        assert not [message for message in server.came if message.get("id") == number]


def test_one_of_several_calls_is_cancelled_and_the_others_go_on(tooled: Callable[..., Server], tmp_path: Path) -> None:
    with tooled() as server:
        server.initialize()
        gate = str(tmp_path / "gate")
        calls = [server.call("hold", {"name": gate}, _meta={"progressToken": number}) for number in range(30)]
        server.sees(lambda message: message.get("method") == "notifications/progress")
        ended = calls[::3]
        for number in ended:
            server.notify("notifications/cancelled", requestId=number)
        assert server.asks("ping")["result"] == {}, "it has read them"
        Path(gate).write_text("")
        for number in calls:
            if number not in ended:
                assert text(server.result(number)) == "went on"
        assert server.asks("ping")["result"] == {}
        assert not [message for message in server.came if message.get("id") in ended]


def test_an_id_that_is_on_its_way_is_refused_and_the_first_goes_on(
    tooled: Callable[..., Server], tmp_path: Path
) -> None:
    with tooled() as server:
        server.initialize()
        gate = tmp_path / "gate"
        call = {"name": "hold", "arguments": {"name": str(gate)}}
        message = {"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": call}
        server.send(message)
        server.send(message)
        refused = server.sees(lambda message: message.get("id") == "same")
        assert refused["error"]["code"] == -32600
        gate.write_text("")
        done = server.sees(lambda message: message.get("id") == "same" and "result" in message)
        assert text(done["result"]) == "went on"
        server.send({"jsonrpc": "2.0", "id": "same", "method": "ping"})
        server.sees(lambda message: message.get("id") == "same" and message.get("result") == {})


def test_more_requests_than_fit_are_refused_and_none_is_lost(tooled: Callable[..., Server], tmp_path: Path) -> None:
    with tooled() as server:
        server.initialize()
        gate = tmp_path / "gate"
        numbers = [server.call("hold", {"name": str(gate)}) for _ in range(4_200)]
        refused = server.error(numbers[-1])
        assert refused["code"] == -32010
        assert "4096 requests" in refused["message"]
        gate.write_text("")
        answers = [server.answer(number) for number in numbers]
        assert sum("result" in answer for answer in answers) >= 4_096


def test_progress_only_grows_and_goes_to_who_asked(tooled: Callable[..., Server], tmp_path: Path) -> None:
    with tooled() as server:
        server.initialize()
        gate = tmp_path / "gate"
        asked = server.call("hold", {"name": str(gate)}, _meta={"progressToken": "mine"})
        server.call("hold", {"name": str(gate)})
        printed = server.call(
            "exec", {"command": "for i in 1 2 3 4 5; do echo line $i; sleep 0.15; done"}, _meta={"progressToken": 7}
        )
        assert server.result(printed)["isError"] is False
        told = server.told("notifications/progress")
        gate.write_text("")
        server.result(asked)
    mine = [one for one in told if one["progressToken"] == "mine"]
    lines = [one for one in told if one["progressToken"] == 7]
    assert [one["message"] for one in mine] == [f"waits for {gate}"]
    assert [one["progress"] for one in lines] == list(range(1, len(lines) + 1))
    assert lines[0]["message"].startswith("line ")
    assert {one["progressToken"] for one in told} == {"mine", 7}


def test_warnings_are_told_from_the_level_on_that_was_asked_for(server: Server) -> None:
    def refused() -> int:
        before = len(server.told("notifications/message"))
        server.result(server.call("read", {"path": "/etc/shadow"}))
        return len(server.told("notifications/message")) - before

    assert refused() == 1
    told = server.told("notifications/message")[0]
    assert (told["level"], told["logger"], told["data"]["code"]) == ("warning", "handrail", "OUTSIDE_WORKSPACE")
    assert server.asks("logging/setLevel", {"level": "error"})["result"] == {}
    assert refused() == 0
    assert server.asks("logging/setLevel", {"level": "debug"})["result"] == {}
    assert refused() == 1


def test_without_a_handshake_warnings_are_told_about_requests_that_ask_for_them(tmp_path: Path) -> None:
    with Server(tmp_path) as server:
        outside = {"path": "/etc/shadow"}
        server.result(server.call("read", outside, _meta=envelope()))
        server.result(server.call("read", outside, _meta=envelope(logLevel="error")))
        assert server.told("notifications/message") == []
        server.result(server.call("read", outside, _meta=envelope(logLevel="warning")))
        assert [one["level"] for one in server.told("notifications/message")] == ["warning"]


def test_whatever_prints_prints_to_stderr_and_reads_nothing(tooled: Callable[..., Server]) -> None:
    with tooled() as server:
        server.initialize()
        assert text(server.result(server.call("noisy"))) == "''"
        assert os.readlink(f"/proc/{server.process.pid}/fd/0") == "/dev/null"
        server.close()
    lines = server.errors.decode().splitlines()
    assert {"printed", "written", "from a child"} <= set(lines)
    inherited = {line for line in lines if line.isdigit()}
    assert inherited <= {"0", "1", "2", "3"}, "3 is the folder that ls reads"


def test_calls_leave_no_descriptors_and_few_threads(server: Server) -> None:
    def descriptors() -> int:
        return len(os.listdir(f"/proc/{server.process.pid}/fd"))

    def some_calls() -> None:
        numbers = [server.call("exec", {"command": "true"}) for _ in range(5)]
        numbers += [server.call("grep", {"pattern": "x"}) for _ in range(30)]
        cancelled = server.call("exec", {"command": "sleep 600"})
        server.notify("notifications/cancelled", requestId=cancelled)
        for number in numbers:
            server.result(number)
        server.result(server.call("write", {"path": "last.txt", "content": str(numbers)}))

    some_calls()
    some_calls()  # the first write that replaces a file opens the store of old contents
    before = descriptors()
    some_calls()
    until = time.monotonic() + PATIENCE
    while descriptors() > before and time.monotonic() < until:
        time.sleep(0.01)  # the last one may still be taken apart
    assert descriptors() <= before
    assert len(os.listdir(f"/proc/{server.process.pid}/task")) < 50


def test_those_who_wait_for_a_person_keep_no_thread_from_the_others(tmp_path: Path) -> None:
    with Server(tmp_path, mode="ask") as server:
        server.initialize(elicitation={})
        (server.workspace / "a.txt").write_text("here\n")
        waiting = [
            server.call("write", {"path": f"{number}.txt", "content": "x"}, _meta={"progressToken": number})
            for number in range(40)
        ]
        server.until(lambda: sum(one.get("method") == "elicitation/create" for one in server.came) == 40)
        assert "here" in text(server.result(server.call("grep", {"pattern": "here"})))
        assert server.asks("ping")["result"] == {}
        for form in [one for one in server.came if one.get("method") == "elicitation/create"]:
            server.send({"jsonrpc": "2.0", "id": form["id"], "result": {"action": "decline"}})
        assert all(server.result(number)["isError"] for number in waiting)
    told = [(one["progressToken"], one["progress"]) for one in server.told("notifications/progress")]
    assert len(set(told)) == len(told), "numbers only grow"
    assert list(server.workspace.iterdir()) == [server.workspace / "a.txt"]


@pytest.mark.parametrize("modern", [False, True])
def test_a_client_is_told_that_other_tools_are_offered(tmp_path: Path, modern: bool) -> None:
    settings = tmp_path / "home" / ".config" / "handrail"
    settings.mkdir(parents=True)
    (settings / "config.toml").write_text('[tools]\nenable = ["skill_list", "skill_control"]\n')
    meta: dict[str, Any] = {"_meta": envelope()} if modern else {}
    with Server(tmp_path) as server:
        skill = server.workspace / ".claude" / "skills" / "look"
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\nname: look\ndescription: Looks.\nallowed-tools: Read\n---\nLook.\n")
        if modern:
            listens = server.request("subscriptions/listen", {"notifications": {"toolsListChanged": True}, **meta})
        else:
            server.initialize()
        before = server.result(server.request("tools/list", meta))["tools"]
        activated = server.result(server.call("skill_control", {"name": "look", "action": "activate"}, **meta))
        assert activated["isError"] is False, activated
        told = server.sees(lambda message: message.get("method") == "notifications/tools/list_changed")
        if modern:
            assert told["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": listens}
        after = server.result(server.request("tools/list", meta))["tools"]
    assert {"exec", "write"} <= {tool["name"] for tool in before} - {tool["name"] for tool in after}
