"""code_format and code_lint with the real programs. Most of them are installed when a deep run first needs them."""

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

import oracles
from handrail import Handrail
from handrail.code.programs import FORMATTERS, LINTERS
from handrail.settings import Settings

DAILY = frozenset(("ruff", "shellcheck"))
Make = Callable[..., Handrail]
Open = Callable[..., Handrail]


class Formatted(NamedTuple):
    """A file of a project before and after its formatter."""

    formatter: str
    path: str
    before: str
    after: str
    project: Mapping[str, str] = MappingProxyType({})
    """Its other files. They choose the formatter and its style."""


FORMATTED = [
    Formatted("ruff", "a.py", "x = {  'a':1 }\n", 'x = {"a": 1}\n', {"ruff.toml": "[format]\n"}),
    Formatted("black", "a.py", "x = {  'a':1 }\n", 'x = {"a": 1}\n', {"pyproject.toml": "[tool.black]\n"}),
    Formatted(
        *("black", "src/a.py", "ff(aaaaaaaaaaa, bbbbbbbbbbb)\n", "ff(\n    aaaaaaaaaaa,\n    bbbbbbbbbbb,\n)\n"),
        {"src/pyproject.toml": "[tool.black]\nline-length = 27\n"},
    ),
    Formatted("autopep8", "a.py", "x = f( 1,2 )\n", "x = f(1, 2)\n", {"setup.cfg": "[pycodestyle]\n"}),
    Formatted(
        *("autopep8", "src/a.py", "value = call(aaaaaaaa, bbbbbbbbbb)\n", "value = call(\n    aaaaaaaa, bbbbbbbbbb)\n"),
        {"src/setup.cfg": "[pycodestyle]\nmax_line_length = 26\n"},
    ),
    Formatted("yapf", "a.py", "x = f( 1,2 )\n", "x = f(1, 2)\n", {".style.yapf": "[style]\n"}),
    Formatted(
        *("yapf", "src/a.py", "def f():\n        return  1\n", "def f():\n  return 1\n"),
        {"src/.style.yapf": "[style]\nbased_on_style = pep8\nindent_width = 2\n"},
    ),
    Formatted("prettier", "a.js", "const a = {b:1}\n", "const a = { b: 1 };\n"),
    Formatted("prettier", "a.js", "const a = {b:1}\n", "const a = { b: 1 }\n", {".prettierrc": "semi: false\n"}),
    Formatted("prettier", "a.ts", "let a:{b:number}\n", "let a: { b: number };\n"),
    Formatted("prettier", "a.tsx", "let a = <b  c='d'/>\n", 'let a = <b c="d" />;\n'),
    Formatted("prettier", "a.json", '{"a":[1,2]}\n', '{ "a": [1, 2] }\n'),
    Formatted("prettier", "a.yaml", "a:   1\n", "a: 1\n"),
    Formatted("prettier", "a.css", "a{color:red}\n", "a {\n  color: red;\n}\n"),
    Formatted("prettier", "a.html", "<p  class='x'>a</p>\n", '<p class="x">a</p>\n'),
    Formatted("prettier", "a.md", "* a\n", "- a\n"),
    Formatted("gofmt", "a.go", "package a\nfunc  f( ){}\n", "package a\n\nfunc f() {}\n"),
    Formatted("rustfmt", "a.rs", "fn  f( ){}\n", "fn f() {}\n"),
    Formatted(
        *("rustfmt", "src/a.rs", "pub async fn  f( ){}\n", "pub async fn f() {}\n"),
        {"Cargo.toml": '[package]\nname = "a"\nedition = "2021"\n', "src/Cargo.toml": "edition.workspace = true\n"},
    ),
    Formatted("clang-format", "a.c", "int  f( ){return 0;}\n", "int f() { return 0; }\n"),
    Formatted("clang-format", "a.cpp", "auto  f=[ ]{};\n", "auto f = [] {};\n"),
    Formatted("clang-format", "A.java", "class  A{}\n", "class A {}\n"),
    Formatted(
        "clang-format", "A.cs", "class  A{}\n", "class A\n{\n}\n", {".clang-format": "BasedOnStyle: Microsoft\n"}
    ),
    Formatted("shfmt", "a.sh", "if true;then\necho a\nfi\n", "if true; then\n\techo a\nfi\n"),
    Formatted(
        *("shfmt", "a.sh", "if true;then\necho a\nfi\n", "if true; then\n  echo a\nfi\n"),
        {".editorconfig": "[*.sh]\nindent_style = space\nindent_size = 2\n"},
    ),
]


