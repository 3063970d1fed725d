"""The code tools under the names of agentica and clude."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.settings import Settings

Make = Callable[..., Handrail]
SOURCE = '''import os as system

LIMIT = 3


class Shop(Base):
    """Sells things."""

    def total(self, day: int = 1) -> int:
        return LIMIT if day else 0


def count(items, *more):
    return len(items)
'''
PYLINT = (
    '[{"type": "warning", "path": "a.py", "line": 1, "column": 0, "message-id": "W0611", "symbol": "unused-import",'
    ' "message": "Unused os"}]'
)


def add_program(workspace: Path, name: str, script: str) -> None:
    path = workspace / ".venv/bin" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/bash\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "a.py").write_text(SOURCE)
    (workspace / "setup.cfg").write_text("[pylint.main]\n")
    add_program(workspace, "pylint", f"cat <<'END'\n{PYLINT}\nEND\nexit 4")
    return workspace


def answer(rail: Handrail, name: str, **arguments: Any) -> str:
    result = rail.call(name, arguments)
    assert result.ok, result.error
    return result.content


def test_agentica_analyzes_outlines_and_finds_symbols(project: Path, rail: Make) -> None:
    speaker = rail(dialect="agentica", settings=Settings())
    found = json.loads(answer(speaker, "analyze_code", file_path="a.py"))
    assert found == {
        "imports": [{"name": "os", "alias": "system"}],
        "functions": [{"name": "count", "args": ["items", "*more"], "line_number": 13, "docstring": None}],
        "classes": [
            {
                "name": "Shop",
                "methods": ["total"],
                "bases": ["Base"],
                "line_number": 6,
                "docstring": "Sells things.",
            }
        ],
        "global_variables": [{"name": "LIMIT", "value": "3", "line_number": 3}],
        "total_lines": 14,
        "complexity_estimate": "low",
    }
    outline = answer(speaker, "get_code_outline", file_path="a.py")
    assert outline.startswith("# a.py (Python, 14 lines)")
    symbols = json.loads(answer(speaker, "find_symbols", file_path="a.py", symbol_type="function", pattern="o"))
    assert [(one["type"], one["name"], one["line"]) for one in symbols] == [
        ("function", "total", 9),
        ("function", "count", 13),
    ]


def test_agentica_says_that_a_file_has_a_syntax_error_before_what_could_be_parsed(project: Path, rail: Make) -> None:
    (project / "b.py").write_text("def good():\n    pass\n\nclass (:\n")
    text = answer(rail(dialect="agentica", settings=Settings()), "analyze_code", file_path="b.py")
    first, parsed, *_ = text.splitlines()
    assert first.startswith("Error: Syntax error in b.py: ")
    assert [own["name"] for own in json.loads(parsed)["functions"]] == ["good"]


def test_agentica_formats_in_place_and_lints(project: Path, rail: Make) -> None:
    add_program(project, "black", 'echo "formatted = True" > "${@: -1}"')
    speaker = rail(dialect="agentica", settings=Settings())
    assert answer(speaker, "format_code", file_path="a.py", formatter="black") == (
        "Successfully formatted a.py with black"
    )
    assert (project / "a.py").read_text() == "formatted = True\n"
    linted = answer(speaker, "lint_code", file_path="a.py", linter="pylint")
    assert linted == "Linting results for a.py with pylint:\na.py:1:1: warning W0611 Unused os\n"
    add_program(project, "pylint", "echo '[]'")
    assert answer(speaker, "lint_code", file_path="a.py") == "No issues found in a.py with pylint"
    error = speaker.call("format_code", {"file_path": "a.py", "formatter": "yapf"})
    assert error.content.startswith("Error: yapf is not installed")


def test_clude_reads_lints(project: Path, rail: Make) -> None:
    payload = json.loads(answer(rail(dialect="clude", settings=Settings()), "read_lints", paths=["a.py"]))["payload"]
    assert payload["items"] == [
        {
            "path": "a.py",
            "line": 1,
            "character": 1,
            "severity": "warning",
            "message": "W0611: Unused os",
            "source": "pylint",
        }
    ]
