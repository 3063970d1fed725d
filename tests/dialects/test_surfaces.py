"""The tables and examples that describe the eight systems, written by hand and not from our own output."""

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from spoken import open_rail

from handrail import Handrail
from handrail.dialects.dialect import DIALECTS, load_dialect
from handrail.dialects.table import build_struct
from handrail.protocol.calls import Done
from handrail.protocol.permissions import Reply
from handrail.settings import Settings

# A row has the parameters of a tool: s text, i integer, n number, b boolean, o object, [] list, a|b choices.
# * is required, = the default, >= and <= limits (of a text or list: its length).
TABLES = """
deepchat deepchat_question: question* s >=1 <=500; options* o[] >=1 <=10; multiple b=false; custom b=false
devminds workspace.fs: op* read|write|append; path* s/s[]; content s
devminds workspace.shell: cmd* s >=1; args s[]=[]; cwd s
devminds ask.request: from* o; to* o; question* s >=1 <=4000; context o; timeoutMs i=120000
clude list_dir: path s="."; ignore_globs s[]
clude glob_file_search: glob_pattern* s >=1; target_directory s="."
clude read_file: path* s; offset i >=1; limit i >=1 <=10000
clude apply_patch: patch_text s; path s; old s; new s
clude delete_file: path* s
clude grep: pattern* s >=1; path s; glob s >=1; multiline b=false; head_limit i >=1 <=10000; -i b=false
clude codebase_search: query* s >=1; target_directories* s[]
clude run_terminal_cmd: command* s >=1; is_background b=false
clude display: content s; level s="info"; title s; thought s; evidence s[]; explanation s; message s
clude read_lints: paths* s[]
clude todo_write: todos* o[]
clude update_memory: action* create|update|delete; title s; knowledge_to_store s; existing_knowledge_id s
agentica read_file: file_path* s; offset i=0 >=0; limit i=500 >=1 <=10000
agentica write_file: file_path* s; content* s
agentica edit_file: file_path* s; old_string* s; new_string* s; replace_all b=false; allow_multiple_matches b=false
agentica multi_edit: file_path* s; edits* o[] >=1
agentica ls: directory s="."
agentica glob: pattern* s >=1; path s="."
agentica grep: pattern* s >=1; path s="."; glob_pattern s >=1; \
output_mode files_with_matches|content|count="files_with_matches"; max_results i=50 >=1 <=10000; use_regex b=true
agentica execute: command* s >=1
agentica analyze_code: file_path* s
agentica get_code_outline: file_path* s
agentica format_code: file_path* s; formatter auto|black|autopep8|yapf|prettier="auto"
agentica lint_code: file_path* s; linter auto|pylint|flake8|eslint="auto"
agentica find_symbols: file_path* s; symbol_type all|function|class|variable="all"; pattern s=""
agentica goto_definition: file_path* s; line* i >=0; character* i >=0
agentica find_references: file_path* s; line* i >=0; character* i >=0
agentica hover_info: file_path* s; line* i >=0; character* i >=0
agentica get_diagnostics: file_path* s
agentica lsp_symbol: query s=""
agentica lsp_format: file_path* s
agentica write_todos: todos* o[]
agentica read_todos:
onething bash: command* s >=1; working_directory s; timeout n=120000 >=1
onething read: file_path* s; offset n=1 >=1; limit n=2000 >=1
onething write: file_path* s; content* s
onething edit: file_path* s; old_string* s; new_string* s; replace_all b=false
onething glob: pattern* s >=1; path s
onething grep: pattern* s >=1; path s; glob s >=1; type s; case_insensitive b=false; context_lines n >=0
claude-code Read: file_path* s; offset n; limit n=2000 >=1; pages s
claude-code Write: file_path* s; content* s
claude-code Edit: file_path* s; old_string* s; new_string* s; replace_all b=false
claude-code NotebookEdit: notebook_path* s; new_source* s; cell_id s; cell_type code|markdown; \
edit_mode replace|insert|delete="replace"
claude-code Glob: pattern* s >=1; path s
claude-code Grep: pattern* s >=1; path s; glob s >=1; \
output_mode content|files_with_matches|count="files_with_matches"; -A n >=0; -B n >=0; -C n >=0; context n >=0; \
-n b; -i b; -o b; type s; head_limit n=250 >=0; offset n=0 >=0; multiline b=false
claude-code Bash: command* s >=1; timeout n=120000; description s; run_in_background b=false; \
dangerouslyDisableSandbox b=false
claude-code TaskStop: task_id s; shell_id s
claude-code TaskOutput: task_id* s; block* b; timeout* n >=0
claude-code Monitor: description* s; timeout_ms n=300000 >=1 <=3600000; command s; ws o
claude-code TodoWrite: todos* o[]
claude-code TaskCreate: subject* s >=1; description* s; activeForm s; metadata o
claude-code TaskGet: taskId* s
claude-code TaskUpdate: taskId* s; subject s >=1; description s; activeForm s; \
status pending|in_progress|completed|deleted; addBlocks s[]; addBlockedBy s[]; owner s; metadata o
claude-code TaskList:
claude-code AskUserQuestion: questions* o[] >=1 <=4
claude-code Skill: skill* s; args s
claude-code LSP: operation* OPERATIONS; filePath* s; line* i >=1; character* i >=1; query s
codex exec_command: cmd* s >=1; workdir s; shell s; login b=true; tty b=false; yield_time_ms n=10000; \
max_output_tokens n=10000 >=0; \
sandbox_permissions use_default|require_escalated|with_additional_permissions="use_default"; justification s; \
prefix_rule s[]; additional_permissions o; environment_id s
codex write_stdin: session_id* n; chars s=""; yield_time_ms n; max_output_tokens n=10000 >=0
codex apply_patch: input* s
codex update_plan: plan* o[]; explanation s
codex view_image: path* s; detail high|original="high"
codex request_user_input: questions* o[] >=1 <=3
opencode bash: command* s >=1; timeout i=120000 >=1; workdir s
opencode read: filePath* s; offset i=1 >=1; limit i=2000 >=1
opencode write: filePath* s; content* s
opencode edit: filePath* s; oldString* s; newString* s; replaceAll b=false
opencode apply_patch: patchText* s
opencode glob: pattern* s >=1; path s
opencode grep: pattern* s >=1; path s; include s >=1
opencode todowrite: todos* o[]
opencode question: questions* o[] >=1
opencode skill: name* s
opencode lsp: operation* OPERATIONS; filePath* s; line* i >=1; character* i >=1; query s
"""
OPERATIONS = (
    "goToDefinition|findReferences|hover|documentSymbol|workspaceSymbol|goToImplementation|prepareCallHierarchy"
    "|incomingCalls|outgoingCalls"
)
ROWS = TABLES.replace("\\\n", "").replace("OPERATIONS", OPERATIONS).strip().split("\n")
DEEPCHAT = """
read: path offset limit
write: path content
edit: path oldText newText replaceAll
find: pattern path maxResults exclude
grep: pattern path filePattern caseSensitive contextLines maxResults
ls: path depth
exec: command cwd timeoutMs background yieldMs
process: action sessionId offset limit data eof
skill_list:
skill_control: name action
"""
"""Its tools with canonical names, and their parameters."""
KINDS = {"s": "string", "i": "integer", "n": "number", "b": "boolean", "o": "object"}
LIMITS = {">=": ("minimum", "minLength", "minItems"), "<=": ("maximum", "maxLength", "maxItems")}


