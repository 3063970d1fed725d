"""Facts of answers: what several tables show of a result."""

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import add
from typing import Any

from msgspec import to_builtins

from handrail.dialects.dialect import Answered
from handrail.edit.diff import NO_NEWLINE
from handrail.edit.diff_parser import parse_hunk_range

_MAX_PREFIXES = 2_000
"""Lines of a page, if a call does not say how many."""


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


@cache
def _list_prefixes(width: int, separator: str) -> list[str]:
    """The starts of numbered lines. To add one is ten times as fast as to format a number."""
    return [f"{number:>{width}}{separator}" for number in range(1, _MAX_PREFIXES + 1)]


def list_match_rows(
    matches: Sequence[Any], before: int | None = None, after: int | None = None
) -> Iterator[tuple[str, int, str, bool]]:
    """Path, number and text of each line, each once, and whether it is a match. At most so many lines around one."""
    matched = {(match.path, match.line) for match in matches}
    last = ("", 0)
    for match in matches:
        around = match.before if before is None else match.before[max(0, len(match.before) - before) :]
        first = match.line - len(around)
        for number, text in enumerate((*around, match.text, *match.after[:after]), first):
            if last[0] != match.path or number > last[1]:
                last = (match.path, number)
                yield match.path, number, text, last in matched


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


def name_state(item: Any) -> str:
    """The state of a step in the words of other systems."""
    return "in_progress" if item.status == "active" else "completed" if item.status == "done" else item.status


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
