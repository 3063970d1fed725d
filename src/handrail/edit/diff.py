"""Unified diffs in bounded time, whatever the two texts are."""

from collections.abc import Iterable, Sequence

import msgspec

from handrail.edit.hunks import DiffBlock, build_blocks, build_whole_block, render_hunks
from handrail.edit.newlines import Replacement

_MAX_DIFF_CHARS = 60_000
_MAX_DIFFED_LINES = 1_000_000
"""Lines of both texts together that are taken apart; each of them costs memory."""


class Diff(msgspec.Struct, frozen=True):
    """The text of a diff and what it counts."""

    text: str
    added: int
    removed: int
    truncated: bool = False


def build_unified_diff(old: str | None, new: str | None, path: str) -> Diff:
    """What changes from one text to the other, as `git diff` would show it; None where there is no file."""
    before, after = old or "", new or ""
    if before == after:
        return Diff("", 0, 0)
    if before.count("\n") + after.count("\n") > _MAX_DIFFED_LINES:
        note = f"(more than {_MAX_DIFFED_LINES} lines: no diff)\n"
        return Diff(note, after.count("\n"), before.count("\n"), truncated=True)
    names = ("/dev/null" if old is None else _name(f"a/{path}"), "/dev/null" if new is None else _name(f"b/{path}"))
    return _gathered([build_whole_block(before, after)], *names)


def build_edit_diff(before: str, replacements: Sequence[Replacement], path: str, *, lines_before: int = 0) -> Diff:
    """The same where it is known what is replaced: only the lines around that are looked at.

    `before` may be a part of a text, of whole lines, with so many `lines_before` it.
    """
    lines = (before.count("\n", start, end) + text.count("\n") for start, end, text in replacements)
    if sum(lines) > _MAX_DIFFED_LINES:
        return Diff(
            f"(more than {_MAX_DIFFED_LINES} lines: no diff)\n", *_counted(before, replacements), truncated=True
        )
    return _gathered(build_blocks(before, replacements, lines_before), _name(f"a/{path}"), _name(f"b/{path}"))


def _counted(before: str, replacements: Sequence[Replacement]) -> tuple[int, int]:
    """Lines that come and that go, at the most."""
    added = sum(text.count("\n") + 1 for _, _, text in replacements)
    return added, sum(before.count("\n", start, end) + 1 for start, end, _ in replacements)


def _gathered(parts: Iterable[DiffBlock], source: str, target: str) -> Diff:
    """All hunks are counted, and as many kept as are shown."""
    kept = [f"--- {source}\n+++ {target}\n"]
    length, added, removed = len(kept[0]), 0, 0
    for part in parts:
        lines = list(render_hunks(part))
        added += sum(line.startswith("+") for line in lines)
        removed += sum(line.startswith("-") for line in lines)
        if length <= _MAX_DIFF_CHARS:
            kept += lines
        length += sum(map(len, lines))
    text = "".join(kept)
    if length <= _MAX_DIFF_CHARS:
        return Diff(text, added, removed)
    cut = text.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return Diff(f"{text[:cut]}… {length - cut} more characters\n", added, removed, truncated=True)


def _name(path: str) -> str:
    """A path as git writes it in a header: quoted where it could be taken for something else."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return f"{path}\t" if " " in path else path
    return f'"{"".join(_quoted(character) for character in path)}"'


def _quoted(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())
