"""Shifts the indentation of new lines to that of the file, by a rule learned from old lines that are in it."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from handrail.edit.diff import LineChange, diff_sequences, pair_equal_items
from handrail.edit.fuzzy.candidates import UnsafeError
from handrail.edit.fuzzy.normalize import extract_indent, split_plain_words, squash_spaces

Shift = Callable[[str], str | None]
"""Maps an indentation of the new text to the file's, or to None if that is unknown."""
Seen = tuple[str, str]
"""An indentation of the old text, and the file's for the same line."""
_WORD = re.compile(r"\w")
_TAB_WIDTHS = (4, 2, 8, 3, 1, 5, 6, 7)


class Indentation(NamedTuple):
    shift: Shift
    regular: bool
    first: Seen | None = None
    """The first line's own, if only that one breaks the rule."""
    last: Seen | None = None


def learn_indentation(seen: Sequence[Seen], lines: Sequence[str]) -> Indentation:
    """Learn a rule from the lines of a place, in order. `lines` are those of the whole file: its habits count."""
    rule = _find_rule(seen, lines)
    if rule is not None:
        return Indentation(rule, regular=True)
    for head, tail in ((0, 1), (1, 0), (1, 1)):
        rest = seen[head : len(seen) - tail]
        rule = _find_rule(rest, lines) if rest else None
        if rule is not None:
            first, last = seen[0] if head else None, seen[-1] if tail else None
            return Indentation(_exclude_edges(rule, rest, first, last), False, first, last)
    return Indentation(_repeat_seen(seen), regular=False)


def is_same_line(old: str, new: str) -> bool:
    """Whether a changed line is still the same one: same indentation, same kind of end, and words in common."""
    one, other = split_plain_words(old), split_plain_words(new)
    is_as_deep = extract_indent(old) == extract_indent(new) and _opens_block(old) == _opens_block(new)
    return is_as_deep and 2 * len(pair_equal_items(one, other)) >= min(len(one), len(other))


def is_at_file_depth(old: Sequence[str], new: Sequence[str], own: Mapping[int, str]) -> bool:
    """Whether new lines are indented as the file, and not as the old lines. `own` has the file's line for an old one.

    Lines of both texts decide it, or else the least indentation. UnsafeError if the new lines are indented like
    neither, or some like one and some like the other.
    """
    seen = {i: (extract_indent(old[i]), extract_indent(line)) for i, line in own.items() if old[i].strip()}
    if all(one == other for one, other in seen.values()) or not any(map(str.strip, new)):
        return False
    return _Depths(old, new, seen).is_as_file()


def _find_rule(seen: Sequence[Seen], lines: Sequence[str]) -> Shift | None:
    """Combine the simplest rules that explain every line."""
    if all(old == own for old, own in seen):
        return lambda indent: indent
    for rules in (_list_simple_rules(seen, lines), _list_tab_rules(seen, lines)):
        matching = [rule for rule in rules if all(rule(old) == own for old, own in seen)]
        if matching:
            return _combine(matching, dict(seen), lines)
    return None


def _combine(rules: Sequence[Shift], known: dict[str, str], lines: Sequence[str]) -> Shift:
    """Combine rules, such as a move, tabs and wider steps. If they disagree, the indentations of the file decide."""

    def shift(indent: str) -> str | None:
        if indent in known:
            return known[indent]
        answers = {answer for rule in rules if (answer := rule(indent)) is not None}
        if len(answers) > 1 or any("\t" in answer and "  " in answer for answer in answers):
            answers &= {extract_indent(line) for line in lines}
        return answers.pop() if len(answers) == 1 else None

    return shift


def _list_simple_rules(seen: Sequence[Seen], lines: Sequence[str]) -> Iterator[Shift]:
    old, own = min(seen, key=lambda pair: len(pair[0]))
    yield from _list_moves(old, own)
    yield from _list_scalings(seen)
    if any(("\t" in one) != ("\t" in other) for one, other in seen):
        for width in _TAB_WIDTHS:
            spaces = _convert_to_spaces(width)
            if all(spaces(one) == spaces(other) for one, other in seen):
                yield _convert_to_tabs(width, dict(seen), lines) if _has_tabs(seen) else spaces
        if not old and _has_tabs(seen):  # steps of spaces inside a block that was moved to where tabs are
            moves = list(_list_moves("", own))
            yield from (_compose(_convert_to_tabs(width, {}, ()), move) for width in (4, 2) for move in moves)


