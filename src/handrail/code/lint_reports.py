"""Reads the reports of linters."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from handrail.protocol.wire import Wire

Severity = Literal["error", "warning", "info"]

_LINE = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:(?P<column>\d+):)? (?P<rest>.+)$", re.MULTILINE)
_FLAKE8_RULE = re.compile(r"([A-Z]+\d+) (.+)")
_GOLANGCI_RULE = re.compile(r"(.+) \(([\w-]+)\)")
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
    except (msgspec.DecodeError, AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
        raise UnreadableReportError from error


def _decode(text: str) -> Any:
    return msgspec.json.decode(text)


def _read_ruff(text: str) -> Iterator[LintFinding]:
    for one in _decode(text):
        fix, rule = one.get("fix") or {}, one.get("code")
        is_syntax = rule in {None, "invalid-syntax"} or rule.startswith("E9")
        yield _build(
            one["filename"],
            one["location"]["row"],
            one["location"]["column"],
            rule,
            "error" if is_syntax else "warning",
            one["message"],
            fix.get("message"),
        )


def _read_pylint(text: str) -> Iterator[LintFinding]:
    severities: dict[str, Severity] = {"error": "error", "fatal": "error", "warning": "warning"}
    for one in _decode(text):
        severity, rule = severities.get(one["type"], "info"), one["message-id"]
        yield _build(one["path"], one["line"], one["column"] + 1, rule, severity, one["message"])


def _read_flake8(text: str) -> Iterator[LintFinding]:
    for match in _LINE.finditer(text):
        rule, message = _FLAKE8_RULE.fullmatch(match["rest"]).groups()  # pyright: ignore[reportOptionalMemberAccess]  an error then
        severity: Severity = "error" if rule.startswith(("E9", "F")) else "warning"
        yield _build(match["file"], int(match["line"]), int(match["column"] or 1), rule, severity, message)


def _read_eslint(text: str) -> Iterator[LintFinding]:
    for file in _decode(text):
        for one in file["messages"]:
            fix = one.get("fix")
            severity: Severity = "error" if one["severity"] == 2 else "warning"
            yield _build(
                file["filePath"],
                one.get("line") or 1,
                one.get("column"),
                one.get("ruleId"),
                severity,
                one["message"],
                f"replace with {fix['text']!r}" if fix else None,
            )


def _read_golangci(text: str) -> Iterator[LintFinding]:
    for match in _LINE.finditer(text):
        if found := _GOLANGCI_RULE.fullmatch(match["rest"]):
            severity: Severity = "error" if found[2] == "typecheck" else "warning"
            column = int(match["column"]) if match["column"] else None
            yield _build(match["file"], int(match["line"]), column, found[2], severity, found[1])


def _read_clippy(text: str) -> Iterator[LintFinding]:
    severities: dict[str, Severity] = {"error": "error", "warning": "warning"}
    for row in text.splitlines():
        one = _decode(row).get("message") if row.startswith("{") else None
        spans = [span for span in one.get("spans", ()) if span["is_primary"]] if isinstance(one, dict) else []  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        if one is None or not spans:
            continue
        suggestions = [span["suggested_replacement"] for child in one["children"] for span in child["spans"]]
        fix = next((f"replace with {text!r}" for text in suggestions if text is not None), None)
        severity = severities.get(one["level"], "info")
        span, rule = spans[0], (one.get("code") or {}).get("code")
        yield _build(span["file_name"], span["line_start"], span["column_start"], rule, severity, one["message"], fix)


def _read_shellcheck(text: str) -> Iterator[LintFinding]:
    severities: dict[str, Severity] = {"error": "error", "warning": "warning"}
    for one in _decode(text):
        replacements = (one.get("fix") or {}).get("replacements") or [{}]
        fix = replacements[0].get("replacement")
        yield _build(
            one["file"],
            one["line"],
            one["column"],
            f"SC{one['code']}",
            severities.get(one["level"], "info"),
            one["message"],
            f"insert {fix!r}" if fix else None,
        )


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
