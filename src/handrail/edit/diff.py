"""Unified diffs in bounded time, whatever the two texts are."""

from collections import Counter
from collections.abc import Iterator

import msgspec

CONTEXT = 3
_STEPS = 50_000_000
"""Above this the middle is shown as replaced whole: the matcher would take seconds, in the worst case minutes."""
_SHOWN = 60_000
_LINES = 1_000_000
"""Lines of both texts together that are taken apart; each of them costs memory."""


class Diff(msgspec.Struct, frozen=True):
    """The text of a diff and what it counts."""

    text: str
    added: int
    removed: int
    truncated: bool = False


def unified_diff(before: str, after: str, path: str, *, created: bool = False) -> Diff:
    """What changes from one text to the other, as `git diff` would show it."""
    if before == after:
        return Diff("", 0, 0)
    if before.count("\n") + after.count("\n") > _LINES:
        note = f"(more than {_LINES} lines: no diff)\n"
        return Diff(note, after.count("\n"), before.count("\n"), truncated=True)
    old, new = _lines(before), _lines(after)
    hunks = list(_hunks(old, new))
    added = sum(line.startswith("+") for line in hunks)
    removed = sum(line.startswith("-") for line in hunks)
    source = "/dev/null" if created else _name(f"a/{path}")
    text = f"--- {source}\n+++ {_name(f'b/{path}')}\n{''.join(hunks)}"
    if len(text) <= _SHOWN:
        return Diff(text, added, removed)
    cut = text.rfind("\n", 0, _SHOWN) + 1
    return Diff(f"{text[:cut]}… {len(text) - cut} more characters\n", added, removed, truncated=True)


def _name(path: str) -> str:
    """A path as git writes it in a header: quoted where it could be taken for something else."""
    if path.isprintable() and '"' not in path and "\\" not in path:
        return f"{path}\t" if " " in path else path
    return f'"{"".join(_quoted(character) for character in path)}"'


def _quoted(character: str) -> str:
    if character in {'"', "\\"}:
        return f"\\{character}"
    return character if character.isprintable() else "".join(f"\\{byte:03o}" for byte in character.encode())


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    lines = [f"{line}\n" for line in lines]
    return [*lines, f"{last}\n\\ No newline at end of file\n"] if last else lines


def _hunks(old: list[str], new: list[str]) -> Iterator[str]:
    """The changed part between the common beginning and the common end, with some context."""
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    low = max(0, start - CONTEXT)
    high = max(0, end - CONTEXT)
    old_part, new_part = old[low : len(old) - high], new[low : len(new) - high]
    if _steps(old_part, new_part) > _STEPS:
        yield from _replaced(old_part, new_part, low, start - low, end - high)
    else:
        yield from _matched(old_part, new_part, low)


def _steps(old: list[str], new: list[str]) -> int:
    """How long matching takes at worst: every equal pair is looked at once for each run of equal lines that is found.

    Of 200 lines and more the matcher begins no run with a line that makes up over a hundredth, as blank ones do.
    """
    counts = Counter(new)
    often = len(new) // 100 + 1 if len(new) >= 200 else len(new)
    pairs = sum(count for line in old if (count := counts[line]) <= often)
    return (len(old) + pairs) * min(len(old), len(new), pairs + 1)


def _common(one: list[str], other: list[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _matched(old: list[str], new: list[str], low: int) -> Iterator[str]:
    from difflib import SequenceMatcher  # noqa: PLC0415  costs start-up time, and reads never diff

    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield _header(low, first[1], last[2], first[3], last[4])
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a:b])
            else:
                yield from (f"-{line}" for line in old[a:b])
                yield from (f"+{line}" for line in new[c:d])


def _replaced(old: list[str], new: list[str], low: int, before: int, after: int) -> Iterator[str]:
    yield _header(low, 0, len(old), 0, len(new))
    yield from (f" {line}" for line in old[:before])
    yield from (f"-{line}" for line in old[before : len(old) - after])
    yield from (f"+{line}" for line in new[before : len(new) - after])
    yield from (f" {line}" for line in old[len(old) - after :])


def _header(low: int, a: int, b: int, c: int, d: int) -> str:
    return f"@@ -{_span(low + a, b - a)} +{_span(low + c, d - c)} @@\n"


def _span(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"
