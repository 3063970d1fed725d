"""handrail code: the code tools for people, without a line in the settings."""

import os
import sys
from pathlib import Path

import pytest


@pytest.fixture
def source(workspace: Path) -> Path:
    path = workspace / "a.py"
    path.write_text("import os\n\n\ndef f( a ):\n    return a\n")
    (workspace / "ruff.toml").write_text("")
    return path


@pytest.fixture
def search_path() -> str:
    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def test_an_outline_is_printed_without_a_setting(here, source: Path) -> None:
    done = here("code", "outline", "a.py")
    assert (done.code, done.out) == (0, "# a.py (Python, 5 lines)\n\n- `def f(a)` 4–5\n")
    assert here("call", "code_outline", '{"path": "a.py"}').code != 0


def test_symbols_and_an_analysis_are_printed_as_json(here, source: Path) -> None:
    found = here("code", "symbols", "a.py", "--kind", "function", "--pattern", "^f", "--json").json
    assert [one["name"] for one in found["data"]["symbols"]] == ["f"]
    assert here("code", "analyze", "a.py", "--json").json["data"]["imports"] == [{"name": "os", "line": 1}]
    assert here("code", "symbols", "a.py", "--kind", "none").code == 2


def test_files_are_linted_and_formatted(here, source: Path, search_path: str) -> None:
    done = here("code", "lint", "a.py", PATH=search_path)
    assert (done.code, "a.py:1:8: warning F401" in done.out) == (1, True)
    (source.parent / "clean.py").write_text("a = 1\n")
    assert here("code", "lint", "clean.py", PATH=search_path).code == 0
    done = here("code", "format", "a.py", PATH=search_path)
    assert (done.code, "+def f(a):" in done.out, "( a )" in source.read_text()) == (0, True, True)
    done = here("code", "format", "a.py", "--write", "--mode", "auto", PATH=search_path)
    assert (done.code, "f(a)" in source.read_text(), "handrail undo" in done.err) == (0, True, True)


def test_policy_explain_judges_the_command_of_a_code_tool(here, source: Path, config) -> None:
    config('[tools]\nenable = ["code_format"]\n')
    asked = ("policy", "explain", "--tool", "code_format", "--args", '{"path": "a.py", "write": true}', "--json")
    found = here(*asked, "--mode", "ask").json
    assert (found["decision"], found["rule"]) == ("confirm", "exec.formatter")
