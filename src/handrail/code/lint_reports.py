"""Reads the reports of linters."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

import msgspec

from handrail.protocol.wire import UNREADABLE, Wire, decode_json

Severity = Literal["error", "warning", "info"]

_LINE = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<rest>.+)$", re.MULTILINE)
_GOLANGCI_RULE = re.compile(r"(.+) \(([\w-]+)\)")
_SEVERITIES: dict[str, Severity] = {"error": "error", "fatal": "error", "warning": "warning"}
_ESLINT_ERROR = 2
_MAX_FIX_CHARS = 200


class LintFinding(Wire, frozen=True, omit_defaults=False, kw_only=True):
    """A problem that a linter found."""

    file: str
    line: int
    column: int | None = None
    """From 1."""
    rule: str | None = None
    severity: Severity
    message: str
    fix: str | None = None
    """How the linter would mend it."""
    source: str
    """The linter."""


class UnreadableReportError(Exception):
    """The output of a linter is not its report, so the linter failed."""


def read_report(linter: str, text: str) -> list[LintFinding]:
    """The findings in what a linter printed on stdout."""
    try:
        return [msgspec.structs.replace(one, source=linter) for one in _READERS[linter](text)]
    except UNREADABLE as error:
        raise UnreadableReportError from error


class _RuffPlace(msgspec.Struct):
    row: int
    column: int


class _RuffFix(msgspec.Struct):
    message: str | None = None


class _RuffFinding(msgspec.Struct):
    filename: str
    location: _RuffPlace
    message: str
    code: str | None = None
    fix: _RuffFix | None = None


def _read_ruff(text: str) -> Iterator[LintFinding]:
    for one in decode_json(text, list[_RuffFinding]):
        is_syntax = one.code is None or one.code == "invalid-syntax" or one.code.startswith("E9")
        severity = "error" if is_syntax else "warning"
        fix = one.fix and one.fix.message
        yield _build(one.filename, one.location.row, one.location.column, one.code, severity, one.message, fix)


class _PylintFinding(msgspec.Struct, rename="kebab"):
    path: str
    line: int
    column: int
    type: str
    message_id: str
    message: str


def _read_pylint(text: str) -> Iterator[LintFinding]:
    for one in decode_json(text, list[_PylintFinding]):
        severity = _SEVERITIES.get(one.type, "info")
        yield _build(one.path, one.line, one.column + 1, one.message_id, severity, one.message)


def _read_flake8(text: str) -> Iterator[LintFinding]:
    for match in _LINE.finditer(text):
        rule, _, message = match["rest"].partition(" ")
        severity = "error" if rule.startswith(("E9", "F")) else "warning"
        yield _build(match["file"], int(match["line"]), int(match["column"] or 1), rule, severity, message)


class _EslintFix(msgspec.Struct):
    text: str


class _EslintMessage(msgspec.Struct, rename="camel"):
    message: str
    severity: int
    line: int | None = None
    column: int | None = None
    rule_id: str | None = None
    fix: _EslintFix | None = None


class _EslintFile(msgspec.Struct, rename="camel"):
    file_path: str
    messages: list[_EslintMessage]


def _read_eslint(text: str) -> Iterator[LintFinding]:
    for file in decode_json(text, list[_EslintFile]):
        for one in file.messages:
            severity = "error" if one.severity == _ESLINT_ERROR else "warning"
            fix = f"replace with {one.fix.text!r}" if one.fix else None
            yield _build(file.file_path, one.line or 1, one.column, one.rule_id, severity, one.message, fix)


def _read_golangci(text: str) -> Iterator[LintFinding]:
    for match in _LINE.finditer(text):
        if found := _GOLANGCI_RULE.fullmatch(match["rest"]):
            severity: Severity = "error" if found[2] == "typecheck" else "warning"
            column = int(match["column"]) if match["column"] else None
            yield _build(match["file"], int(match["line"]), column, found[2], severity, found[1])


class _RustCode(msgspec.Struct):
    code: str


class _RustSpan(msgspec.Struct):
    file_name: str
    line_start: int
    column_start: int
    is_primary: bool
    suggested_replacement: str | None = None


class _RustMessage(msgspec.Struct):
    message: str
    level: str = ""
    code: _RustCode | None = None
    spans: list[_RustSpan] = []
    children: list["_RustMessage"] = []


class _CargoRow(msgspec.Struct):
    message: _RustMessage | None = None


def _read_clippy(text: str) -> Iterator[LintFinding]:
    for row in text.splitlines():
        one = decode_json(row, _CargoRow).message if row.startswith("{") else None
        span = next((span for span in one.spans if span.is_primary), None) if one is not None else None
        if one is None or span is None:
            continue
        suggestions = (inner.suggested_replacement for child in one.children for inner in child.spans)
        fix = next((f"replace with {text!r}" for text in suggestions if text is not None), None)
        severity, rule = _SEVERITIES.get(one.level, "info"), one.code and one.code.code
        yield _build(span.file_name, span.line_start, span.column_start, rule, severity, one.message, fix)


class _ShellReplacement(msgspec.Struct):
    replacement: str


class _ShellFix(msgspec.Struct):
    replacements: list[_ShellReplacement] = []


class _ShellFinding(msgspec.Struct):
    file: str
    line: int
    column: int
    level: str
    code: int
    message: str
    fix: _ShellFix | None = None


def _read_shellcheck(text: str) -> Iterator[LintFinding]:
    for one in decode_json(text, list[_ShellFinding]):
        texts = [replacement.replacement for replacement in one.fix.replacements] if one.fix else []
        fix, severity = (f"insert {texts[0]!r}" if texts else None), _SEVERITIES.get(one.level, "info")
        yield _build(one.file, one.line, one.column, f"SC{one.code}", severity, one.message, fix)


def _build(
    file: str,
    line: int,
    column: int | None,
    rule: str | None,
    severity: Severity,
    message: str,
    fix: str | None = None,
) -> LintFinding:
    return LintFinding(
        file=file,
        line=line,
        column=column,
        rule=rule,
        severity=severity,
        message=" ".join(message.split()),
        fix=fix and fix[:_MAX_FIX_CHARS],
        source="",
    )


_READERS: dict[str, Callable[[str], Iterable[LintFinding]]] = {
    "ruff": _read_ruff,
    "pylint": _read_pylint,
    "flake8": _read_flake8,
    "eslint": _read_eslint,
    "golangci-lint": _read_golangci,
    "clippy": _read_clippy,
    "shellcheck": _read_shellcheck,
}