class Linted(NamedTuple):
    """A file of a project, and what its linter finds in it."""

    linter: str
    path: str
    text: str
    findings: list[tuple[int, int | None, str | None, str, str, str | None]]
    """Line, column, rule, severity, a part of the message, the fix."""
    project: Mapping[str, str] = MappingProxyType({})


ESLINT = "module.exports = [{rules: {'no-var': 'error', 'no-unused-vars': 'warn'}}];\n"
CARGO = '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2021"\n'
LINTED = [
    Linted(
        *("ruff", "a.py", "import os\ndef f(:\n"),
        [
            (2, 7, "invalid-syntax", "error", "Expected a parameter", None),
            (3, 1, "invalid-syntax", "error", "unexpected EOF", None),
        ],
        {"ruff.toml": 'lint.select = ["E9"]\n'},
    ),
    Linted(
        *("ruff", "src/a.py", "import os\n"),
        [(1, 8, "F401", "warning", "`os` imported but unused", "Remove unused import: `os`")],
        {"src/ruff.toml": 'lint.select = ["F"]\n'},
    ),
    Linted(
        *("pylint", "a.py", "import os\nprint(missing)\n"),
        [
            (1, 1, "W0611", "warning", "Unused import os", None),
            (2, 7, "E0602", "error", "Undefined variable 'missing'", None),
        ],
        {"pylintrc": "[MAIN]\ndisable=C\n"},
    ),
    Linted("pylint", "a.py", "def f(:\n", [(1, 8, "E0001", "error", "Parsing failed", None)], {"pylintrc": "[MAIN]\n"}),
    Linted(
        *("flake8", "a.py", "import os\nx = f( 1)\n"),
        [
            (1, 1, "F401", "error", "'os' imported but unused", None),
            (2, 5, "F821", "error", "undefined name 'f'", None),
            (2, 7, "E201", "warning", "whitespace after '('", None),
        ],
        {".flake8": "[flake8]\nformat = pylint\n"},
    ),
    Linted("flake8", "a.py", "def f(:\n", [(1, 8, "E999", "error", "SyntaxError", None)], {".flake8": "[flake8]\n"}),
    Linted(
        *("eslint", "a.js", "var a = 1;\n"),
        [
            (1, 1, "no-var", "error", "Unexpected var", "replace with 'let a = 1;'"),
            (1, 5, "no-unused-vars", "warning", "'a' is assigned a value but never used.", None),
        ],
        {"eslint.config.js": ESLINT},
    ),
    Linted("eslint", "a.js", "f(", [(1, 3, None, "error", "Parsing error", None)], {"eslint.config.js": ESLINT}),
    Linted(
        *("clippy", "src/main.rs", "fn main() {\n    let x = String::new();\n    if x.len() == 0 {}\n}\n"),
        [(3, 8, "clippy::len_zero", "warning", "length comparison to zero", "replace with 'x.is_empty()'")],
        {"Cargo.toml": CARGO},
    ),
    Linted(
        *("clippy", "src/main.rs", 'fn main() {\n    let _x: u8 = "a";\n}\n'),
        [(2, 18, "E0308", "error", "mismatched types", None)],
        {"Cargo.toml": CARGO},
    ),
    Linted(
        *("shellcheck", "a.sh", "#!/bin/sh\ncd $1\n"),
        [
            (2, 1, "SC2164", "warning", "in case cd fails", "insert ' || exit'"),
            (2, 4, "SC2086", "info", "Double quote", "insert '\"'"),
        ],
    ),
]