def _list_tab_rules(seen: Sequence[Seen], lines: Sequence[str]) -> Iterator[Shift]:
    """Yield rules that convert tabs and move the lines as well."""
    old, own = min(seen, key=lambda pair: len(pair[0]))
    for width in _TAB_WIDTHS:
        convert = _convert_to_tabs(width, {}, lines) if _has_tabs(seen) else _convert_to_spaces(width)
        yield from (_compose(convert, move) for move in _list_moves(convert(old) or "", own))


def _has_tabs(seen: Sequence[Seen]) -> bool:
    return any("\t" in own for _, own in seen)


def _list_moves(old: str, own: str) -> Iterator[Shift]:
    """Yield the rules that move all lines to the right, or to the left."""
    if own.endswith(old):
        more = own[: len(own) - len(old)]
        yield lambda indent: f"{more}{indent}"
    if old.endswith(own):
        less = old[: len(old) - len(own)]
        yield lambda indent: indent[len(less) :] if indent.startswith(less) else None


def _list_scalings(seen: Sequence[Seen]) -> Iterator[Shift]:
    """Yield the rule of wider or narrower steps of the same white space."""
    old, own = max(seen, key=lambda pair: len(pair[0]))
    if not old or not own or set(old) != set(own) or len(set(own)) != 1:
        return

    def scale(indent: str) -> str | None:
        length, rest = divmod(len(indent) * len(own), len(old))
        return None if rest or not set(indent) <= set(own) else own[0] * length

    yield scale


def _compose(one: Shift, other: Shift) -> Shift:
    def shift(indent: str) -> str | None:
        between = one(indent)
        return None if between is None else other(between)

    return shift


def _convert_to_spaces(width: int) -> Shift:
    return lambda indent: indent.replace("\t", " " * width)