@pytest.mark.parametrize("row", ROWS)
def test_a_tool_has_the_parameters_kinds_defaults_and_limits_of_its_system(row: str) -> None:
    head, _, params = row.partition(":")
    dialect, name = head.split(" ")
    tool = next(one for one in load_dialect(dialect).tools if one.name == name)
    expected = dict(map(parse_param, filter(str.strip, params.split(";"))))
    assert sort_choices(describe_params(tool.params or {})) == sort_choices(expected)


def test_the_tables_have_every_tool() -> None:
    described = {tuple(row.partition(":")[0].split(" ")) for row in ROWS}
    described |= {("deepchat", row.partition(":")[0]) for row in DEEPCHAT.strip().split("\n")}
    assert described == {(name, tool.name) for name in DIALECTS for tool in load_dialect(name).tools if not tool.lacks}


def test_canonical_tools_have_the_parameters_of_deepchat(tmp_path: Path) -> None:
    with open_rail(tmp_path, "deepchat") as rail:
        schemas = {entry["name"]: entry["inputSchema"].get("properties", {}) for entry in rail.mcp_tools()}
    for name, _, params in (row.partition(":") for row in DEEPCHAT.strip().split("\n")):
        assert set(params.split()) <= set(schemas[name]), name


def parse_param(text: str) -> tuple[str, dict[str, Any]]:
    found = re.fullmatch(r"\s*([-\w]+)(\*?) ([^ =]+)(?:=(\S+))?((?: [<>]=\d+)*)", text)
    assert found is not None, text
    name, required, kind, default, limits = found.groups()
    told: dict[str, Any] = {"required": bool(required), "kind": kind}
    if default is not None:
        told["default"] = json.loads(default)
    return name, told | {sign: int(number) for sign, number in re.findall(r"([<>]=)(\d+)", limits)}