def name_case(case: Formatted | Linted) -> str:
    return f"{case[0]}-{case.path}{'-project' if case.project else ''}"


@pytest.fixture
def open_project(
    rail: Make, workspace: Path, monkeypatch: pytest.MonkeyPatch, *, deep: bool
) -> Callable[[Formatted | Linted, str], Handrail]:
    """Opens a Handrail over the project of a case, with its program on PATH."""

    def open_case(case: Formatted | Linted, text: str) -> Handrail:
        if not deep and case[0] not in DAILY:
            pytest.skip("a deep run installs the program")
        bins = list_bins(case[0])
        path = os.pathsep.join((*map(str, bins), os.environ["PATH"]))
        if shutil.which("cargo-clippy" if case[0] == "clippy" else case[0], path=path) is None:
            pytest.skip(f"{case[0]} is not on PATH")
        monkeypatch.setenv("PATH", path)
        for name, content in {**case.project, case.path: text}.items():
            (workspace / name).parent.mkdir(exist_ok=True)
            (workspace / name).write_text(content)
        values = {
            "tools.enable": ("code_format", "code_lint"),
            "sandbox.toolchains": tuple(str(folder.parent) for folder in bins),
        }
        return rail(settings=Settings.from_values(values), mode="full")

    return open_case


def list_bins(program: str) -> list[Path]:
    """The folders of a program and of its interpreter, installed unless they are."""
    if program in {"prettier", "eslint"}:
        return [oracles.installed(oracles.CODE_PROGRAMS).modules / ".bin", oracles.NODE.parent]
    if program in {"rustfmt", "clippy", "shellcheck"}:
        return []
    if program == "ruff":
        return [Path(sys.executable).parent]
    python = oracles.installed_python()
    return [python / "bin", *python.glob("lib/python*/site-packages/go/bin")]


@pytest.mark.parametrize("case", FORMATTED, ids=name_case)
def test_a_formatter_shows_its_diff_then_writes_what_undo_takes_back(
    open_project: Open, workspace: Path, case: Formatted
) -> None:
    opened, file = open_project(case, case.before), workspace / case.path
    shown = opened.call("code_format", {"path": case.path})
    assert shown.ok, shown.error
    assert (shown.data.formatter, shown.data.changed, shown.data.written) == (case.formatter, True, False)
    added = [line[1:] for line in shown.data.diff.splitlines(keepends=True)[2:] if line[0] in "+ "]
    assert "".join(added) == case.after
    assert (file.read_text(), shown.artifacts.files_changed) == (case.before, ())
    written = opened.call("code_format", {"path": case.path, "write": True})
    assert written.ok, written.error
    assert (file.read_text(), written.artifacts.files_changed) == (case.after, (case.path,))
    assert opened.undo().ok
    assert file.read_text() == case.before


@pytest.mark.parametrize("case", LINTED, ids=name_case)
def test_the_report_of_a_linter_is_a_list_of_findings(open_project: Open, case: Linted) -> None:
    opened = open_project(case, case.text)
    result = opened.call("code_lint", {"paths": [case.path]})
    assert result.ok, result.error
    assert result.data.linters == (case.linter,)
    assert [(one.file, one.line, one.column, one.rule, one.severity, one.fix) for one in result.data.findings] == [
        (case.path, *place, fix) for *place, _, fix in case.findings
    ]
    for one, (*_, message, _) in zip(result.data.findings, case.findings, strict=True):
        assert message in one.message


def test_every_program_is_called_for_real() -> None:
    """Of golangci-lint there is no package to install."""
    assert {case.formatter for case in FORMATTED} == {one.name for one in FORMATTERS}
    assert {case.linter for case in LINTED} == {one.name for one in LINTERS} - {"golangci-lint"}
