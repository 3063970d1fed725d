"""Reads the reports of linters."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, cast

from msgspec.structs import replace

from handrail.protocol.wire import UNREADABLE, Wire, convert, decode_json

Severity = Literal["error", "warning", "info"]

_LINE = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<rest>.+)$", re.MULTILINE)
_GOLANGCI_RULE = re.compile(r"(.+) \(([\w-]+)\)")
_SEVERITIES: dict[object, Severity] = {
    "error": "error",
    "fatal": "error",
    2: "error",
    "warning": "warning",
    1: "warning",
}
_MAX_FIX_CHARS = 200
_Row = dict[str, Any]
"""A finding as its linter reports it."""


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
        return [replace(one, source=linter) for one in _READERS[linter](text)]
    except UNREADABLE as error:
        raise UnreadableReportError from error


def _read_ruff(text: str) -> Iterator[LintFinding]:
    for row in decode_json(text, list[_Row]):
        rule = str(row.get("code") or "E9")
        severity = "error" if rule == "invalid-syntax" or rule.startswith("E9") else "warning"
        yield _build(row, "filename location.row location.column code message fix.message", severity)


def _read_pylint(text: str) -> Iterator[LintFinding]:
    for row in decode_json(text, list[_Row]):
        one = _build(row, "path line column message-id message", _judge(row.get("type")))
        yield replace(one, column=(one.column or 0) + 1)


def _read_flake8(text: str) -> Iterator[LintFinding]:
    for row in _list_lines(text):
        rule, _, message = row["rest"].partition(" ")
        severity = "error" if rule.startswith(("E9", "F")) else "warning"
        yield _build({**row, "rule": rule, "message": message}, "file line column rule message", severity)


def _read_eslint(text: str) -> Iterator[LintFinding]:
    for file in decode_json(text, list[_Row]):
        for row in convert(file.get("messages"), list[_Row]):
            one = {**row, "file": file.get("filePath"), "line": row.get("line") or 1}
            yield _build(
                one, "file line column ruleId message fix.text", _judge(row.get("severity")), "replace with {!r}"
            )


def _read_golangci(text: str) -> Iterator[LintFinding]:
    for row in _list_lines(text):
        if found := _GOLANGCI_RULE.fullmatch(row["rest"]):
            severity = "error" if found[2] == "typecheck" else "warning"
            yield _build({**row, "rule": found[2], "message": found[1]}, "file line column rule message", severity)


def _read_clippy(text: str) -> Iterator[LintFinding]:
    for line in text.splitlines():
        row: _Row = (_find(decode_json(line, _Row), "message") if line.startswith("{") else None) or {}
        spans = [span for span in _find(row, "spans") or () if _find(span, "is_primary")]
        if not spans:
            continue
        inner = [span for child in _find(row, "children") or () for span in _find(child, "spans") or ()]
        fixes = (fix for span in inner if (fix := _find(span, "suggested_replacement")) is not None)
        one = {**row, "span": spans[0], "fix": next(fixes, None)}
        places = "span.file_name span.line_start span.column_start code.code message fix"
        yield _build(one, places, _judge(row.get("level")), "replace with {!r}")


def _read_shellcheck(text: str) -> Iterator[LintFinding]:
    for row in decode_json(text, list[_Row]):
        fixes = [_find(one, "replacement") for one in _find(row, "fix.replacements") or ()]
        one = {**row, "code": f"SC{row.get('code')}", "fix": next(iter(fixes), None)}
        yield _build(one, "file line column code message fix", _judge(row.get("level")), "insert {!r}")


def _list_lines(text: str) -> Iterator[_Row]:
    for match in _LINE.finditer(text):
        yield {
            **match.groupdict(),
            "line": int(match["line"]),
            "column": int(match["column"]) if match["column"] else None,
        }


def _judge(level: object) -> Severity:
    return _SEVERITIES.get(level, "info") if isinstance(level, str | int) else "info"


def _build(row: _Row, places: str, severity: Severity, fix: str = "{}") -> LintFinding:
    """The finding whose file, line, column, rule, message and perhaps fix are at these places of a row."""
    names = ("file", "line", "column", "rule", "message", "fix")
    values = dict(zip(names, (_find(row, place) for place in places.split()), strict=False))
    found = convert({**values, "severity": severity, "source": ""}, LintFinding)
    mend = None if found.fix is None else fix.format(found.fix)[:_MAX_FIX_CHARS]
    return replace(found, message=" ".join(found.message.split()), fix=mend)


def _find(row: object, place: str) -> Any:
    """The value at a place such as `fix.message`. None if there is none."""
    for name in place.split("."):
        row = cast("_Row", row).get(name) if isinstance(row, dict) else None
    return row


_READERS: dict[str, Callable[[str], Iterable[LintFinding]]] = {
    "ruff": _read_ruff,
    "pylint": _read_pylint,
    "flake8": _read_flake8,
    "eslint": _read_eslint,
    "golangci-lint": _read_golangci,
    "clippy": _read_clippy,
    "shellcheck": _read_shellcheck,
}