def describe_params(params: Any) -> dict[str, dict[str, Any]]:
    """The parameters as the exported JSON Schema has them."""
    schema = msgspec.json.schema(build_struct("t", params))["$defs"]["t"]
    required = schema.get("required", [])
    told: dict[str, dict[str, Any]] = {}
    for name, prop in schema.get("properties", {}).items():
        shapes = [one for one in prop.get("anyOf", [prop]) if one.get("type") != "null"]
        told[name] = {"required": name in required, "kind": "/".join(sorted(map(find_kind, shapes)))}
        if prop.get("default") is not None:
            default = prop["default"]
            told[name]["default"] = list(default) if isinstance(default, tuple) else default
        for sign, keys in LIMITS.items():
            for limit in (shape[key] for shape in shapes for key in keys if key in shape):
                told[name][sign] = limit
        if "exclusiveMinimum" in shapes[0]:
            told[name][">="] = shapes[0]["exclusiveMinimum"] + 1
    return told


def find_kind(shape: dict[str, Any]) -> str:
    if "$ref" in shape or shape.get("type") == "object":
        return "o"
    if "enum" in shape:
        return "|".join(one for one in shape["enum"] if one is not None)
    if shape["type"] == "array":
        return f"{find_kind(shape['items'])}[]"
    return next(short for short, kind in KINDS.items() if kind == shape["type"])


def sort_choices(told: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {**one, "kind": sorted(re.split(r"[|/]", one["kind"]))} for name, one in told.items()}


# Examples


def open_with(folder: Path, dialect: str, files: dict[str, str], **options: Any) -> Handrail:
    workspace = folder / "ws"
    workspace.mkdir()
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return open_rail(folder, dialect, **options)


def normalize(value: Any) -> Any:
    return json.loads(msgspec.json.encode(value))


def test_deepchat_examples(tmp_path: Path) -> None:
    ts = "\n\n\n// TODO one\n\n\n\n\n// TODO two\n// TODO three\n"
    with open_with(tmp_path, "deepchat", {"src/a.ts": ts, "a.md": "x\n"}) as rail:
        told = normalize(rail.call("grep", {"pattern": "TODO", "path": "src", "maxResults": 2}).data)
        result = told["rawData"]["toolResult"]
        assert set(told) == {"content", "rawData"}
        assert result["ok"] is True
        matches = [{name: one[name] for name in ("path", "line", "text")} for one in result["data"]["matches"]]
        assert matches == [
            {"path": "src/a.ts", "line": 4, "text": "// TODO one"},
            {"path": "src/a.ts", "line": 9, "text": "// TODO two"},
        ]
        meta = {name: result["meta"][name] for name in ("truncated", "returned", "totalIsLowerBound")}
        assert meta == {"truncated": True, "returned": 2, "totalIsLowerBound": True}
        told = normalize(rail.call("edit", {"path": "a.md", "old_string": "x", "new_string": "y"}).data)
        error = told["rawData"]["toolResult"]["error"]
        assert error["code"] == "INVALID_ARGUMENT"
        assert re.search(r"old_string.*use oldText.*new_string.*use newText", error["message"])


def test_devminds_examples(tmp_path: Path) -> None:
    with open_with(tmp_path, "devminds", {".minds/tasks/T1/wip.md": "# T1\n"}) as rail:
        args = {"op": "append", "path": ["tasks", "T1", "wip.md"], "content": "- done\n"}
        told = normalize(rail.call("workspace.fs", args).data)
        result = {"path": ".minds/tasks/T1/wip.md", "bytes": 7, "summary": told["result"]["summary"]}
        assert {name: told[name] for name in ("ok", "result")} == {"ok": True, "result": result}
        told = normalize(rail.call("workspace.shell", {"cmd": "ls", "args": [".minds"]}).data)
        assert told["result"] == {"stdout": "tasks\n", "stderr": "", "exitCode": 0}
        told = normalize(rail.call("workspace.shell", {"cmd": "rm", "args": ["-rf", "."]}).data)
        assert (told["ok"], set(told)) == (False, {"ok", "warnings"})
        assert told["warnings"][0]["code"] == "POLICY_DENIED"


