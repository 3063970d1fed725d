"""Texts that several dialects share."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from operator import add
from typing import Any, cast

from msgspec import to_builtins

from handrail.dialects.dialect import Answered
from handrail.edit.diff import NO_NEWLINE
from handrail.edit.diff_parser import parse_hunk_range
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.results import ToolResult
from handrail.protocol.text import to_one_line, truncate

_PARAMETER = re.compile(r"\b(?:[a-z]+[A-Z]\w+|cwd)\b")
"""Names of canonical parameters in messages. Other names are plain words."""
_SUBJECT = re.compile(r"\A(\w+)(?= (?:is|holds|has)\b)")
_TOOL = re.compile(r"\b([Uu]se|[Ww]ith) (read|write|edit|ls|find|grep|exec|process|delete)\b(?! (?:the|a|an|of)\b)")
_NO_TOOL = re.compile(r"\bThe action list\b|\b[Ww]ithout background and yieldMs\b")
_MAX_PREFIXES = 2_000
"""Lines of a page, if a call does not say how many."""
_LOST = "\0"
"""Stands for what the dialect lacks. The clause with it is left out."""
_CLAUSE = re.compile(rf": list them\b|,? or [^,;.\n]*{_LOST}[^,;.\n]*|;[^;.\n]*{_LOST}[^;.\n]*")
_SENTENCE = re.compile(rf"(?:(?<=\.) |^)[^;.\n]*{_LOST}[^;.\n]*\.?")


def to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(to_builtins(value), indent=indent, ensure_ascii=False)


def list_answers(one: Answered) -> list[list[str]]:
    """The answers to each question. Chosen options and lines of a reply begin with the number of their question."""
    data, count = one.data, len(one.args.questions)
    replies = [*data.chosen, *([data.text] if data.text else [])]
    if count == 1:
        return [replies]
    _, *parts = re.split(r"(?m)^\s*(\d+)[.):]\s*", "\n".join(replies))
    numbered = [(int(number), part.strip()) for number, part in zip(parts[::2], parts[1::2], strict=True)]
    if {number for number, _ in numbered} != set(range(1, count + 1)):
        return [replies for _ in range(count)]
    return [[part for own, part in numbered if own == number] for number in range(1, count + 1)]


def quote_answers(one: Answered) -> str:
    pairs = zip(one.args.questions, list_answers(one), strict=True)
    said = ", ".join(f'"{asked.question}"="{", ".join(reply)}"' for asked, reply in pairs)
    return f"User has answered your questions: {said}"


def clean(text: str) -> str:
    """A text of the model for a message."""
    return to_one_line(truncate(text, 80))


def drop_none(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}


def group_matches(one: Answered, matches: Sequence[Any], row: str, around: str = "", gap: str = "") -> str:
    """Their number, and the rows of matches below the path of their file. Empty if there are none."""
    blocks: list[str] = []
    for path, rows in groupby(list_match_rows(matches), key=lambda found: found[0]):
        lines = [(row if is_match else around).format(number, text) for _, number, text, is_match in rows]
        blocks.append("\n".join((f"{one.surface.to_absolute(path)}:", *lines)))
    return f"Found {len(matches)} matches\n{gap}" + "\n\n".join(blocks) if matches else ""


def list_paths(one: Answered, paths: Iterable[str]) -> str:
    return "\n".join(map(one.surface.to_absolute, paths)) or "No files found"


def add_cut(one: Answered, text: str) -> str:
    advice = "(Results are truncated. Consider using a more specific path or pattern.)"
    return f"{text}\n\n{advice}" if one.truncated else text


def list_match_rows(
    matches: Sequence[Any], before: int | None = None, after: int | None = None
) -> Iterator[tuple[str, int, str, bool]]:
    """Path, number and text of each line, each once, and whether it is a match. At most so many lines around one."""
    matched = {(match.path, match.line) for match in matches}
    last = ("", 0)
    for match in matches:
        around = (
            match.before[len(match.before) - before :]
            if before is not None and before < len(match.before)
            else match.before
        )
        first = match.line - len(around)
        for number, text in enumerate((*around, match.text, *match.after[:after]), first):
            if last[0] != match.path or number > last[1]:
                last = (match.path, number)
                yield match.path, number, text, last in matched


def number_lines(one: Answered, separator: str, width: int | None = None) -> list[str]:
    """The lines of a read page with their numbers. `width` of a number: that of the last one if not given."""
    lines, first = one.content.split("\n"), one.data.first_line or 1
    if lines[-1] == "":
        del lines[-1]
    last = first + len(lines) - 1
    columns = len(str(last)) if width is None else width
    if last > _MAX_PREFIXES:
        return list(map(f"%{columns}d{separator}%s".__mod__, enumerate(lines, first)))
    prefixes = _list_prefixes(columns, separator)
    return list(map(add, prefixes if first == 1 else prefixes[first - 1 : last], lines))


def number_page(one: Answered, width: int | None = None) -> str:
    """The numbered lines of a read page, and which these are if there are more."""
    lines = number_lines(one, "\t", width)
    if one.has_more:
        lines += ["", f"[Showing lines {one.first_line}-{one.last_line} of {one.result.meta.total} total lines]"]
    return "\n".join(lines)


def name_state(item: Any) -> str:
    """The state of a step in the words of other systems."""
    return {"active": "in_progress", "done": "completed"}.get(item.status, item.status)


@cache
def _list_prefixes(width: int, separator: str) -> list[str]:
    """The starts of numbered lines. To add one is ten times as fast as to format a number."""
    return [f"{number:>{width}}{separator}" for number in range(1, _MAX_PREFIXES + 1)]


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


def add_block(text: str, tag: str, notes: Sequence[str]) -> str:
    """A text with notes below it, if there are any."""
    return "\n".join((text, "", f"<{tag}>", *notes, f"</{tag}>")) if notes else text


def reword(text: str, names: Mapping[str, str], tools: Mapping[str, str], *, is_plain: bool = True) -> str:
    """A message with the dialect's names of parameters and tools, without advice to use others.

    `is_plain`: whether words such as path may be plain words, so that only the subject is a parameter."""
    if is_plain:
        text = _SUBJECT.sub(lambda found: names.get(found[1], found[1]), text)
        text = _PARAMETER.sub(lambda found: names.get(found[0], _LOST), text)
    else:
        text = re.sub(r"\w+", lambda found: names.get(found[0], found[0]), text)
    text = _TOOL.sub(lambda found: f"{found[1]} {tools[found[2]]}" if found[2] in tools else _LOST, text)
    text = _NO_TOOL.sub(_LOST, text)
    text = _CLAUSE.sub("", text)
    return _SENTENCE.sub("", text).strip() or text.replace(_LOST, "…") if _LOST in text else text


def list_hunks(diff: str) -> list[dict[str, Any]]:
    """The hunks of a diff of one file with their lines."""
    hunks: list[dict[str, Any]] = []
    for line in diff.split("\n")[2:]:
        if stated := parse_hunk_range(line):
            hunks.append(dict(zip(("oldStart", "oldLines", "newStart", "newLines"), stated, strict=True), lines=[]))
        elif line.startswith((" ", "+", "-")) or line == NO_NEWLINE:
            hunks[-1]["lines"].append(line)
    return hunks


def count_changes(diff: str) -> dict[str, int]:
    """The added and the removed lines of a diff of one file, whose header is the first two lines."""
    return {"additions": max(0, diff.count("\n+") - 1), "deletions": diff.count("\n-")}


def group_problems(one: Answered) -> dict[str, list[Any]]:
    """The new problems of a change by the absolute path of their file."""
    found = one.result.meta.diagnostics
    by_file: dict[str, list[Any]] = {}
    for problem in found.added if found is not None else ():
        by_file.setdefault(one.surface.to_absolute(problem.file), []).append(to_builtins(problem))
    return by_file


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
