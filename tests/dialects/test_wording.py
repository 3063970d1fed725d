"""Texts of dialects: no tool and no parameter is named that the dialect lacks."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from spoken import build_workspace, open_rail, read_transcript

from handrail.dialects.dialect import DIALECTS, load_dialect
from handrail.dialects.render import reword
from handrail.protocol.tool_spec import BASE_NAMES

PARAMETERS = (
    "oldText",
    "newText",
    "replaceAll",
    "timeoutMs",
    "maxResults",
    "filePattern",
    "caseSensitive",
    "yieldMs",
    "cwd",
)
ADVICE = re.compile(r"(?i)\b(?:use|with|call|by|try) `?([a-z_]+)`?\b(?! (?:the|a|an)\b)")
ERRORS: dict[str, tuple[tuple[str, Any], ...]] = {
    "devminds": (
        ("workspace.fs", {"op": "read", "path": "."}),
        ("workspace.fs", {"op": "read", "path": "folder"}),
        ("workspace.fs", {"op": "append", "path": "note.md", "content": ""}),
    ),
    "clude": (
        ("read_file", {"path": "src"}),
        ("list_dir", {"path": "a.py"}),
        ("update_memory", {"action": "update"}),
        ("update_memory", {"action": "update", "existing_knowledge_id": "m-aaaaaaaa"}),
        ("update_memory", {"action": "create", "title": "t"}),
        ("update_memory", {"action": "delete", "existing_knowledge_id": "m-none"}),
        ("glob_file_search", {"glob_pattern": "[", "target_directory": "a.py"}),
        ("run_terminal_cmd", {"command": " "}),
    ),
    "agentica": (
        ("read_file", {"file_path": "a.py", "offset": 9}),
        ("edit_file", {"file_path": "src", "old_string": "a", "new_string": "b"}),
        ("edit_file", {"file_path": "a.py", "old_string": "", "new_string": "b"}),
        ("write_file", {"file_path": "a.py", "content": "... rest of the file ...\n"}),
    ),
    "onething": (
        ("read", {"file_path": "src"}),
        ("glob", {"pattern": "*", "path": "a.py"}),
        ("bash", {"command": "true", "working_directory": "none"}),
        ("write", {"file_path": "a.py", "content": "x = 1\n... rest of the file ...\n"}),
    ),
    "claude-code": (
        ("Read", {"file_path": "src"}),
        ("Read", {"file_path": ""}),
        ("Glob", {"pattern": "*", "path": "a.py"}),
        ("Edit", {"file_path": "a.py", "old_string": "", "new_string": "x"}),
        ("Write", {"file_path": "a.py", "content": "x = 1\n... rest of the file ...\n"}),
        ("Bash", {"command": "sleep 9", "timeout": 100}),
        ("TaskOutput", {"task_id": "p-none", "block": False, "timeout": 0}),
    ),
    "codex": (
        ("view_image", {"path": "src"}),
        ("exec_command", {"cmd": " "}),
        ("exec_command", {"cmd": "true", "workdir": "none"}),
    ),
    "opencode": (
        ("read", {"filePath": "a.py", "offset": 99}),
        ("glob", {"pattern": "*", "path": "a.py"}),
        ("bash", {"command": "true", "workdir": "none"}),
        ("edit", {"filePath": "src", "oldString": "a", "newString": "b"}),
    ),
}


def find_foreign_words(dialect: str, text: str) -> list[str]:
    """The canonical names in a text that the dialect lacks."""
    tools = load_dialect(dialect).tools
    own = {name for tool in tools for name in (tool.params or {})} | {
        name for tool in tools for param in (tool.params or {}).values() for name in param.within
    }
    words = [word for word in PARAMETERS if word not in own and re.search(rf"\b{word}\b", text)]
    named = {tool.name for tool in tools}
    return [*words, *(word for word in ADVICE.findall(text) if word in BASE_NAMES and word not in named)]


@pytest.mark.parametrize("dialect", [name for name in DIALECTS if name != "deepchat"])
def test_errors_name_no_tool_and_no_parameter_that_the_dialect_lacks(tmp_path: Path, dialect: str) -> None:
    (build_workspace(tmp_path) / ".minds" / "folder").mkdir()
    texts = [row["text"] for row in read_transcript(dialect) if row["error"] and row["error"] != "UNKNOWN_TOOL"]
    with open_rail(tmp_path, dialect) as rail:
        for name, args in ERRORS[dialect]:
            result = rail.call(name, args)
            assert result.error is not None, (name, args)
            texts.append(f"{result.content} {json.dumps(result.data)}")
    for text in texts:
        given = re.sub(r"(\w+: )?\w+ is not an argument", "", text)
        assert not find_foreign_words(dialect, given), text
        assert "\0" not in text


@pytest.mark.parametrize(
    ("dialect", "name", "args", "text"),
    [
        ("clude", "update_memory", {"action": "update"}, "update needs existing_knowledge_id"),
        ("clude", "update_memory", {"action": "create"}, "create needs knowledge_to_store and title"),
        ("clude", "read_file", {"path": "src"}, "src is a directory; use list_dir to list it."),
        ("onething", "read", {"file_path": "src"}, "src is a directory."),
        ("claude-code", "Read", {"file_path": ""}, "file_path is empty"),
        ("claude-code", "Bash", {"command": "sleep 9", "timeout": 100}, "Raise timeout (max 600000)"),
        ("claude-code", "TaskStop", {}, "task_id is required for kill"),
        ("claude-code", "Monitor", {"description": "d"}, "command is required"),
        ("agentica", "read_file", {"file_path": "a.py", "offset": 9}, "offset 9 is after the end of a.py"),
    ],
)
def test_an_error_is_in_the_words_of_its_tool(tmp_path: Path, dialect: str, name: str, args: Any, text: str) -> None:
    with open_rail(tmp_path, dialect) as rail:
        assert text in rail.call(name, args).content


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a is a directory; use ls to list it.", "a is a directory."),
        ("b is not one; use read for a file.", "b is not one; use open for a file."),
        ("It stopped. Raise timeoutMs (max 9) if so. Try again.", "It stopped. Try again."),
        ("Send all of it, or change a part of the file with edit.", "Send all of it."),
        ("oldText is long.", "old is long."),
        ("path is empty; pass a path.", "file is empty; pass a path."),
    ],
)
def test_advice_to_use_what_the_dialect_lacks_is_left_out(text: str, expected: str) -> None:
    assert reword(text, {"oldText": "old", "path": "file"}, {"read": "open"}) == expected
