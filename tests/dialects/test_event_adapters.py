"""The event stream as other systems spell it."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from handrail import AsyncHandrail, Handrail
from handrail.agent.loop import Agent
from handrail.dialects.adapters import ADAPTERS, build_event_schemas
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import End, Event, ToolCallPermissionRequired, ToolCallUpdate, User, decode_event
from handrail.protocol.schema import read_wire_samples
from handrail.protocol.wire import encode
from handrail.settings import Settings

GOLDEN = Path(__file__).parent / "golden"

SCRIPT = (
    ScriptedReply(reasoning="It says one.", text="I change it.", calls=(("read", {"path": "a.txt"}),)),
    ScriptedReply(calls=(("edit", {"path": "a.txt", "oldText": "one", "newText": "two"}), ("read", {"path": "b.txt"}))),
    ScriptedReply(text=" Done."),
)


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> list[Event]:
    folder = tmp_path_factory.mktemp("adapters")
    (folder / "w").mkdir()
    (folder / "w" / "a.txt").write_text("one\n")
    return asyncio.run(_played(folder))


async def _played(folder: Path) -> list[Event]:
    async with AsyncHandrail(folder / "w", mode="auto", state_dir=folder / "s", session="t") as rail:
        await Agent(rail, ScriptedModel(SCRIPT)).run("Make it two.")
        return [event for event in rail.events() if isinstance(event, Event)]


def told(name: str, events: list[Event]) -> Iterator[dict[str, Any]]:
    adapter = ADAPTERS[name]()
    for event in events:
        yield from adapter.render(event)


def samples() -> list[Event]:
    kinds = (sample for name, sample in read_wire_samples().items() if name.startswith("event."))
    return [decode_event(encode(sample)) for sample in kinds]


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_kind_of_event_is_rendered_as_json_or_left_out(name: str) -> None:
    for one in told(name, samples()):
        assert encode(json.loads(encode(one))) == encode(one)


def test_deepchat_is_told_on_three_channels_always_with_an_event_id(events: list[Event]) -> None:
    messages = list(told("deepchat", [*events, *samples()]))
    assert {one["event"].removeprefix("STREAM_EVENTS.") for one in messages} == {"RESPONSE", "ERROR", "END"}
    assert all(one["data"]["eventId"] for one in messages)
    calls = [one["data"] for one in messages if "tool_call" in one["data"]]
    assert calls
    assert all(one["tool_call_id"] and one["tool_call_name"] and one["tool_call_server_name"] for one in calls)


def test_deepchats_event_id_is_the_same_for_a_whole_turn_and_another_for_the_next(events: list[Event]) -> None:
    ids = [one["data"]["eventId"] for one in told("deepchat", events)]
    [user] = [event for event in events if isinstance(event, User)]
    assert set(ids) == {user.message_id}
    again = replace(user, message_id="m_2", seq=99)
    *_, last = told("deepchat", [*events, again, events[-1]])
    assert last["data"]["eventId"] == "m_2"


def test_deepchat_is_told_the_arguments_of_a_call_with_whatever_happens_to_it(events: list[Event]) -> None:
    edit = [one["data"] for one in told("deepchat", events) if one["data"].get("tool_call_name") == "edit"]
    assert {one["tool_call_params"] for one in edit} == {'{"path":"a.txt","oldText":"one","newText":"two"}'}


def test_deepchat_is_told_of_a_limit_before_the_end() -> None:
    [end] = [sample for sample in samples() if isinstance(sample, End)]
    first, last = told("deepchat", [replace(end, reason="limit")])
    assert (first["event"], first["data"]["maximum_tool_calls_reached"]) == ("STREAM_EVENTS.RESPONSE", True)
    assert (last["event"], last["data"]["userStop"]) == ("STREAM_EVENTS.END", False)


def test_deepchats_calls_go_through_the_states_it_knows(events: list[Event]) -> None:
    data = [one["data"] for one in told("deepchat", events)]
    first = next(one["tool_call_id"] for one in data if one.get("tool_call_name") == "edit")
    assert [one["tool_call"] for one in data if one.get("tool_call_id") == first] == ["start", "running", "end"]
    [failed] = [one for one in data if one.get("tool_call") == "error"]
    assert failed["tool_call_response_raw"]["toolResult"]["ok"] is False
    assert "".join(one.get("content", "") for one in data) == "I change it. Done."
    assert "".join(one.get("reasoning_content", "") for one in data) == "It says one."


def test_deepchats_permission_events_have_what_resumes_them() -> None:
    asked = [one["data"]["permission_request"] for one in told("deepchat", samples()) if "permission" in str(one)]
    assert asked
    assert all({"toolName", "serverName", "permissionType", "description", "requestId"} <= set(one) for one in asked)


def test_deepchats_results_have_what_its_dialect_answers(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with Handrail(tmp_path / "w", state_dir=tmp_path / "s", dialect="deepchat", on_permission="park") as rail:
        rail.call("write", {"path": "n", "content": ""})
        rail.answer(rail.waiting()[0], "deny")
        rail.call("write", {"path": "n", "content": ""})
        written = rail.answer(rail.waiting()[0], "once").results[0]  # pyright: ignore[reportAttributeAccessIssue]
        rail.call("exec", {"command": "cat", "background": True})
        started = rail.answer(rail.waiting()[0], "once").results[0]  # pyright: ignore[reportAttributeAccessIssue]
        rail.call(
            "process", {"action": "kill", "sessionId": started.data["rawData"]["toolResult"]["meta"]["sessionId"]}
        )
        events = [event for event in rail.events() if isinstance(event, Event)]
    raw = [one["data"].get("tool_call_response_raw") for one in told("deepchat", events)]
    denied, written_raw, started_raw, killed = (one["toolResult"] for one in raw if one is not None)
    assert denied["error"]["message"] == "User denied the request."
    assert denied["error"]["recoverable"] is False
    assert written_raw["meta"]["affectedPaths"] == ["n"]
    assert started_raw["meta"]["sessionId"] == killed["meta"]["sessionId"]
    for result, event in ((written, written_raw), (started, started_raw)):
        assert json.loads(encode(result.data["rawData"]["toolResult"])) == json.loads(encode(event))


def test_deepchats_usage_is_summed_up(events: list[Event]) -> None:
    usage = [sample for sample in samples() if type(sample).__name__ == "Usage"]
    [first, second] = [one["data"]["totalUsage"] for one in told("deepchat", usage * 2)]
    assert second == {name: 2 * count for name, count in first.items()}


def test_the_pieces_that_devminds_is_told_are_its_output(events: list[Event]) -> None:
    messages = list(told("devminds", events))
    pieces = [one["payload"].get("delta", "") for one in messages if one["type"] == "agent.run.delta"]
    [content] = [one["payload"]["content"] for one in messages if one["payload"].get("operation") == "message"]
    assert content == "".join(pieces) == "I change it. Done."
    assert messages[-1]["type"] == "agent.run.finished"
    assert all(set(one) == {"ts", "taskId", "agentId", "type", "payload"} for one in messages)


def test_devminds_is_told_what_each_operation_came_to(events: list[Event]) -> None:
    outputs = [one["payload"] for one in told("devminds", events) if one["type"] == "agent.run.output"]
    assert [(one["operation"], one.get("path"), one.get("ok")) for one in outputs] == [
        ("read", "a.txt", True),
        ("edit", "a.txt", True),
        ("read", "b.txt", False),
        ("message", None, None),
    ]
    assert all({"summary", "exitCode"} <= set(one) for one in outputs[:-1])


@pytest.mark.parametrize(("reason", "kind"), [("cancelled", "agent.run.cancelled"), ("limit", "agent.run.finished")])
def test_devminds_is_told_how_a_run_ended(reason: str, kind: str) -> None:
    [end] = [sample for sample in samples() if isinstance(sample, End)]
    assert [one["type"] for one in told("devminds", [replace(end, reason=reason)])] == [kind]


def test_onething_is_told_of_every_step_of_a_message(events: list[Event]) -> None:
    messages = list(told("onething", events))
    assert {one["type"] for one in messages} == {"STEP_UPDATED"}
    assert all(set(one["payload"]) == {"sessionId", "messageId", "stepId", "updates"} for one in messages)
    assert all(one["payload"]["messageId"].startswith("m_") for one in messages)
    assert all(set(one["payload"]["updates"]) == {"title", "metadata"} for one in messages)
    edit = [one["payload"] for one in messages if one["payload"]["updates"]["metadata"]["tool"] == "edit"]
    assert [one["updates"]["metadata"]["status"] for one in edit] == ["pending", "running", "completed"]


@pytest.mark.parametrize("name", ADAPTERS)
def test_every_message_has_the_form_of_its_schema(events: list[Event], name: str) -> None:
    validator = Draft202012Validator(build_event_schemas()[name])
    golden = [
        json.loads(line) for file in sorted(GOLDEN.glob(f"{name}-*.jsonl")) for line in file.read_text().splitlines()
    ]
    assert golden
    for message in (*golden, *(json.loads(encode(one)) for one in told(name, [*events, *samples()]))):
        validator.validate(message)


def test_deepchat_keeps_its_seven_states() -> None:
    data = [one["data"] for one in told("deepchat", samples())]
    answers = [one["tool_call"] for one in data if "permission_request" in one]
    assert sorted(answers) == ["error", "permission-required", "running"]


def test_devminds_is_told_of_warnings_durations_and_limits(events: list[Event]) -> None:
    messages = list(told("devminds", [*events, *samples()]))
    warnings = [one["payload"]["warning"] for one in messages if "warning" in one["payload"]]
    assert warnings
    assert all(set(one) == {"code", "message"} for one in warnings)
    outputs = [one["payload"] for one in messages if one["type"] == "agent.run.output"]
    assert all({"durationMs", "limits"} <= set(one) for one in outputs if one["operation"] != "message")


def test_devminds_is_told_of_operations_by_its_own_names_and_without_contents(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with Handrail(tmp_path / "w", state_dir=tmp_path / "s", mode="auto") as rail:
        rail.call("write", {"path": "a.md", "content": "secret"})
        rail.call("exec", {"command": "true"})
        events = [event for event in rail.events() if isinstance(event, Event)]
    starts = [one["payload"] for one in told("devminds", events) if one["payload"].get("phase") == "start"]
    write, shell = starts
    assert (write["operation"], write["name"], write["path"]) == ("write", "workspace.fs", "a.md")
    assert write["args"] == {"path": "a.md", "content": "6 characters"}
    assert (shell["operation"], shell["name"], shell["cmd"]) == ("shell", "workspace.shell", "true")


def test_devminds_is_warned_of_a_refusal_before_its_output(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with Handrail(tmp_path / "w", state_dir=tmp_path / "s") as rail:
        rail.call("read", {"path": "../x"})
        events = [event for event in rail.events() if isinstance(event, Event)]
    _, warning, output = told("devminds", events)
    assert warning["payload"]["warning"]["code"] == "OUTSIDE_WORKSPACE"
    assert (output["type"], output["payload"]["ok"]) == ("agent.run.output", False)


@pytest.mark.parametrize(
    ("name", "args", "code"),
    [
        ("workspace.fs", {"op": "read", "path": "../x"}, "POLICY_DENIED"),
        ("workspace.shell", {"cmd": "rm", "args": ["-rf", "."]}, "POLICY_DENIED"),
        ("read", {"path": "a"}, "UNKNOWN_TOOL"),
    ],
)
def test_devminds_is_warned_of_what_its_dialect_refuses(
    tmp_path: Path, name: str, args: dict[str, Any], code: str
) -> None:
    (tmp_path / "w").mkdir()
    with Handrail(tmp_path / "w", state_dir=tmp_path / "s", dialect="devminds") as rail:
        assert not rail.call(name, args).ok
        events = [event for event in rail.events() if isinstance(event, Event)]
    messages = [one["payload"] for one in told("devminds", events)]
    assert [one["warning"]["code"] for one in messages if "warning" in one] == [code]
    assert "ok" in messages[-1]


def test_onething_is_told_of_growing_output_while_a_command_runs() -> None:
    [update] = [sample for sample in samples() if isinstance(sample, ToolCallUpdate)]
    update = replace(update, tool_call_name="exec", output="a\n", metadata=None)
    messages = told("onething", [update, replace(update, output="b\n")])
    metadata = [one["payload"]["updates"]["metadata"] for one in messages]
    assert [(one["output"], one["exitCode"]) for one in metadata] == [("a\n", -1), ("a\nb\n", -1)]


def test_onething_is_told_of_a_call_by_its_title(events: list[Event]) -> None:
    titles = [one["payload"]["updates"]["title"] for one in told("onething", events)]
    assert {"Reading a.txt", "Editing a.txt", "Reading b.txt"} <= set(titles)


@pytest.mark.parametrize(
    ("call", "kind", "pattern", "metadata"),
    [
        (("bash", {"command": "touch n"}), "bash", ["touch n *"], {"command": "touch n", "pattern": "touch n *"}),
        (("write", {"file_path": "n", "content": ""}), "edit", ["n"], {"filePath": "WS/n", "operation": "write"}),
        (("edit", {"file_path": "a", "old_string": "a", "new_string": "b"}), "edit", ["a"], {"filePath": "WS/a"}),
        (
            ("read", {"file_path": "OUT/o"}),
            "external_directory",
            ["OUT", "OUT/*"],
            {"filePath": "OUT/o", "boundary": "WS", "operation": "read"},
        ),
    ],
)
def test_onethings_requests_have_its_own_types_with_the_message(
    tmp_path: Path, call: tuple[str, dict[str, Any]], kind: str, pattern: list[str], metadata: dict[str, Any]
) -> None:
    workspace, outside = tmp_path / "w", tmp_path / "o"
    for folder, name in ((workspace, "a"), (outside, "o")):
        folder.mkdir()
        (folder / name).write_text("a\n")

    def place(text: str) -> str:
        return text.replace("OUT", str(outside)).replace("WS", str(workspace))

    settings = Settings.from_values({"paths.outside": "ask"})
    with Handrail(
        workspace, state_dir=tmp_path / "s", dialect="onething", mode="ask", settings=settings, on_permission="park"
    ) as rail:
        args = {name: place(value) for name, value in call[1].items()}
        rail.call(call[0], args, message_id="m1")
        events = [event for event in rail.events() if isinstance(event, Event)]
    adapter = ADAPTERS["onething"](str(workspace))
    steps = [message["payload"] for event in events for message in adapter.render(event)]
    (request,) = [
        one["updates"]["metadata"]["permission_request"]
        for one in steps
        if "permission_request" in one["updates"]["metadata"]
    ]
    assert (request["type"], request["messageId"]) == (kind, "m1")
    assert request["pattern"] == [place(one) for one in pattern]
    assert request["title"]
    assert {name: request["metadata"][name] for name in metadata} == {
        name: place(value) for name, value in metadata.items()
    }
    assert {one["updates"]["metadata"]["tool"] for one in steps} == {call[0]}


def test_onethings_request_to_read_is_no_edit() -> None:
    [asked, *_] = [one for one in samples() if isinstance(one, ToolCallPermissionRequired)]
    request = replace(asked.permission_request, permissions=("fs.read",), permission_type="read", command=None)
    [message] = told("onething", [replace(asked, permission_request=request)])
    assert message["payload"]["updates"]["metadata"]["permission_request"]["type"] == "read"


def test_a_running_step_of_onething_keeps_its_title(events: list[Event]) -> None:
    steps = [one["payload"]["updates"] for one in told("onething", events)]
    running = [one["title"] for one in steps if one["metadata"]["status"] == "running"]
    assert running
    assert set(running) <= {"Reading a.txt", "Editing a.txt", "Reading b.txt"}


def test_onethings_requests_have_all_fields() -> None:
    updates = [one["payload"]["updates"]["metadata"] for one in told("onething", samples())]
    requests = [one["permission_request"] for one in updates if "permission_request" in one]
    assert requests
    for request in requests:
        assert {"messageId", "title", "metadata", "createdAt"} <= set(request)


def test_live_lines_have_the_form_of_a_dialect(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    settings = Settings.from_values({"events.jsonl": ".tasklogs", "events.dialect": "devminds"})
    with Handrail(tmp_path / "w", state_dir=tmp_path / "s", session="t1", settings=settings) as rail:
        rail.ls(".")
    [file] = (tmp_path / "w" / ".tasklogs" / "t1").iterdir()
    assert file.name.startswith("events-")
    types = [json.loads(line)["type"] for line in file.read_text().splitlines()]
    assert types == ["agent.run.delta", "agent.run.output"]


def test_no_file_of_live_lines_has_lines_of_two_forms(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    for form in ({}, {"events.dialect": "devminds"}, {"events.dialect": "deepchat"}):
        settings = Settings.from_values({"events.jsonl": ".tasklogs", **form})
        with Handrail(tmp_path / "w", state_dir=tmp_path / "s", session="t1", settings=settings) as rail:
            rail.ls(".")
    files = sorted((tmp_path / "w" / ".tasklogs" / "t1").iterdir())
    assert [file.name.partition("-")[0] for file in files] == ["deepchat", "events", "handrail"]
    for file in files:
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert len({frozenset(line) & {"kind", "taskId", "event"} for line in lines}) == 1
