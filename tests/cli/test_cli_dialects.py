"""tools, call, mcp and run in the dialect of another system."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator


@pytest.fixture
def run(here):
    return here


def write_script(folder: Path, *replies: dict[str, Any]) -> str:
    (folder / "script.json").write_text(json.dumps(replies))
    return f"scripted:{folder / 'script.json'}"


def test_tools_lists_the_tools_of_the_dialect(run) -> None:
    done = run("tools", "--dialect", "codex")
    names = [line.split()[0] for line in done.out.splitlines()[1:]]
    assert names == ["exec_command", "write_stdin", "apply_patch", "update_plan", "view_image"]
    (missing,) = done.err.splitlines()
    head, _, listed = missing.partition(": ")
    assert head == "not available in this version"
    assert {"request_permissions", "spawn_agent", "web_search"} <= set(listed.split(", "))


@pytest.mark.parametrize("form", ["--json", "--openai", "--anthropic", "--mcp"])
def test_every_export_has_the_tools_of_the_dialect(run, form: str) -> None:
    listed = run("tools", "--dialect", "devminds", form).json
    assert [entry.get("name") or entry["function"]["name"] for entry in listed] == ["workspace_fs", "workspace_shell"]


@pytest.mark.parametrize("dialect", ["codex", "deepchat"])
def test_tools_json_claims_no_schema_of_answers_that_they_do_not_fit(run, dialect: str) -> None:
    for tool in run("tools", "--dialect", dialect, "--json").json:
        assert tool["outputSchema"] == {}


def test_call_prints_the_text_that_a_model_gets(run, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    done = run("call", "--dialect", "claude-code", "Read", '{"file_path": "a.py"}')
    assert (done.code, done.out) == (0, "     1\tx = 1\n")


def test_call_json_prints_the_answer_in_the_shape_of_the_system(run) -> None:
    done = run("call", "--dialect", "onething", "--json", "glob", '{"pattern": "*.zz"}')
    assert done.json["success"] is True
    assert done.json["data"]["output"] == "No files found"


def test_a_canonical_name_is_unknown_in_a_dialect(run) -> None:
    done = run("call", "--dialect", "codex", "read", '{"path": "a.py"}')
    assert done.code == 1
    assert "unsupported call: read" in done.err
    assert "next: handrail tools --dialect codex" in done.err


def test_an_error_of_a_dialect_is_in_its_words(run, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    args = '{"file_path": "a.py", "old_string": "nowhere", "new_string": "y"}'
    done = run("call", "--dialect", "claude-code", "Edit", args, "--mode", "auto")
    assert (done.code, done.out) == (1, "")
    assert "error: old_string is not in a.py." in done.err
    assert "next: handrail tools --dialect claude-code" in done.err


def test_an_unknown_dialect_names_those_there_are(run) -> None:
    done = run("call", "--dialect", "klingon", "read", "{}")
    assert done.code == 2
    assert "allowed: one of deepchat, devminds, clude, agentica, onething, claude-code, codex, opencode" in done.err


def test_the_settings_can_choose_a_dialect_and_commands_of_their_own_still_run(run, environment, workspace) -> None:
    folder = Path(environment["HOME"]) / ".config" / "handrail"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text('dialect = "codex"\n')
    (workspace / "a.py").write_text("x = 1\n")
    assert run("call", "exec_command", '{"cmd": "true"}', "--mode", "full").code == 0
    assert run("call", "ls", '{"path": "."}').code == 1


def test_the_settings_repair_the_case_of_names_with_a_warning(run, environment, workspace: Path) -> None:
    (workspace / ".minds").mkdir()
    (workspace / ".minds" / "note.md").write_text("# Note\n")
    call = ("call", "--dialect", "devminds", "Workspace.FS", '{"op": "read", "path": "note.md"}')
    assert run(*call).code == 1
    folder = Path(environment["HOME"]) / ".config" / "handrail"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text("[tools]\nrepair_case = true\n")
    assert run(*call).code == 0
    assert "Workspace.FS was taken for workspace.fs." in run("log", "--events").out


def write_config(environment, text: str) -> None:
    folder = Path(environment["HOME"]) / ".config" / "handrail"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


@pytest.mark.parametrize("repairs", [True, False])
def test_run_repairs_the_case_of_names_only_if_the_settings_say_so(
    run, environment, tmp_path: Path, workspace: Path, repairs: bool
) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    write_config(environment, f"[tools]\nrepair_case = {str(repairs).lower()}\n")
    edit = ["edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}]
    model = write_script(tmp_path, {"calls": [edit]}, {"text": "Done."})
    assert run("run", "change it", "--model", model, "--mode", "auto", "--dialect", "claude-code").code == 0
    assert (workspace / "a.py").read_text() == ("x = 2\n" if repairs else "x = 1\n")


@pytest.mark.parametrize("repairs", [True, False])
def test_mcp_repairs_the_case_of_names_only_if_the_settings_say_so(
    apart, environment, workspace: Path, repairs: bool
) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    write_config(environment, f"[tools]\nrepair_case = {str(repairs).lower()}\n")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "READ", "arguments": {"file_path": "a.py"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    stdin = b"".join(json.dumps(one).encode() + b"\n" for one in requests)
    done = apart("mcp", "--dialect", "claude-code", stdin=stdin)
    answer = next(one for one in map(json.loads, done.out.splitlines()) if one.get("id") == 2)
    if repairs:
        assert answer["result"]["content"][0]["text"] == "     1\tx = 1"
    else:
        assert answer["error"]["message"] == "No such tool available: READ"


def test_mcp_serves_the_dialect(apart, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        *(
            {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": name, "arguments": args}}
            for number, (name, args) in enumerate(
                [("read", {"filePath": "a.py"}), ("ls", {"path": "."}), ("edit", {"filePath": "a.py"})], 3
            )
        ),
    ]
    done = apart("mcp", "--dialect", "opencode", stdin=b"".join(json.dumps(one).encode() + b"\n" for one in requests))
    answers = {one["id"]: one for one in map(json.loads, done.out.splitlines()) if "id" in one}
    assert "todowrite" in [tool["name"] for tool in answers[2]["result"]["tools"]]
    assert answers[3]["result"]["structuredContent"]["title"] == "a.py"
    assert "unavailable tool 'ls'" in answers[4]["error"]["message"]
    assert answers[5]["result"]["isError"] is True
    assert "oldString is required" in answers[5]["result"]["content"][0]["text"]


def test_a_model_calls_the_tools_of_the_dialect(run, tmp_path: Path, workspace: Path) -> None:
    (workspace / "a.py").write_text("x = 1\n")
    edit = ["Edit", {"file_path": "a.py", "old_string": "x = 1", "new_string": "x = 2"}]
    model = write_script(tmp_path, {"calls": [["Read", {"file_path": "a.py"}]]}, {"calls": [edit]}, {"text": "Done."})
    done = run("run", "change it", "--model", model, "--mode", "auto", "--dialect", "claude-code")
    assert (done.code, done.out) == (0, "Done.\n")
    assert (workspace / "a.py").read_text() == "x = 2\n"


def test_run_json_prints_the_events_of_the_dialect(run, tmp_path: Path) -> None:
    model = write_script(tmp_path, {"calls": [["workspace_fs", {"op": "read", "path": "x.md"}]]}, {"text": "Done."})
    done = run("run", "look", "--model", model, "--json", "--dialect", "devminds")
    types = [json.loads(line)["type"] for line in done.out.splitlines()]
    assert types[0] == "agent.run.delta"
    assert types[-1] == "agent.run.finished"
    assert "agent.run.output" in types


def test_display_prints_one_line_on_stderr(run) -> None:
    args = json.dumps({"content": "File 3 of 10\n\nand more", "level": "warning", "title": "Copying"})
    done = run("call", "--dialect", "clude", "display", args)
    assert done.code == 0
    assert done.err.splitlines() == ["warning: Copying: File 3 of 10"]


def test_call_takes_a_whole_call_as_clude_writes_it(run) -> None:
    call = {"tool": "display", "args": {"content": "File 3 of 10", "level": "progress"}}
    done = run("call", "--dialect", "clude", json.dumps(call))
    assert (done.code, done.err.splitlines()) == (0, ["progress: File 3 of 10"])
    contract = {"tool_call_id": "t7", "name": "read_file", "args": {"path": "none"}, "timestamp": 1_771_000_000_000}
    done = run("call", "--dialect", "clude", "--json", json.dumps(contract))
    assert (done.json["tool_call_id"], done.json["error"]["code"]) == ("t7", "E_NOT_FOUND")


@pytest.mark.parametrize("arguments", [("read",), ("--dialect", "codex", "{}"), ("--dialect", "clude", '{"args": {}}')])
def test_call_without_arguments_is_refused_plainly(run, arguments: tuple[str, ...]) -> None:
    done = run("call", *arguments)
    assert done.code != 0
    assert "Nothing was run." in done.err


def test_schema_has_the_messages_of_event_adapters_with_samples_that_fit(run, tmp_path: Path) -> None:
    schemas = run("schema").json["dialects"]
    assert list(schemas) == ["events.deepchat", "events.devminds", "events.onething"]
    assert run("schema", "--out", str(tmp_path / "out")).code == 0
    for name, schema in schemas.items():
        assert json.loads((tmp_path / "out" / "dialects" / f"{name}.schema.json").read_text()) == schema
        samples = json.loads((tmp_path / "out" / "samples" / "dialects" / f"{name}.json").read_text())
        assert samples
        for message in samples:
            Draft202012Validator(schema).validate(message)


def test_display_is_one_notification_of_mcp(apart) -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    call = {"name": "display", "arguments": {"content": "File 3 of 10", "title": "Copying", "level": "warning"}}
    requests = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
    ]
    done = apart("mcp", "--dialect", "clude", stdin=b"".join(json.dumps(one).encode() + b"\n" for one in requests))
    messages = [json.loads(line) for line in done.out.splitlines()]
    shown = [one["params"] for one in messages if one.get("method") == "notifications/message"]
    assert [(one["level"], one["data"]["text"]) for one in shown] == [("warning", "Copying: File 3 of 10")]
