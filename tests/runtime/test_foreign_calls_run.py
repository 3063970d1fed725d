"""Calls of other servers' tools: asked about, granted, refused, run, written down; like any other call."""

import base64
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from other_server import OtherServer, listed

from handrail import Done, Handrail, Output, Parked, ToolCall, ToolError
from handrail.policy.config import Rule
from handrail.protocol.events import ToolCallEnd, ToolCallPermissionRequired, ToolCallStart, ToolEvent
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.records import AuditRecord
from handrail.protocol.results import Attachment
from handrail.settings import LoadedSettings, Settings
from handrail.settings.mcp_servers import ServerTable
from handrail.store.audit import decode_record

Open = Callable[..., Handrail]
ISSUE = listed(
    "create.issue",
    title="Create an issue",
    input_schema={"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]},
)
NAME = "mcp__github__create_issue_"


def name(rail: Handrail) -> str:
    (spec,) = [spec for spec in rail.specs() if spec.category == "mcp"]
    return spec.name


def records(state: Path) -> list[AuditRecord]:
    lines = (state / "audit.jsonl").read_bytes().splitlines(keepends=True)
    return [record[0] for line in lines if (record := decode_record(line))]


def asking(rail: Open, server: OtherServer, answer: str, **more: Any) -> tuple[Handrail, list[PermissionRequest]]:
    asked: list[PermissionRequest] = []

    def say(request: PermissionRequest) -> str:
        asked.append(request)
        return answer

    return rail(mode="ask", sources=[server], on_permission=say, **more), asked


def test_a_call_asks_with_the_tools_own_name_and_what_it_would_send(rail: Open) -> None:
    server = OtherServer("github", ISSUE)
    one, asked = asking(rail, server, "once")
    result = one.call(name(one), {"title": "broken"})
    assert (result.ok, result.content) == (True, "did it with {'title': 'broken'}")
    assert server.calls == [("create.issue", {"title": "broken"})]
    (request,) = asked
    assert (request.tool_name, request.server_name) == ("create.issue", "github")
    assert request.called == name(one)
    assert request.called.startswith(NAME)
    assert request.description == 'create.issue (github) {"title":"broken"}'
    assert request.preview is not None
    assert (request.preview.kind, request.preview.text) == ("input", '{\n  "title": "broken"\n}')
    assert "undo does not cover" in request.reason
    assert request.answers == ("once", "session", "workspace", "deny")


def test_events_and_the_audit_have_both_names(rail: Open, tmp_path: Path) -> None:
    one, _ = asking(rail, OtherServer("github", ISSUE), "once")
    called = name(one)
    one.call(called, {"title": "secret words"})
    one.call("ls", {"path": "."})
    told = [event for event in one.events() if isinstance(event, ToolEvent) and event.tool_call_name == called]
    assert {type(event) for event in told} >= {ToolCallStart, ToolCallPermissionRequired, ToolCallEnd}
    assert {(event.tool_name, event.server_name) for event in told} == {("create.issue", "github")}
    first, second = records(tmp_path / "state")
    assert (first.name, first.tool_name, first.server_name) == (called, "create.issue", "github")
    assert first.label == "create.issue (github)"
    assert "secret words" not in str(first.args)
    assert not second.tool_name
    assert b"server_name" not in (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines()[1]


def test_wrong_arguments_never_reach_the_server(rail: Open) -> None:
    server = OtherServer("github", ISSUE)
    one, asked = asking(rail, server, "once")
    result = one.call(name(one), {"titel": 1})
    assert result.error is not None
    assert result.error.code == "INVALID_ARGUMENT"
    assert [problem["field"] for problem in result.error.details] == ["title"]
    assert (server.calls, asked) == ([], [])


def test_a_no_is_the_result_and_nothing_is_sent(rail: Open) -> None:
    server = OtherServer("github", ISSUE)
    one, _ = asking(rail, server, "deny")
    result = one.call(name(one), {"title": "x"})
    assert result.error is not None
    assert result.error.code == "PERMISSION_DENIED"
    assert server.calls == []


@pytest.mark.parametrize(("scope", "asked_again"), [("once", 2), ("session", 1), ("workspace", 1)])
def test_a_yes_for_longer_is_for_this_tool_of_this_server(rail: Open, scope: str, asked_again: int) -> None:
    server = OtherServer("github", ISSUE)
    one, asked = asking(rail, server, scope)
    for title in ("a", "b"):
        assert one.call(name(one), {"title": title}).ok
    assert len(asked) == asked_again


def test_a_grant_counts_for_no_other_tool_and_ends_when_it_is_revoked(rail: Open) -> None:
    one, asked = asking(rail, OtherServer("a", listed("x"), listed("y")), "session")
    for _ in range(2):
        one.call("mcp__a__x", {})
    one.call("mcp__a__y", {})
    assert [request.tool_name for request in asked] == ["x", "y"]
    one.revoke(one.grants()[0].id)
    one.call("mcp__a__x", {})
    assert [request.tool_name for request in asked] == ["x", "y", "x"]


@pytest.mark.parametrize(
    ("options", "code"),
    [({"mode": "plan"}, "POLICY_DENIED"), ({"mode": "ask", "unattended": True}, "PERMISSION_DENIED")],
)
def test_it_is_refused_in_plan_and_where_nobody_is_there(rail: Open, options: dict[str, Any], code: str) -> None:
    server = OtherServer("a", listed("x"))
    result = rail(sources=[server], **options).call("mcp__a__x", {})
    assert result.error is not None
    assert result.error.code == code
    assert "calling x (a)" in result.error.message
    assert server.calls == []


def test_a_waiting_call_is_answered_by_a_session_that_has_the_server_too(rail: Open) -> None:
    first = rail(mode="ask", session="s", sources=[OtherServer("a", listed("x"))], on_permission=lambda _: None)
    waiting = first.call("mcp__a__x", {"n": 1})
    assert waiting.error is not None
    assert waiting.error.code == "PERMISSION_REQUIRED"
    request = first.waiting()[0]
    first.close()
    server = OtherServer("a", listed("x"))
    second = rail(mode="ask", session="s", sources=[server], on_permission=lambda _: None)
    outcome = second.answer(request, "once")
    assert not isinstance(outcome, Parked)
    assert outcome.results[0].content == "did it with {'n': 1}"
    assert server.calls == [("x", {"n": 1})]


def test_a_result_says_that_undo_does_not_cover_it(rail: Open) -> None:
    result = rail(mode="full", sources=[OtherServer("a", listed("x"))]).call("mcp__a__x", {})
    assert result.summary == "done; not covered by undo"
    assert result.title == "x (a)"


def test_what_the_settings_vouch_for_runs_unasked_in_plan_too(rail: Open) -> None:
    servers = {"a": ServerTable(read_only=("get_*",))}
    loaded = LoadedSettings(settings=Settings(), sources={}, servers=servers)
    one = rail(
        mode="plan", settings=loaded, sources=[OtherServer("a", listed("get_x"), listed("set_x", read_only=True))]
    )
    looked = one.call("mcp__a__get_x", {})
    assert (looked.ok, looked.summary) == (True, "done")
    refused = one.call("mcp__a__set_x", {}).error
    assert refused is not None
    assert refused.code == "POLICY_DENIED"


def test_a_rule_of_the_settings_allows_a_tool(rail: Open) -> None:
    allowing = Rule(id="issues", verdict="allow", pattern="**", tool="mcp__a__get_*")
    loaded = LoadedSettings(settings=Settings(), sources={}, rules=(allowing,))
    one = rail(mode="ask", settings=loaded, unattended=True, sources=[OtherServer("a", listed("get_x"), listed("y"))])
    assert one.call("mcp__a__get_x", {}).ok
    assert not one.call("mcp__a__y", {}).ok


def test_structured_content_is_data_and_pictures_are_attachments(rail: Open) -> None:
    begins_like_one = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    picture = Attachment(type="image", path="a.png", mime="image/png", content=begins_like_one)
    output = Output(summary="two", content="text", data={"n": 1}, attachments=(picture,), warnings=("odd",))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    one = rail(mode="full", sources=[OtherServer("a", listed("x", output_schema=schema), handler=lambda *_: output)])
    result = one.call("mcp__a__x", {}, tool_call_id="c1")
    assert (result.data, result.attachments, result.warnings) == ({"n": 1}, (picture,), ("odd",))
    assert one.call("mcp__a__x", {}, tool_call_id="c1").data == {"n": 1}  # as it was written down


def test_a_failure_is_a_failure_with_what_the_server_said(rail: Open) -> None:
    output = Output(summary="no", content="no such repository", data={"n": 1}, failure=ToolError("NOT_FOUND", "no"))
    result = rail(mode="full", sources=[OtherServer("a", listed("x"), handler=lambda *_: output)]).call("mcp__a__x", {})
    assert result.error is not None
    assert (result.ok, result.error.code, result.content, result.data) == (
        False,
        "NOT_FOUND",
        "no such repository",
        {"n": 1},
    )


def test_a_long_text_is_kept_and_read_in_pages(rail: Open) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    output = Output(summary="much", content=text, data=None)
    one = rail(mode="full", sources=[OtherServer("a", listed("x"), handler=lambda *_: output)])
    result = one.call("mcp__a__x", {})
    assert (result.meta.truncated, result.meta.characters) == (True, len(text))
    assert len(result.content) <= 30_000
    assert result.meta.output is not None
    assert "line 15000" in one.call("read", {"path": result.meta.output, "offset": 15_000, "limit": 10}).content


def test_a_batch_runs_them_in_their_turn(rail: Open) -> None:
    server = OtherServer("a", listed("x"))
    one = rail(mode="full", sources=[server])
    calls = [("write", {"path": "a.txt", "content": "a"}), ("mcp__a__x", {"n": 1}), ("read", {"path": "a.txt"})]
    outcome = one.batch(
        ToolCall(tool_call_id=f"c{n}", name=tool, args=args, trace_id="t", timestamp=datetime.now(UTC))
        for n, (tool, args) in enumerate(calls)
    )
    assert isinstance(outcome, Done)
    assert [result.ok for result in outcome.results] == [True, True, True]
