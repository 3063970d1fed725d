"""Dialects: tables of foreign tools, answers in the shape of their system, canonical calls behind them."""

import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from calls import CALLS
from spoken import build_workspace, open_rail, play, read_transcript

from handrail import Handrail
from handrail.dialects import clude
from handrail.dialects.dialect import DIALECTS, Answered, DialectTool, Shown, load_dialect
from handrail.protocol.calls import Done, Parked
from handrail.protocol.errors import CODES, ErrorInfo, UsageError
from handrail.protocol.events import ToolCallStart
from handrail.protocol.events import Warning as WarningEvent
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.settings import Settings

ROWS = [(name, tool) for name in DIALECTS for tool in load_dialect(name).tools]
NOT_BUILT = {
    "claude-code": {"EnterPlanMode", "ExitPlanMode", "WebFetch", "WebSearch", "Agent"},
    "codex": {
        *("request_permissions", "list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
        *("tool_search", "get_context_remaining", "new_context", "web_search"),
        *("spawn_agent", "wait_agent", "send_message", "list_agents", "interrupt_agent"),
    },
    "opencode": {"plan_exit", "webfetch", "websearch", "task"},
}
"""The tools that answer UNAVAILABLE."""
NOT_ENABLED = {
    "agentica": {
        *("goto_definition", "find_references", "hover_info", "get_diagnostics", "lsp_symbol", "lsp_format"),
    },
    "claude-code": {"LSP"},
    "opencode": {"lsp"},
}
"""The tools that the settings have to enable."""
CANONICAL = {"codex": "read", "devminds": "read", "clude": "read", "agentica": "edit", "claude-code": "read"}
SHARED = {
    "deepchat": ("read_file", {"path": "a.py"}),
    "onething": ("find", {"pattern": "*"}),
    "opencode": ("find", {"pattern": "*"}),
}


def list_started(rail: Handrail) -> list[ToolCallStart]:
    return [event for event in rail.events() if isinstance(event, ToolCallStart)]


# Transcripts


@pytest.mark.parametrize("dialect", CALLS)
def test_a_transcript_is_answered_as_its_system_would(tmp_path: Path, dialect: str) -> None:
    with open_rail(tmp_path, dialect) as rail:
        answers = play(rail, CALLS[dialect])
    for answer, expected in zip(answers, read_transcript(dialect), strict=True):
        assert answer == expected


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_transcript_has_fifteen_calls_with_successes_as_well_as_errors(dialect: str) -> None:
    rows = read_transcript(dialect)
    assert len(rows) >= 15
    assert sum(row["error"] is None for row in rows) >= 5
    assert len({row["error"] for row in rows}) >= 4


@pytest.mark.parametrize(("dialect", "tool"), ROWS, ids=lambda one: one if isinstance(one, str) else one.name)
def test_the_transcript_uses_every_parameter_of_every_tool(dialect: str, tool: DialectTool) -> None:
    given = [args for name, args in CALLS[dialect] if name.casefold() in {tool.name.casefold(), tool.export_name}]
    assert given
    if tool.params is not None and not tool.lacks:
        used = {name for args in given for name in (args if isinstance(args, dict) else {tool.free_text})}
        assert set(tool.params) <= used


# Tables


@pytest.mark.parametrize(("dialect", "tool"), ROWS, ids=lambda one: one if isinstance(one, str) else one.name)
def test_every_parameter_is_checked_under_its_own_name(tmp_path: Path, dialect: str, tool: DialectTool) -> None:
    unoffered = NOT_BUILT.get(dialect, set()) | NOT_ENABLED.get(dialect, set())
    if tool.lacks or tool.name in unoffered or not tool.params:
        return
    with open_rail(tmp_path, dialect) as rail:
        result = rail.call(tool.name, dict.fromkeys(tool.params, Unlike.VALUE) | {"surplus": 1})
        assert result.error is not None
        assert result.error.code == "INVALID_ARGUMENT"
        fields = {problem["field"].split("[")[0].split(".")[0] for problem in result.error.details}
        assert fields == {*tool.params, "surplus"}
        spec = rail.spec(tool.name)
        assert spec is not None
        required = {name for name, param in tool.params.items() if param.default is msgspec.NODEFAULT}
        missing = rail.call(tool.name, {})
        named = {problem["field"] for problem in missing.error.details} if missing.error and required else set[str]()
        assert named == required


class Unlike:
    """A value that no parameter takes."""

    VALUE: ClassVar[Any] = [{"neither": 1}, 2.5]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_that_are_not_built_answer_unavailable(tmp_path: Path, dialect: str) -> None:
    with open_rail(tmp_path, dialect) as rail:
        offered = set(rail.tool_names())
        for tool in load_dialect(dialect).tools:
            if tool.name in NOT_BUILT.get(dialect, ()):
                assert tool.export_name not in offered
                result = rail.call(tool.name, {})
                assert result.error is not None
                assert result.error.code == "UNAVAILABLE"
                assert tool.name in result.error.message
            elif tool.name in NOT_ENABLED.get(dialect, ()):
                assert tool.export_name not in offered
                result = rail.call(tool.name, {})
                assert result.error is not None
                assert result.error.code == "UNKNOWN_TOOL"
            else:
                assert tool.export_name in offered


@pytest.mark.parametrize("dialect", DIALECTS)
def test_another_systems_name_is_unknown(tmp_path: Path, dialect: str) -> None:
    name, args = SHARED.get(dialect) or (CANONICAL[dialect], {"path": "a.py"})
    with open_rail(tmp_path, dialect) as rail:
        result = rail.call(name, args)
        assert result.error is not None
        assert result.error.code == "UNKNOWN_TOOL"
        assert result.error.details == list(rail.tool_names())
        warnings = [event for event in rail.events() if isinstance(event, WarningEvent)]
        assert [event.text for event in warnings] == [f"Unknown Agent tool: {name}"]
        assert len(list_started(rail)) == 1


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "deepchat"])
def test_names_of_a_dialect_are_unknown_without_it(tmp_path: Path, dialect: str) -> None:
    own = [tool.name for tool in load_dialect(dialect).tools if tool.name not in BASE_NAMES]
    with Handrail(build_workspace(tmp_path), state_dir=tmp_path / "state") as rail:
        for name in own:
            result = rail.call(name, {})
            assert result.error is not None
            assert result.error.code == "UNKNOWN_TOOL"