def test_clude_examples(tmp_path: Path) -> None:
    files = {"app/main.py": "\n" * 6 + "class App:\n"}
    with open_with(tmp_path, "clude", files) as rail:
        outcome = rail.batch([{"tool": "display", "args": {"content": "File 3 of 10", "level": "progress"}}])
        assert isinstance(outcome, Done)
        told = normalize(outcome.results[0].data)
        keys = ["tool_call_id", "ok", "payload", "error", "artifacts", "duration_ms"]
        assert list(told) == keys
        assert isinstance(told["duration_ms"], int)
        payload = {name: value for name, value in told["payload"].items() if name != "meta"}
        assert payload == {"displayed": True, "length": 12, "level": "progress", "truncated": False}
        assert (told["ok"], told["error"]) == (True, None)
        assert told["artifacts"] == {"files_changed": [], "commands_run": []}
        args = {"pattern": "class\\s+App", "glob": "*.py", "-i": True, "head_limit": 5}
        payload = normalize(rail.call("grep", args).data)["payload"]
        hit = {"path": "app/main.py", "line": 7, "preview": "class App:"}
        assert {name: payload[name] for name in ("pattern", "engine", "hits", "truncated")} == {
            "pattern": "class\\s+App",
            "engine": "rg",
            "hits": [hit],
            "truncated": False,
        }
        told = normalize(rail.call("read_file", {"path": "../secret"}).data)
        assert (told["ok"], told["payload"], told["error"]["code"]) == (False, None, "E_POLICY")
        assert "outside the workspace" in told["error"]["message"]
        assert told["error"]["details"]["rule"]


def test_agentica_examples(tmp_path: Path) -> None:
    lines = [f"line {number}" for number in range(1, 41)]
    lines[10:12] = ["def a():", "    return 1"]
    files = {"m.py": "x = 1\nx = 1\nx = 1\n", "n.py": "\n".join(lines) + "\n"}
    with open_with(tmp_path, "agentica", files) as rail:
        args = {"file_path": "m.py", "old_string": "x = 1", "new_string": "x = 2", "allow_multiple_matches": True}
        assert rail.call("edit_file", args).data == "Successfully replaced 1 occurrence(s) in 'm.py'"
        read = rail.call("read_file", {"file_path": "n.py", "offset": 10, "limit": 2})
        assert read.data == "    11\tdef a():\n    12\t    return 1\n\n[Showing lines 11-12 of 40 total lines]"


def test_onething_examples(tmp_path: Path) -> None:
    files = {"a.ts": "const a = 1\nconst b = 2\n" + "//\n" * 7}
    with open_with(tmp_path, "onething", files) as rail:
        told = normalize(rail.call("read", {"file_path": f"{rail.workspace}/a.ts", "limit": 2}).data)
        del told["data"]["metadata"]["handrail"]
        metadata = {"filePath": f"{rail.workspace}/a.ts", "lineCount": 2, "offset": 1, "limit": 2, "truncated": True}
        data = {
            "title": "Read a.ts (2 lines)",
            "output": "1\tconst a = 1\n2\tconst b = 2\n\n[Showing lines 1-2 of 9 total lines]",
            "metadata": metadata | {"isBinary": False, "fileSize": 45},
            "attachments": [],
        }
        assert told == {"success": True, "data": data}
        told = normalize(rail.call("bash", {"command": "false"}).data)["data"]
        assert told["title"] == "Failed (exit 1): false..."
        assert told["output"] == "(no output)\n\n<bash_metadata>\nExit code: 1\n</bash_metadata>"
        metadata = {name: told["metadata"][name] for name in ("command", "workingDirectory", "exitCode")}
        assert metadata == {"command": "false", "workingDirectory": rail.workspace, "exitCode": 1}


