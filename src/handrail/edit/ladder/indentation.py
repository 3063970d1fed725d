"""How the indentation of new lines is to be changed, learned from lines that are in the file at another one."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

Shift = Callable[[str], str | None]
"""The file's indentation for one of the new text; None where it cannot be told."""
Seen = tuple[str, str]
"""An indentation of the old text, and what it is in the file."""
_WIDTHS = (4, 2, 8, 3, 1, 5, 6, 7)


class Indentation(NamedTuple):
    """What was learned."""

    shift: Shift
    regular: bool
    first: Seen | None = None
    """The first line's own, where only that one is out of line."""
    last: Seen | None = None


def learned(seen: Sequence[Seen], lines: Sequence[str]) -> Indentation:
    """What the lines of a place teach, the `seen` in order. `lines` are those of the whole file: its habits count."""
    rule = _rule(seen, lines)
    if rule is not None:
        return Indentation(rule, regular=True)
    for head, tail in ((0, 1), (1, 0), (1, 1)):
        rest = seen[head : len(seen) - tail]
        rule = _rule(rest, lines) if rest else None
        if rule is not None:
            first, last = seen[0] if head else None, seen[-1] if tail else None
            return Indentation(_but_for(rule, rest, first, last), False, first, last)
    return Indentation(_known(seen), regular=False)


def _but_for(rule: Shift, rest: Sequence[Seen], *edges: Seen | None) -> Shift:
    """An indentation that a line at the edge has, where it is wrong, may be as wrong in a new line; but not where
    several other lines have it too."""
    odd = {edge[0] for edge in edges if edge}
    if len(rest) > 1:
        odd -= {old for old, _ in rest}
    return lambda indent: None if indent in odd else rule(indent)


def _rule(seen: Sequence[Seen], lines: Sequence[str]) -> Shift | None:
    """What all the simplest rules say that explain every line; where they differ, what the file's habits tell."""
    if all(old == own for old, own in seen):
        return lambda indent: indent
    for rules in (_simple(seen, lines), _tabbed_and_moved(seen, lines)):
        fitting = [rule for rule in rules if all(rule(old) == own for old, own in seen)]
        if fitting:
            return _agreed(fitting, dict(seen), lines)
    return None


def _agreed(rules: Sequence[Shift], known: dict[str, str], lines: Sequence[str]) -> Shift:
    """One answer of several rules. One level alone can be explained by a move, by tabs and by wider steps."""

    def shift(indent: str) -> str | None:
        if indent in known:
            return known[indent]
        answers = {answer for rule in rules if (answer := rule(indent)) is not None}
        if len(answers) > 1 or any("\t" in answer and "  " in answer for answer in answers):
            answers &= {line[: len(line) - len(line.lstrip())] for line in lines}
        return answers.pop() if len(answers) == 1 else None

    return shift


def _simple(seen: Sequence[Seen], lines: Sequence[str]) -> Iterator[Shift]:
    if not seen:
        return
    old, own = min(seen, key=lambda pair: len(pair[0]))
    yield from _moved(old, own)
    yield from _scaled(seen)
    if any(("\t" in one) != ("\t" in other) for one, other in seen):
        for width in _WIDTHS:
            spaces = _to_spaces(width)
            if all(spaces(one) == spaces(other) for one, other in seen):
                yield _to_tabs(width, dict(seen), lines) if _has_tabs(seen) else spaces
        if not old and _has_tabs(seen):  # steps of spaces inside what was moved to where tabs are
            yield from (_after(_to_tabs(width, {}, ()), moved) for width in (4, 2) for moved in _moved("", own))


def _tabbed_and_moved(seen: Sequence[Seen], lines: Sequence[str]) -> Iterator[Shift]:
    if not seen:
        return
    old, own = min(seen, key=lambda pair: len(pair[0]))
    for width in _WIDTHS:
        turned = _to_tabs(width, {}, lines) if _has_tabs(seen) else _to_spaces(width)
        yield from (_after(turned, moved) for moved in _moved(turned(old) or "", own))


def _has_tabs(seen: Sequence[Seen]) -> bool:
    return any("\t" in own for _, own in seen)


def _moved(old: str, own: str) -> Iterator[Shift]:
    """All lines moved to the right, or to the left."""
    if own.endswith(old):
        more = own[: len(own) - len(old)]
        yield lambda indent: f"{more}{indent}"
    if old.endswith(own):
        less = old[: len(old) - len(own)]
        yield lambda indent: indent[len(less) :] if indent.startswith(less) else None


def _after(one: Shift, other: Shift) -> Shift:
    def both(indent: str) -> str | None:
        turned = one(indent)
        return None if turned is None else other(turned)

    return both


def _to_spaces(width: int) -> Shift:
    return lambda indent: indent.replace("\t", " " * width)


def _to_tabs(width: int, known: dict[str, str], lines: Sequence[str]) -> Shift:
    """Where the file mixes both, only what was seen is known: eight spaces may be two tabs, or spaces after a tab."""

    def turned(indent: str) -> str | None:
        if indent in known:
            return known[indent]
        if _mixed(lines, width):
            return None
        length = len(indent.replace("\t", " " * width))
        return "\t" * (length // width) + " " * (length % width)

    return turned


def _mixed(lines: Sequence[str], width: int) -> bool:
    """Whether some lines are indented with as many spaces as a tab stands for."""
    step = " " * width
    return any(step in line[: len(line) - len(line.lstrip())] for line in lines if step in line)


def _scaled(seen: Sequence[Seen]) -> Iterator[Shift]:
    """Wider or narrower steps of the same white space."""
    old, own = max(seen, key=lambda pair: len(pair[0]))
    if not old or not own or set(old) != set(own) or len(set(own)) != 1:
        return

    def scaled(indent: str) -> str | None:
        length, rest = divmod(len(indent) * len(own), len(old))
        return None if rest or not set(indent) <= set(own) else own[0] * length

    yield scaled


def _known(seen: Sequence[Seen]) -> Shift:
    """Only what was seen, and always at the same indentation."""
    known = dict(seen)
    contradicted = {old for old, own in seen if known[old] != own}
    return lambda indent: None if indent in contradicted else known.get(indent)