def _convert_to_tabs(width: int, known: dict[str, str], lines: Sequence[str]) -> Shift:
    """If the file mixes tabs with as many spaces as a tab stands for, only known indentations are certain."""
    step = " " * width

    def convert(indent: str) -> str | None:
        if indent in known:
            return known[indent]
        if any(step in extract_indent(line) for line in lines if step in line):
            return None
        length = len(indent.replace("\t", step))
        return "\t" * (length // width) + " " * (length % width)

    return convert


def _exclude_edges(rule: Shift, rest: Sequence[Seen], *edges: Seen | None) -> Shift:
    """Leave out the indentation of an edge line that breaks the rule, unless several other lines have it too."""
    odd = {edge[0] for edge in edges if edge}
    if len(rest) > 1:
        odd -= {old for old, _ in rest}
    return lambda indent: None if indent in odd else rule(indent)


def _repeat_seen(seen: Sequence[Seen]) -> Shift:
    """Know only indentations that were seen, always with the same result."""
    known = dict(seen)
    contradicted = {old for old, own in seen if known[old] != own}
    return lambda indent: None if indent in contradicted else known.get(indent)


class _Depths:
    def __init__(self, old: Sequence[str], new: Sequence[str], seen: Mapping[int, Seen]) -> None:
        self._old, self._new, self._seen = old, new, seen
        self._moved = {i: pair for i, pair in seen.items() if pair[0] != pair[1]}
        self._right = {pair[0] for pair in seen.values() if pair[0] == pair[1]}
        """Indentations that the old text has as the file has them."""
        self._wrong = {pair[0] for pair in self._moved.values()}
        keys = [squash_spaces(line) for line in old], [squash_spaces(line) for line in new]
        self._changes, self._kept = diff_sequences(*keys), dict(pair_equal_items(*keys))
        self._outer, self._inner = _list_enclosing(old, self._kept), _list_enclosing(new, set(self._kept.values()))

    def is_as_file(self) -> bool:
        votes = {self._vote(i, k) for i, k in self._kept.items() if i in self._seen}
        old, own = (min(indents, key=len) for indents in zip(*self._moved.values(), strict=True))
        new = self._find_least(range(len(self._new)), self._right.difference(*self._moved.values()))
        if "file" in votes:
            if not votes & {"old", "bracket", "neither"}:
                return True
        elif "old" in votes or (new in {None, old} and not votes & {"neither", "unopened"}):
            if not any(map(self._is_change_as_file, self._changes)):
                return False
        elif not votes & {"in a block", "bracket", "unopened"}:
            if new == own and "neither" not in votes:
                return True
            raise UnsafeError(f"{{new}} is indented neither as {{old}} nor as the file {_describe(new, old, own)}")
        reason = f"some lines of {{new}} are indented as {{old}}, others as the file {_describe(new, old, own)}"
        raise UnsafeError(reason)

    def _vote(self, i: int, k: int) -> str | None:
        """Tell how a line of both texts is indented. Brackets, and lines that change their block, tell little."""
        (old, own), indent = self._seen[i], extract_indent(self._new[k])
        is_old = old == indent != own
        if self._inner[k][0] != self._outer[i][0]:
            return "in a block" if is_old else "unopened" if old != indent == own and not self._inner[k][1] else None
        if not _WORD.search(self._old[i]):
            return "bracket" if is_old else None
        if old == own:  # right in the old text, unless its new indentation is that of a wrong line
            return "old" if indent != own and indent in self._wrong else None
        return {old: "old", own: "file"}.get(indent, "neither")

    def _is_change_as_file(self, change: LineChange) -> bool:
        """Whether added lines are at the file's depth, judged by the lines that they replace or stand beside."""
        a, b, c, d = change
        removed = [i for i in range(a, b) if i in self._moved]
        opens = a > 0 and _opens_block(self._old[a - 1])
        beside = removed or [i for i in (a - 1, b)[opens:] if i in self._moved]
        added = [k for k in range(c, d) if _WORD.search(self._new[k])]
        least = self._find_least(added, self._right)
        if not beside or least is None:
            return False
        if min(self._inner[k][0] for k in added) != min(self._outer[i][0] for i in beside):
            return False
        old, own = zip(*(self._moved[i] for i in beside), strict=True)
        if removed:
            return min(old, key=len) != least == min(own, key=len)
        return least in own and least not in old

    def _find_least(self, numbers: Iterable[int], but: Container[str]) -> str | None:
        """Return the least indentation of new lines, `but` for some that tell nothing."""
        indents = (extract_indent(self._new[k]) for k in numbers if self._new[k].strip())
        return min((indent for indent in indents if indent not in but), key=len, default=None)


def _list_enclosing(lines: Sequence[str], kept: Container[int]) -> list[tuple[int, bool]]:
    """For each line: how many lines around it are not kept, and whether the nearest one opens a block."""
    enclosing: list[tuple[int, bool]] = []
    outside: list[tuple[int, tuple[int, bool]]] = []
    for number, line in enumerate(lines):
        depth = len(extract_indent(line).expandtabs(4))
        while line.strip() and outside and outside[-1][0] >= depth:
            outside.pop()
        enclosing.append(outside[-1][1] if outside else (0, False))
        if line.strip():
            outside.append((depth, (enclosing[-1][0] + (number not in kept), _opens_block(line))))
    return enclosing


def _opens_block(line: str) -> bool:
    return line.rstrip().endswith(("{", "(", "[", ":", ",", "=", ">"))


def _describe(*indents: str | None) -> str:
    """Describe the least indentations of the new text, the old text and the file."""
    words: list[str] = []
    for indent in indents:
        counts = (((indent or "").count(sign), name) for sign, name in (("\t", "tab"), (" ", "space")))
        words.append(" and ".join(f"{count} {name}{'s' * (count > 1)}" for count, name in counts if count) or "none")
    return "({{new}}: {}, {{old}}: {}, the file: {}; indent {{new}} as the file)".format(*words)
