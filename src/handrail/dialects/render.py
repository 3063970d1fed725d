"""Texts that several dialects share."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, cast

from msgspec import to_builtins

from handrail.dialects.dialect import Answered
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.results import ToolResult

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def _group_problems(one: Answered) -> dict[str, list[Any]]:
    """The new problems of a change by the absolute path of their file."""
    found = one.result.meta.diagnostics
    by_file: dict[str, list[Any]] = {}
    for problem in found.added if found is not None else ():
        by_file.setdefault(one.surface.to_absolute(problem.file), []).append(to_builtins(problem))
    return by_file


FACTS: dict[str, Callable[[Answered], Any]] = {
    "name": lambda one: one.path.rpartition("/")[2],
    "existed": lambda one: not one.data.created,
    "made": lambda one: "Created" if one.data.created else "Updated",
    "change": lambda one: "create" if one.data.created else "update",
    "written": lambda one: getattr(one.args, "content", "") or getattr(one.args, "new_string", ""),
    "written_lines": lambda one: FACTS["written"](one).count("\n") + 1,
    "returned": lambda one: one.result.meta.returned or 0,
    "added": lambda one: count_changes(one.data.diff)[0],
    "removed": lambda one: count_changes(one.data.diff)[1],
    "filediff": lambda one: {"file": one.path, "patch": one.data.diff, **_count_lines(one.data.diff)},
    "hunks": lambda one: list_hunks(one.data.diff),
    "new_hunks": lambda one: [] if one.data.created else list_hunks(one.data.diff),
    "replaced": lambda one: one.result.meta.occurrences,
    "places": lambda one: len(one.args.edits),
    "json": lambda one: to_json(one.data),
    "old_todos": lambda one: one.surface.memory["old_todos"],
    "answers": lambda one: getattr(one.data, one.data.__struct_fields__[0]),
    "problems": _group_problems,
    "note_id": lambda one: one.data.notes[0].id,
}
"""What tables say about a call besides attributes of `Answered`."""


def to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(to_builtins(value), indent=indent, ensure_ascii=False)


def list_answers(one: Answered) -> list[list[str]]:
    """The answers to each question. A reply to several questions is split at its numbered lines."""
    data, questions = one.data, one.args.questions
    replies = [*data.chosen, *([data.text] if data.text else [])]
    if len(questions) == 1:
        return [replies]
    parts = re.split(r"(?m)^\s*\d+[.):]\s*", "\n".join(replies))[1:]
    return [[part.strip()] for part in parts] if len(parts) == len(questions) else [replies for _ in questions]


def quote_answers(one: Answered) -> str:
    pairs = zip(one.args.questions, list_answers(one), strict=True)
    said = ", ".join(f'"{asked.question}"="{", ".join(reply)}"' for asked, reply in pairs)
    return f"User has answered your questions: {said}"


def drop_none(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def group_matches(one: Answered, matches: Iterable[Any], form: Callable[[Any], list[str]]) -> list[str]:
    """The rows of matches below the path of their file. An empty line is before each path."""
    lines: list[str] = []
    for path, group in groupby(matches, key=lambda match: match.path):
        lines += ["", f"{one.surface.to_absolute(path)}:", *(row for match in group for row in form(match))]
    return lines


def split_lines(text: str) -> list[str]:
    """The lines of a page, without their ends."""
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def number_lines(one: Answered, separator: str, width: int | None = None) -> list[str]:
    """The lines of a read page with their numbers. `width` of a number: that of the last one if not given."""
    lines, first = split_lines(one.content), one.first_line
    columns = len(str(first + len(lines) - 1)) if width is None else width
    numbers = map(str, range(first, first + len(lines)))
    return [f"{number.rjust(columns)}{separator}{line}" for number, line in zip(numbers, lines, strict=True)]


def list_notes(result: ToolResult[Any]) -> list[str]:
    """The warnings of a result, with the reference to its whole text, for systems whose answer is a text."""
    notes = list(result.warnings)
    if result.meta.output is not None and result.meta.output not in result.content:
        notes.append(f"The whole output is {result.meta.output}.")
    return notes


def add_notes(text: str, notes: Sequence[str]) -> str:
    if not notes:
        return text
    return f"{text}{'' if text.endswith(chr(10)) or not text else chr(10)}[{' '.join(notes)}]"


def list_hunks(diff: str) -> list[dict[str, Any]]:
    """The hunks of a unified diff with their lines."""
    hunks: list[dict[str, Any]] = []
    for line in diff.splitlines():
        found = _HUNK.match(line)
        if found:
            old, removed, new, added = (int(number or 1) for number in found.groups())
            hunks.append({"oldStart": old, "oldLines": removed, "newStart": new, "newLines": added, "lines": []})
        elif hunks and line[:1] in {" ", "+", "-", "\\"}:
            hunks[-1]["lines"].append(line)
    return hunks


def count_changes(diff: str) -> tuple[int, int]:
    """The added and the removed lines of a diff."""
    lines = [line for hunk in list_hunks(diff) for line in hunk["lines"]]
    return sum(line[0] == "+" for line in lines), sum(line[0] == "-" for line in lines)


def _count_lines(diff: str) -> dict[str, int]:
    added, removed = count_changes(diff)
    return {"additions": added, "deletions": removed}


def list_patched_files(one: Answered) -> str:
    """The rows of a patch's files: A, M or D, and the path."""
    letters = {"created": "A", "deleted": "D"}
    rows = [f"{letters.get(file.action, 'M')} {file.path}" for file in one.data.files]
    return "Success. Updated the following files:\n" + "".join(f"{row}\n" for row in rows)


def get_details(error: ErrorInfo | None) -> dict[str, Any]:
    """The details of an error if they are an object."""
    details: Any = None if error is None else error.details
    return cast("dict[str, Any]", details) if isinstance(details, dict) else {}


def list_extras(result: ToolResult[Any]) -> dict[str, Any]:
    """Facts of a result that a foreign shape has no field for: rule, sandbox, undo, warnings, truncation."""
    extras: dict[str, Any] = to_builtins(result.meta)
    if result.warnings:
        extras["warnings"] = list(result.warnings)
    if result.error is not None and (rule := get_details(result.error).get("rule")) is not None:
        extras["rule"] = rule
    return extras