def test_claude_code_examples(tmp_path: Path) -> None:
    files = {"src/a.ts": "// TODO\n// TODO\n", "src/b.ts": "// TODO\n", "a.ts": "a\n\n\na\n\n\n\n\na\n"}
    with open_with(tmp_path, "claude-code", files, mode="full") as rail:
        told = normalize(rail.call("Grep", {"pattern": "TODO", "output_mode": "count", "path": "src"}).data)
        assert told["content"] == "src/a.ts:2\nsrc/b.ts:1"
        twin = {name: value for name, value in told["tool_use_result"].items() if name != "meta"}
        content = "src/a.ts:2\nsrc/b.ts:1"
        assert twin == {"mode": "count", "numFiles": 2, "filenames": [], "content": content, "numMatches": 3}
        told = normalize(rail.call("Bash", {"command": "sleep 60", "run_in_background": True}).data)
        twin = told["tool_use_result"]
        task = twin["backgroundTaskId"]
        assert task in told["content"]
        assert (twin["stdout"], twin["stderr"], twin["interrupted"]) == ("", "", False)
        assert rail.call("TaskStop", {"task_id": task}).ok
        args = {"file_path": f"{rail.workspace}/a.ts", "old_string": "a", "new_string": "b"}
        told = normalize(rail.call("Edit", args).data)
        assert (told["type"], told["is_error"]) == ("tool_result", True)
        assert "lines 1, 4, 9" in told["content"]
        assert "replace_all" in told["content"]


def test_codex_examples(tmp_path: Path) -> None:
    with open_with(tmp_path, "codex", {"src/a.py": "", "src/b.py": "", "a.py": "x = 1\n"}, mode="full") as rail:
        listed = rail.call("exec_command", {"cmd": "ls -1 src", "yield_time_ms": 1000}).content
        text = re.sub(r"\d\.\d{4} ", "0.0121 ", listed)
        assert text == "Wall time: 0.0121 seconds\nProcess exited with code 0\nOutput:\na.py\nb.py\n"
        started = rail.call("exec_command", {"cmd": "echo listening on 3000; sleep 60", "yield_time_ms": 250})
        number = started.data["session_id"]
        assert f"Process running with session ID {number}\nOutput:\nlistening on 3000\n" in started.content
        polled = rail.call("write_stdin", {"session_id": number, "chars": "\x03"}).content
        assert re.match(r"Wall time: \d\.\d{4} seconds\nProcess ", polled)
        patch = "*** Begin Patch\n*** Update File: a.py\n@@\n-x = 1\n+x = 2\n*** End Patch"
        assert rail.call("apply_patch", patch).data == "Success. Updated the following files:\nM a.py\n"


def test_opencode_examples(tmp_path: Path) -> None:
    with open_with(tmp_path, "opencode", {"a.py": "x = 1\ny = 2\nz = 3\n"}) as rail:
        path = f"{rail.workspace}/a.py"
        told = normalize(rail.call("read", {"filePath": path, "limit": 1}).data)
        del told["metadata"]["handrail"]
        output = (
            f"<path>{path}</path>\n<type>file</type>\n<content>\n1: x = 1\n\n"
            "(Showing lines 1-1 of 3. Use offset=2 to continue.)\n</content>"
        )
        display = {"type": "file", "path": path, "text": "x = 1", "lineStart": 1, "lineEnd": 1, "totalLines": 3}
        metadata = {"preview": "x = 1", "truncated": True, "loaded": [], "display": display | {"truncated": True}}
        assert told == {"title": "a.py", "output": output, "metadata": metadata}
        told = normalize(rail.call("Grep", {"pattern": "x ="}).data)
        del told["metadata"]["handrail"]
        output = f"Found 1 matches\n{path}:\n  Line 1: x = 1"
        assert told == {"title": "x =", "output": output, "metadata": {"matches": 1, "truncated": False}}
        told = normalize(rail.call("edit", {"filePath": path, "oldString": "q", "newString": "r"}).data)
        assert set(told) >= {"status", "input", "error", "time"}
        assert (told["status"], set(told["time"])) == ("error", {"start", "end"})
        assert told["input"] == {"filePath": path, "oldString": "q", "newString": "r"}
        assert told["error"].startswith("oldString is not in ")


def test_a_question_of_devminds_is_answered_to_its_sender(tmp_path: Path) -> None:
    settings = Settings.from_values({"tools.enable": ("question",)})
    given = {"from": {"agent": "a", "taskId": "T1"}, "to": {"type": "user"}, "question": "Go on?"}
    with open_with(tmp_path, "devminds", {}, settings=settings) as rail:
        rail.call("ask.request", given)
        told = rail.reply(rail.waiting_questions()[0], Reply(chosen=(), text="yes")).results[0].data
    assert (told["ok"], told["result"]["answer"]) == (True, "yes")
    assert told["result"]["inReplyTo"]
