"""How the indentation of new lines is to be changed, learned from lines that are in the file at another one."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from handrail.edit.diff import SequenceChange, diff_sequences, pair_equal_items
from handrail.edit.fuzzy.candidates import UnsafeError
from handrail.edit.fuzzy.normalize import extract_indent, split_plain_words, squash_spaces

Shift = Callable[[str], str | None]
"""The file's indentation for one of the new text; None where it cannot be told."""
Seen = tuple[str, str]
"""An indentation of the old text, and what it is in the file."""
_WORD = re.compile(r"\w")
_WIDTHS = (4, 2, 8, 3, 1, 5, 6, 7)


class Indentation(NamedTuple):
    """What was learned."""

    shift: Shift
    regular: bool
    first: Seen | None = None
    """The first line's own, where only that one is out of line."""
    last: Seen | None = None


def learn_indentation(seen: Sequence[Seen], lines: Sequence[str]) -> Indentation:
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


def is_same_line(old: str, new: str) -> bool:
    """Whether a line stays the same one: as deep in both texts, beginning a block or not, with words in common."""
    one, other = split_plain_words(old), split_plain_words(new)
    is_as_deep = extract_indent(old) == extract_indent(new) and _opens(old) == _opens(new)
    return is_as_deep and 2 * len(pair_equal_items(one, other)) >= min(len(one), len(other))


def is_at_file_depth(old: Sequence[str], new: Sequence[str], own: Mapping[int, str]) -> bool:
    """Whether new lines are indented as the file, and not as the old lines. `own` has the file's line for an old one.

    Lines that both texts have decide it, or else the least indentation. UnsafeError if new lines are indented like
    neither, or some like one and some like the other.
    """
    seen = {i: (extract_indent(old[i]), extract_indent(line)) for i, line in own.items() if old[i].strip()}
    if all(one == other for one, other in seen.values()) or not any(map(str.strip, new)):
        return False
    return _Depths(old, new, seen).is_as_file()


class _Depths:
    """How deep the lines of two texts are, and in the file."""

    def __init__(self, old: Sequence[str], new: Sequence[str], seen: Mapping[int, Seen]) -> None:
        self._old, self._new, self._seen = old, new, seen
        self._moved = {i: pair for i, pair in seen.items() if pair[0] != pair[1]}
        self._right = {pair[0] for pair in seen.values() if pair[0] == pair[1]}
        """Indentations that the old text has as the file has them."""
        self._slips = {pair[0] for pair in self._moved.values()}
        said = [squash_spaces(line) for line in old], [squash_spaces(line) for line in new]
        self._changes, self._kept = diff_sequences(*said), dict(pair_equal_items(*said))
        self._outer, self._inner = _enclosing(old, self._kept), _enclosing(new, set(self._kept.values()))

    def is_as_file(self) -> bool:
        votes = {self._vote(i, k) for i, k in self._kept.items() if i in self._seen}
        old, own = (min(indents, key=len) for indents in zip(*self._moved.values(), strict=True))
        new = self._least(range(len(self._new)), self._right.difference(*self._moved.values()))
        if "file" in votes:
            if not votes & {"old", "bracket"}:
                return True
        elif "old" in votes or (new in {None, old} and not votes & {"neither", "unopened"}):
            if not any(map(self._is_as_file_alone, self._changes)):
                return False
        elif not votes & {"in a block", "bracket", "unopened"}:
            if new == own and "neither" not in votes:
                return True
            raise UnsafeError(f"{{new}} is indented neither as {{old}} nor as the file {_depths(new, old, own)}")
        raise UnsafeError(f"some lines of {{new}} are indented as {{old}}, others as the file {_depths(new, old, own)}")

    def _vote(self, i: int, k: int) -> str | None:
        """How a line of both texts is indented. It tells little if it is a bracket, or if the edit puts a block around
        it or takes one away."""
        (old, own), indent = self._seen[i], extract_indent(self._new[k])
        is_old = old == indent != own
        if self._inner[k][0] != self._outer[i][0]:
            return "in a block" if is_old else "unopened" if old != indent == own and not self._inner[k][1] else None
        if not _WORD.search(self._old[i]):
            return "bracket" if is_old else None
        if old == own:  # right in the old text, unless it is indented now as a line that is wrong there
            return "old" if indent != own and indent in self._slips else None
        return {old: "old", own: "file"}.get(indent, "neither")

    def _is_as_file_alone(self, change: SequenceChange) -> bool:
        """Whether lines that come in are at the file's depth, judged by the lines that they replace or stand beside."""
        a, b, c, d = change
        gone = [i for i in range(a, b) if i in self._moved]
        opens = a > 0 and _opens(self._old[a - 1])
        beside = gone or [i for i in (a - 1, b)[opens:] if i in self._moved]
        come = [k for k in range(c, d) if _WORD.search(self._new[k])]
        least = self._least(come, self._right)
        if not beside or least is None:
            return False
        if min(self._inner[k][0] for k in come) != min(self._outer[i][0] for i in beside):
            return False
        old, own = zip(*(self._moved[i] for i in beside), strict=True)
        if gone:
            return min(old, key=len) != least == min(own, key=len)
        return least in own and least not in old

    def _least(self, numbers: Iterable[int], but: Container[str]) -> str | None:
        """The least indentation of new lines `but` for some that tell nothing; None where there is no other."""
        indents = (extract_indent(self._new[k]) for k in numbers if self._new[k].strip())
        return min((indent for indent in indents if indent not in but), key=len, default=None)


def _enclosing(lines: Sequence[str], kept: Container[int]) -> list[tuple[int, bool]]:
    """For each line: how many lines that it is inside of are not kept, and whether the nearest one begins a block."""
    found: list[tuple[int, bool]] = []
    outside: list[tuple[int, tuple[int, bool]]] = []
    for number, line in enumerate(lines):
        depth = len(extract_indent(line).expandtabs(4))
        while line.strip() and outside and outside[-1][0] >= depth:
            outside.pop()
        found.append(outside[-1][1] if outside else (0, False))
        if line.strip():
            outside.append((depth, (found[-1][0] + (number not in kept), _opens(line))))
    return found


def _opens(line: str) -> bool:
    return line.rstrip().endswith(("{", "(", "[", ":", ",", "=", ">"))


def _depths(*indents: str | None) -> str:
    """The least depths of the new text, the old text and the file, in words."""
    words: list[str] = []
    for indent in indents:
        counts = (((indent or "").count(sign), name) for sign, name in (("\t", "tab"), (" ", "space")))
        words.append(" and ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count) or "none")
    return "({{new}}: {}, {{old}}: {}, the file: {}; indent {{new}} as the file)".format(*words)