def test_a_canonical_parameter_is_unknown_in_a_dialect_that_has_the_tools_name(tmp_path: Path) -> None:
    with open_rail(tmp_path, "opencode") as rail:
        result = rail.call("read", {"path": "a.py"})
    assert result.error is not None
    assert "path is not an argument" in result.content
    assert "filePath is required" in result.content


def test_an_unknown_dialect_names_those_there_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no dialect 'klingon'; there are deepchat, devminds"):
        Handrail(tmp_path, state_dir=tmp_path / "state", dialect="klingon")


# Behind the dialect


def test_the_audit_has_canonical_calls_and_commands_run_in_the_sandbox(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:
        rail.call("Edit", {"file_path": "a.py", "old_string": "y = 2", "new_string": "y = 4"})
        ran = rail.call("Bash", {"command": "touch n"})
        assert "sandbox" in ran.data["tool_use_result"]["meta"]
    (audit,) = (tmp_path / "state").rglob("audit.jsonl")
    records = [msgspec.json.decode(line) for line in audit.read_bytes().splitlines()]
    assert [(one["name"], set(one["args"])) for one in records] == [
        ("edit", {"path", "oldText", "newText", "replaceAll"}),
        ("exec", {"command", "timeoutMs", "background"}),
    ]


def test_events_and_changes_have_canonical_calls(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:
        rail.call("Edit", {"file_path": f"{rail.workspace}/a.py", "old_string": "y = 2", "new_string": "y = 4"})
        (started,) = list_started(rail)
        assert started.tool_call_name == "edit"
        assert set(started.args) == {"path", "oldText", "newText", "replaceAll"}
        assert rail.undo().ok
        assert "y = 2" in Path(rail.workspace, "a.py").read_text()


def test_policy_asks_about_the_canonical_call_before_it_runs(tmp_path: Path) -> None:
    with open_rail(tmp_path, "onething", mode="ask") as rail:
        interim = rail.call("write", {"file_path": "new.py", "content": "hi"})
        assert interim.error is not None
        assert interim.error.code == "PERMISSION_REQUIRED"
        (request,) = rail.waiting()
        assert request.called == "write"
        assert not Path(rail.workspace, "new.py").exists()
        outcome = rail.answer(request, "once")
        assert isinstance(outcome, Done)
        assert outcome.results[0].data["data"]["title"] == "Created new.py"
        again = rail.call("write", {"file_path": "new.py", "content": "hi"}, tool_call_id=interim.tool_call_id)
        assert again.data == outcome.results[0].data


@pytest.mark.parametrize("path", ["n.ipynb", "../n.ipynb", ".env"])
def test_a_notebook_is_edited_only_if_policy_lets_it_be_read(tmp_path: Path, path: str) -> None:
    build_workspace(tmp_path)
    notebook = (tmp_path / "ws" / "n.ipynb").read_bytes()
    (tmp_path / "ws" / path).write_bytes(notebook)
    denied = {"deny": ("fs.read",)} if path == "n.ipynb" else {}
    with open_rail(tmp_path, "claude-code", mode="full", **denied) as rail:
        for args in ({"cell_id": "c1"}, {"cell_id": "c2"}):
            result = rail.call("NotebookEdit", {"notebook_path": path, "new_source": "2 + 2", **args})
            assert result.error is not None
            assert result.error.code in {"POLICY_DENIED", "OUTSIDE_WORKSPACE", "UNKNOWN_TOOL"}
            assert "c1" not in result.content
            assert "1 + 1" not in str(result.data)
    assert (tmp_path / "ws" / path).read_bytes() == notebook


def test_a_denial_is_told_in_the_words_of_the_system(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex", mode="ask") as rail:
        rail.call("apply_patch", "*** Begin Patch\n*** Add File: n\n+x\n*** End Patch")
        outcome = rail.answer(rail.waiting()[0], "deny", reason="not now")
        assert isinstance(outcome, Done)
        assert outcome.results[0].content.startswith("patch rejected by user")


def test_display_is_one_log_record_of_the_library(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    with open_rail(tmp_path, "clude") as rail:
        assert rail.call("display", {"content": "File 3 of 10", "title": "Copying", "level": "warning"}).ok
    records = [(record.name, record.levelname, record.getMessage()) for record in caplog.records]
    assert records == [("handrail.display", "WARNING", "Copying: File 3 of 10")]


def test_clude_renders_decisions(tmp_path: Path) -> None:
    with open_rail(tmp_path, "clude", mode="ask") as rail:
        allowed = rail.call("read_file", {"path": "a.py"})
        assert allowed.data["payload"]["meta"]["decision"] == {"decision": "ALLOW"}
        asked = rail.call("delete_file", {"path": "a.py"})
        decision = asked.data["error"]["details"]["decision"]
        assert decision == {
            "decision": "REQUIRE_CONFIRMATION",
            "scope": "single_action",
            "reason": "ask mode asks before every deletion",
        }
        outcome = rail.answer(rail.waiting()[0], "deny", reason="not that file")
        assert isinstance(outcome, Done)
        decision = outcome.results[0].data["error"]["details"]["decision"]
        assert (decision["decision"], decision["code"]) == ("DENY", "E_DENIED")
        assert "not that file" in decision["reason"]
        denied = rail.call("read_file", {"path": "../x"})
        assert denied.data["error"]["details"]["decision"] == {
            "decision": "DENY",
            "code": "E_POLICY",
            "reason": "the path leads outside the workspace",
        }


def test_clude_takes_a_whole_call_of_its_contract_and_the_short_form_of_small_models(tmp_path: Path) -> None:
    contract = {
        "tool_call_id": "t1",
        "name": "read_file",
        "version": "1.0.0",
        "args": {"path": "a.py", "limit": 1},
        "requested_permissions": ["fs.read"],
        "trace_id": "trace-1",
        "timestamp": 1_771_000_000_000,
    }
    short = {"tool": "display", "args": {"content": "File 3 of 10", "level": "progress"}}
    with open_rail(tmp_path, "clude") as rail:
        outcome = rail.batch([contract, short])
        assert isinstance(outcome, Done)
        read, shown = (result.data for result in outcome.results)
        assert (read["tool_call_id"], read["ok"], read["payload"]["text"]) == ("t1", True, "x = 1\n")
        payload = {name: shown["payload"][name] for name in ("displayed", "length", "level", "truncated")}
        assert payload == {"displayed": True, "length": 12, "level": "progress", "truncated": False}
        (first, _) = list_started(rail)
        assert (first.trace_id, first.requested_permissions, first.version) == ("trace-1", ("fs.read",), "1.0.0")
        (wrong,) = rail.batch([contract | {"tool_call_id": "t2", "version": "9.0.0"}]).results
        assert wrong.data["error"]["code"] == "E_UNSUPPORTED"


@pytest.mark.parametrize(
    "call",
    [
        {"args": {}},
        "read_file",
        *({"name": "read_file", "timestamp": moment} for moment in ("soon", True, None, 1e30, -1e30, 10**400)),
        *(
            {"name": "read_file", "timestamp": moment}
            for moment in (float("nan"), float("inf"), "2026-01-01T00:00:00Z")
        ),
    ],
)
def test_clude_refuses_what_is_no_call(tmp_path: Path, call: Any) -> None:
    with open_rail(tmp_path, "clude") as rail, pytest.raises(UsageError):
        rail.batch([call])


def test_a_whole_call_is_only_for_a_dialect_that_has_a_form_of_it(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex") as rail, pytest.raises(UsageError, match="made of ToolCall"):
        rail.batch([{"tool": "exec_command", "args": {"cmd": "true"}}])


def test_clude_has_a_code_for_every_error(tmp_path: Path) -> None:
    with open_rail(tmp_path, "clude") as rail:
        result = rail.call("read_file", {"path": "none"})
        for code in CODES:
            told = clude.DIALECT.render(build_answered(result, code), Shown())
            assert told.shape["error"]["code"].startswith("E_"), code


def test_refused_calls_of_a_batch_do_not_keep_others_from_running(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:
        calls = [build_call(rail, "Read", {"file_path": "a.py"}), build_call(rail, "cat", {})]
        outcome = rail.batch(calls)
        assert isinstance(outcome, Done)
        assert [result.ok for result in outcome.results] == [True, False]


def test_tasks_that_were_created_in_one_message_have_answers_of_their_own(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code") as rail:
        calls = [build_call(rail, "TaskCreate", {"subject": name, "description": ""}) for name in ("one", "two")]
        outcome = rail.batch([*calls, build_call(rail, "TaskUpdate", {"taskId": "1", "status": "completed"})])
        assert isinstance(outcome, Done)
        *created, updated = (result.data["tool_use_result"] for result in outcome.results)
        assert [one["task"] for one in created] == [{"id": "1", "subject": "one"}, {"id": "2", "subject": "two"}]
        assert updated["statusChange"] == {"from": "pending", "to": "completed"}


def build_answered(result: Any, code: Any) -> Answered:
    failed = msgspec.structs.replace(result, data=None, error=ErrorInfo(code=code, message="m"))
    surface: Any = None
    return Answered(
        tool=DialectTool(name="x"),
        args=None,
        given={},
        call_id="c",
        result=failed,
        data=None,
        content="m",
        surface=surface,
    )


def test_a_batch_that_waits_is_answered_in_the_dialect(tmp_path: Path) -> None:
    with open_rail(tmp_path, "claude-code", mode="ask") as rail:
        outcome = rail.batch([build_call(rail, "Write", {"file_path": "n.py", "content": "x"})])
        assert isinstance(outcome, Parked)
        done = rail.answer(outcome.requests[0], "once")
        assert isinstance(done, Done)
        assert done.results[0].name == "Write"
        assert done.results[0].data["tool_use_result"]["type"] == "create"


def build_call(rail: Handrail, name: str, args: Any) -> Any:
    from datetime import UTC, datetime

    from handrail.protocol.calls import ToolCall

    call_id = rail.new_call_id()
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def test_custom_tools_stay_under_their_names(tmp_path: Path) -> None:
    from handrail import tool

    @tool(read_only=True)
    def greet(name: str) -> str:
        """Greets somebody."""
        return f"Hello {name}"

    with open_rail(tmp_path, "codex", tools=[greet]) as rail:
        assert "greet" in rail.tool_names()
        assert rail.call("greet", {"name": "Ada"}).content == "Hello Ada"


@pytest.mark.parametrize(
    ("dialect", "name"), [("claude-code", "WebFetch"), ("codex", "web_search"), ("opencode", "webfetch")]
)
def test_a_host_can_bring_a_tool_that_the_dialect_lacks(tmp_path: Path, dialect: str, name: str) -> None:
    from handrail import tool

    @tool(name=name, read_only=True)
    def fetch(url: str) -> str:
        """Fetches a page."""
        return f"The page {url}"

    with open_rail(tmp_path, dialect) as rail:
        assert rail.call(name, {"url": "u"}).error.code == "UNAVAILABLE"  # pyright: ignore[reportOptionalMemberAccess]
    with open_rail(tmp_path, dialect, tools=[fetch]) as rail:
        assert name in rail.tool_names()
        assert rail.spec(name) is not None
        assert rail.call(name, {"url": "u"}).content == "The page u"


def test_a_tool_that_the_person_disabled_is_not_offered(tmp_path: Path) -> None:
    settings = Settings.from_values({"tools.disable": ("grep", "apply_patch")})
    with open_rail(tmp_path, "claude-code", settings=settings) as rail:
        assert "Grep" not in rail.tool_names()
        assert rail.call("Grep", {"pattern": "x"}).content == "No such tool available: Grep"
    with open_rail(tmp_path, "opencode", settings=settings) as rail:
        assert not {"grep", "apply_patch"} & set(rail.tool_names())


def test_typed_methods_stay_canonical(tmp_path: Path) -> None:
    with open_rail(tmp_path, "codex") as rail:
        assert rail.read("a.py").data.path == "a.py"


def test_dotted_names_are_exported_in_a_form_that_providers_accept(tmp_path: Path) -> None:
    with open_rail(tmp_path, "devminds") as rail:
        exported = [tool["function"]["name"] for tool in rail.openai_tools()]
        assert exported[:2] == ["workspace_fs", "workspace_shell"]
        for name in ("workspace.fs", "workspace_fs"):
            assert rail.call(name, {"op": "read", "path": "note.md"}).data["ok"]


def test_case_is_repaired_as_a_setting_with_a_warning(tmp_path: Path) -> None:
    with open_rail(tmp_path, "devminds", repair="case") as rail:
        assert rail.call("Workspace.FS", {"op": "read", "path": "note.md"}).data["ok"]
        warnings = [event.text for event in rail.events() if isinstance(event, WarningEvent)]
        assert warnings == ["Workspace.FS was taken for workspace.fs."]
    with open_rail(tmp_path, "codex") as rail:
        assert rail.call("Exec_Command", {"cmd": "ls"}).content.startswith("unsupported call: Exec_Command")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_schema_is_exported_in_all_forms(tmp_path: Path, dialect: str) -> None:
    with open_rail(tmp_path, dialect) as rail:
        names = list(rail.tool_names())
        assert [entry["name"] for entry in rail.anthropic_tools()] == names
        assert [entry["name"] for entry in rail.mcp_tools()] == names
        for entry in rail.mcp_tools():
            assert entry["inputSchema"]["additionalProperties"] is False
            assert "outputSchema" not in entry


def test_without_a_dialect_none_of_it_is_loaded(tmp_path: Path) -> None:
    program = (
        "import sys, handrail; rail = handrail.Handrail(sys.argv[1], state_dir=sys.argv[2]);"
        "rail.call('ls', {'path': '.'});"
        "rail.close(); print([name for name in sys.modules if name.startswith('handrail.dialects')])"
    )
    arguments = [sys.executable, "-c", program, str(build_workspace(tmp_path)), str(tmp_path / "state")]
    assert subprocess.run(arguments, capture_output=True, text=True, check=True).stdout == "[]\n"
