"""The hunks of a diff: lines of two texts beside each other, with some context."""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from handrail.edit.lines import end_of_line, start_of_line
from handrail.edit.newlines import Replacement, replaced

CONTEXT = 3
_STEPS = 50_000_000
"""Above this the middle is shown as replaced whole: the matcher would take seconds, in the worst case minutes."""


class Block(msgspec.Struct, frozen=True):
    """Lines of both texts, and how many come before them."""

    old: list[str]
    new: list[str]
    old_before: int
    new_before: int


def blocks(before: str, replacements: Sequence[Replacement], lines_before: int) -> Iterator[Block]:
    """What is replaced, with the lines around it; as one where these touch."""
    at = first = 0
    old_before = new_before = lines_before
    while first < len(replacements):
        start = start_of_line(before, replacements[first].start, CONTEXT)
        end = end_of_line(before, replacements[first].end, CONTEXT)
        last = first + 1
        while last < len(replacements) and start_of_line(before, replacements[last].start, CONTEXT) <= end:
            end = end_of_line(before, replacements[last].end, CONTEXT)
            last += 1
        between = before.count("\n", at, start)
        old_before, new_before = old_before + between, new_before + between
        new = replaced(before, replacements[first:last], start, end)
        block = Block(lines_of(before[start:end]), lines_of(new), old_before, new_before)
        yield block
        old_before, new_before = old_before + len(block.old), new_before + len(block.new)
        at, first = end, last


def hunks_of(block: Block, *, matched: bool = True) -> Iterator[str]:
    """The changed part between the common beginning and the common end, with some context."""
    old, new = block.old, block.new
    if old == new:
        return
    start = _common(old, new)
    end = _common(old[start:][::-1], new[start:][::-1])
    low = max(0, start - CONTEXT)
    high = max(0, end - CONTEXT)
    part = Block(old[low : len(old) - high], new[low : len(new) - high], block.old_before + low, block.new_before + low)
    fewest, most = (choice(len(old), len(new)) - start - end for choice in (min, max))
    if fewest == 0 or most == 1 or not matched or _steps(part.old, part.new) > _STEPS:
        yield from _replaced(part, start - low, end - high)
    else:
        yield from _matched(part)


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


def _matched(block: Block) -> Iterator[str]:
    from difflib import SequenceMatcher  # noqa: PLC0415  costs start-up time, and reads never diff

    old, new = block.old, block.new
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT):
        first, last = group[0], group[-1]
        yield _header(block, first[1], last[2], first[3], last[4])
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}" for line in old[a:b])
            else:
                yield from (f"-{line}" for line in old[a:b])
                yield from (f"+{line}" for line in new[c:d])


def _replaced(block: Block, before: int, after: int) -> Iterator[str]:
    """Without looking for lines in the middle that are in both."""
    old, new = block.old, block.new
    yield _header(block, 0, len(old), 0, len(new))
    yield from (f" {line}" for line in old[:before])
    yield from (f"-{line}" for line in old[before : len(old) - after])
    yield from (f"+{line}" for line in new[before : len(new) - after])
    yield from (f" {line}" for line in old[len(old) - after :])


def _header(block: Block, a: int, b: int, c: int, d: int) -> str:
    return f"@@ -{_span(block.old_before + a, b - a)} +{_span(block.new_before + c, d - c)} @@\n"


def _span(start: int, count: int) -> str:
    if count == 1:
        return str(start + 1)
    return f"{start + 1 if count else start},{count}"


def lines_of(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    lines = [f"{line}\n" for line in lines]
    return [*lines, f"{last}\n\\ No newline at end of file\n"] if last else lines
