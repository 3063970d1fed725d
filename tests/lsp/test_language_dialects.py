"""Language tools under the names of other systems."""

from pathlib import Path
from typing import Any

from projects import Make, choose, succeed

from handrail import Handrail

FILES = {
    "pyproject.toml": "[project]\nname = 'sample'\nversion = '1'\n",
    "a.py": "def double(n: int) -> int:\n    return n * 2\n",
    "b.py": "from a import double\n\nprint(double('x'))\n",
}
AT_CALL = {"file_path": "b.py", "line": 2, "character": 8}


def open_rail(rail: Make, workspace: Path, dialect: str) -> Handrail:
    for name, text in FILES.items():
        (workspace / name).write_text(text)
    return rail(dialect=dialect, settings=choose("ty", lsp__wait="30s"))


AGENTICA: dict[str, tuple[dict[str, Any], str]] = {
    "goto_definition": (AT_CALL, '[{"file": "a.py", "line": 0, "character": 4}]'),
    "find_references": (
        {"file_path": "a.py", "line": 0, "character": 8},
        '{"file": "b.py", "line": 2, "character": 6}',
    ),
    "hover_info": (AT_CALL, "def double(n: int) -> int"),
    "get_diagnostics": ({"file_path": "b.py"}, '"line": 2, "character": 13, "severity": "error"'),
    "lsp_symbol": ({"query": "doub"}, '"name": "double", "kind": "function"'),
    "lsp_format": ({"file_path": "b.py"}, "ty refused"),
}
"""Calls of each tool with a part of the answer."""
OPERATIONS = {
    "goToDefinition": "a.py:0:4",
    "findReferences": "b.py:2:6",
    "hover": "def double",
    "documentSymbol": "no symbols",
    "workspaceSymbol": "function double",
}


def test_agentica_names_answer_in_its_shape(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "agentica")
    assert set(AGENTICA) <= set(opened.tool_names())
    for tool, (arguments, answer) in AGENTICA.items():
        result = opened.call(tool, arguments)
        assert answer in (result.data if isinstance(result.data, str) else result.content)


def test_claude_code_operations_become_language_tools(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "claude-code")
    for operation, answer in OPERATIONS.items():
        arguments = {"operation": operation, "filePath": str(workspace / "b.py"), "line": 3, "character": 9}
        result = opened.call("LSP", arguments | ({"query": "doub"} if operation == "workspaceSymbol" else {}))
        assert answer.casefold() in str(succeed(result)).casefold()


def test_an_operation_that_no_tool_has_is_unavailable(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "claude-code")
    arguments = {"operation": "incomingCalls", "filePath": "b.py", "line": 3, "character": 9}
    result = opened.call("LSP", arguments)
    assert result.error is not None
    assert result.error.code == "UNAVAILABLE"


def test_opencode_gets_results_and_diagnostics(rail: Make, workspace: Path) -> None:
    opened = open_rail(rail, workspace, "opencode")
    at = {"operation": "goToDefinition", "filePath": "b.py", "line": 3, "character": 9}
    [place] = succeed(opened.call("lsp", at))["metadata"]["result"]
    assert place == {"file": "a.py", "line": 0, "character": 4}
    edit = {"filePath": str(workspace / "a.py"), "oldString": "n * 2", "newString": "missing"}
    answer = succeed(opened.call("edit", edit))
    assert [one["line"] for one in answer["metadata"]["diagnostics"][str(workspace / "a.py")]] == [1]
    assert "New problem: a.py line 2" in answer["output"]
