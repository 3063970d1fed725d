"""read_lints of clude: the findings of linters and the diagnostics of language servers in one list."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from projects import Make, fake

from handrail import Handrail
from handrail.lsp.source_text import clean_text
from handrail.policy.config import Rule
from handrail.replay.player import replay_session
from handrail.settings import LoadedSettings, Settings
from handrail.store.state_dir import StateFolder

SOURCE = "count: int = 'many'\nimport os\nname: str = 3\n"
BAD = clean_text("it is bad\x1b[31m", 100)
"""What the server of these tests says about the word bad."""


@pytest.fixture(autouse=True)
def programs_are_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "a.py").write_text(SOURCE)
    (workspace / "pyproject.toml").write_text("[tool.ruff.lint]\nselect = ['F']\n")
    return workspace


def speak(rail: Make, *enable: str, server: str = "ty", **settings: Any) -> Handrail:
    values = {"tools.enable": enable, "lsp.servers": (server,), **settings}
    return rail(dialect="clude", settings=Settings.from_values(values))


def read_lints(rail: Handrail, *paths: str) -> dict[str, Any]:
    result = rail.call("read_lints", {"paths": paths})
    assert result.ok, result.error
    return json.loads(result.content)["payload"]


def list_rows(payload: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(one["path"], one["line"], one["severity"], one["source"]) for one in payload["items"]]


def test_lint_and_diagnostics_are_one_list_in_the_order_of_lines(rail: Make, project: Path) -> None:
    payload = read_lints(speak(rail, "lsp_diagnostics"), "a.py")
    assert list_rows(payload) == [
        ("a.py", 1, "error", "ty"),
        ("a.py", 2, "warning", "ruff"),
        ("a.py", 3, "error", "ty"),
    ]
    first, second, _ = payload["items"]
    assert (first["character"], second["character"]) == (SOURCE.index("'many'") + 1, len("import ") + 1)
    assert first["message"].startswith("invalid-assignment: ")
    assert second["message"].startswith("F401: ")
    assert "warnings" not in payload["meta"]


def test_a_file_without_a_server_gets_its_lint_and_a_warning(rail: Make, project: Path) -> None:
    payload = read_lints(speak(rail, "lsp_diagnostics", server=fake(project, "warns")), "a.py")
    assert list_rows(payload) == [("a.py", 2, "warning", "ruff")]
    [warning] = payload["meta"]["warnings"]
    assert warning.startswith("No language server for a.py.")


@pytest.mark.parametrize(
    "settings",
    [
        {"tools.enable": ()},
        {"tools.enable": ("lsp_hover",)},
        {"tools.enable": ("lsp_diagnostics", "lsp_hover"), "tools.disable": ("lsp_diagnostics",)},
    ],
    ids=["off", "another tool", "disabled"],
)
def test_no_server_is_asked_where_lsp_diagnostics_may_not_be_called(
    rail: Make, project: Path, settings: dict[str, Any]
) -> None:
    payload = read_lints(rail(dialect="clude", settings=Settings.from_values(settings)), "a.py")
    assert list_rows(payload) == [("a.py", 2, "warning", "ruff")]
    assert "warnings" not in payload["meta"]


def test_no_server_is_asked_about_a_file_that_a_rule_keeps_from_it(rail: Make, project: Path) -> None:
    rule = Rule(id="mine", verdict="deny", tool="lsp_diagnostics", pattern="a.py", layer="user")
    values = {"tools.enable": ("lsp_diagnostics",), "lsp.servers": ("ty",)}
    settings = LoadedSettings(settings=Settings.from_values(values), sources={}, rules=(rule,))
    payload = read_lints(rail(dialect="clude", settings=settings), "a.py")
    assert list_rows(payload) == [("a.py", 2, "warning", "ruff")]


@pytest.mark.parametrize(
    ("message", "sources"), [(BAD, ["pylint"]), ("it is worse", ["pylint", "fake"])], ids=["same", "other"]
)
def test_a_problem_that_both_report_is_listed_once(
    rail: Make, workspace: Path, message: str, sources: list[str]
) -> None:
    found = {"type": "error", "path": "a.py", "line": 1, "column": 0, "message-id": "E1", "symbol": "bad"}
    linter = workspace / ".venv/bin/pylint"
    linter.parent.mkdir(parents=True)
    linter.write_text(f"#!/bin/bash\necho '{json.dumps([{**found, 'message': message}])}'\n")
    linter.chmod(0o755)
    (workspace / "setup.cfg").write_text("[pylint.main]\n")
    (workspace / "a.py").write_text("bad\n")
    server = fake(workspace, "warns").replace("*.fake", "*.py")
    payload = read_lints(speak(rail, "lsp_diagnostics", server=server), "a.py")
    assert [one["source"] for one in payload["items"]] == sources, payload


def test_without_the_linter_there_is_no_such_tool(rail: Make, project: Path) -> None:
    values = {"tools.enable": ("lsp_diagnostics",), "tools.disable": ("code_lint",)}
    speaker = rail(dialect="clude", settings=Settings.from_values(values))
    result = speaker.call("read_lints", {"paths": ["a.py"]})
    assert json.loads(result.content)["error"]["code"] == "E_NO_TOOL"


def test_a_replay_gets_the_same_list(rail: Make, project: Path, tmp_path: Path) -> None:
    speaker = speak(rail, "lsp_diagnostics")
    read_lints(speaker, "a.py")
    speaker.close()
    state = StateFolder(str(tmp_path / "state"))
    settings = LoadedSettings(settings=Settings.from_values({"lsp.servers": ("ty",)}), sources={})
    [folder] = (tmp_path / "state").glob("**/journal*")
    replay = replay_session(str(folder.parent), str(project), state, settings)
    assert [(one.name, one.verdict) for one in replay.calls] == [("lsp_lint", "same")]


def test_without_the_tool_nothing_of_language_servers_is_imported(project: Path, tmp_path: Path) -> None:
    program = f"""
import sys
from handrail import Handrail
with Handrail({str(project)!r}, mode="auto", state_dir={str(tmp_path / "state")!r}, dialect="clude") as rail:
    assert "read_lints" in [spec.name for spec in rail.specs()]
    assert rail.call("read_lints", {{"paths": ["a.py"]}}).ok
print([name for name in sys.modules if ".lsp" in name])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
