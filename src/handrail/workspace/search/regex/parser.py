"""Reads an expression as Rust's regex crate does: what it refuses is refused, what is beyond us is said to be."""

import msgspec

from handrail.workspace.search.regex import characters
from handrail.workspace.search.regex.characters import Test
from handrail.workspace.search.regex.classes import read_class
from handrail.workspace.search.regex.reader import LineBreakError, PatternSyntaxError, Reader, UnsupportedPatternError
from handrail.workspace.search.regex.tree import (
    Alternation,
    Characters,
    Concatenation,
    Node,
    PositionTest,
    Repeat,
    can_be_empty,
)

_MAX_LEVELS = 100
_MAX_COPIES = 1_000
_FLAGS = "imsUuxR"
_PLACES: dict[str, PositionTest] = {
    "b": PositionTest("boundary"), "B": PositionTest("no boundary"),
    "<": PositionTest("word start"), ">": PositionTest("word end"),
}  # fmt: skip
_SIMPLE: dict[str, Node] = {
    ".": Characters(characters.is_any, whole=True), "^": PositionTest("line start"), "$": PositionTest("line end"),
}  # fmt: skip
_NAMED_PLACES = {"start": PositionTest("word start"), "end": PositionTest("word end")}


class Flags(msgspec.Struct, frozen=True):
    """What `(?…)` may change that matters to us."""

    any_case: bool
    swapped: bool = False
    """Whether repetitions are lazy unless marked greedy."""


def parse_pattern(pattern: str, *, case_sensitive: bool) -> tuple[Node, bool]:
    """The tree of an expression, and whether tables of Unicode decide what it matches.

    BrokenError, LineBreakError, BeyondError when there is none.
    """
    # As ripgrep does: so a)(b is two groups, and a backslash at the end takes the last parenthesis away.
    reader = Reader(f"(?:{pattern})", shift=3)
    found, _ = _alternatives(reader, Flags(not case_sensitive), 0)
    if not reader.ended:
        raise PatternSyntaxError("a ) has no ( before it", reader.place)
    return found, reader.asks_tables


def _alternatives(reader: Reader, flags: Flags, depth: int) -> tuple[Node, Flags]:
    """Up to the end of the group; flags that are set in it hold for all alternatives that follow."""
    if depth > _MAX_LEVELS:
        raise UnsupportedPatternError("so many groups inside each other")
    ways: list[Node] = []
    while True:
        way, flags = _sequence(reader, flags, depth)
        ways.append(way)
        if not reader.takes("|"):
            return (ways[0] if len(ways) == 1 else Alternation(tuple(ways))), flags


def _sequence(reader: Reader, flags: Flags, depth: int) -> tuple[Node, Flags]:
    parts: list[Node] = []
    repeatable = False
    while not reader.ended and reader.peek() not in {"|", ")"}:
        if reader.peek() in {"*", "+", "?", "{"}:
            if not repeatable:
                raise PatternSyntaxError("there is nothing before it to be repeated", reader.place)
            parts[-1] = _repeated(reader, parts[-1], flags)
            continue
        changed = _flags_alone(reader, flags)
        repeatable = changed is None
        if changed is not None:
            flags = changed
        else:
            parts.append(_atom(reader, flags, depth))
    return (parts[0] if len(parts) == 1 else Concatenation(tuple(parts))), flags


def _atom(reader: Reader, flags: Flags, depth: int) -> Node:
    start = reader.place
    character = reader.next()
    simple = _SIMPLE.get(character)
    if simple is not None:
        return simple
    if character == "(":
        return _group(reader, flags, depth)
    if character == "[":
        test = read_class(reader, any_case=flags.any_case)
        return Characters(reader.shared(reader.since(start), flags.any_case, test))
    return _escape(reader, flags) if character == "\\" else _literal(reader, character, flags)


def _literal(reader: Reader, character: str, flags: Flags) -> Node:
    if character in "\r\n":
        raise LineBreakError
    test: Test = frozenset(character).__contains__
    reader.asks_tables |= flags.any_case and not character.isascii()
    test = characters.ignore_case(test) if flags.any_case else test
    return Characters(reader.shared(character, flags.any_case, test))


def _escape(reader: Reader, flags: Flags) -> Node:
    start, letter = reader.place - 1, reader.peek()
    if letter in _PLACES:
        reader.next()
        reader.asks_tables = True
        return (_named_place(reader) if letter == "b" else None) or _PLACES[letter]
    if letter in {"A", "z"}:
        raise UnsupportedPatternError(f"\\{letter}")
    found = reader.escape(any_case=flags.any_case)
    if isinstance(found, str):
        return _literal(reader, found, flags)
    return Characters(reader.shared(reader.since(start), flags.any_case, found))


def _named_place(reader: Reader) -> PositionTest | None:
    """`\\b{start}` and its like; with anything but letters in it, the brace is a repetition."""
    name = reader.ahead("{", "}")
    if name is None or not name.replace("-", "").isalpha():
        return None
    if name in {"start-half", "end-half"}:
        raise UnsupportedPatternError(f"\\b{{{name}}}")
    if name not in _NAMED_PLACES:
        raise PatternSyntaxError(f"there is no \\b{{{name}}}", reader.place)
    reader.skip(len(name) + 2)
    return _NAMED_PLACES[name]


def _group(reader: Reader, flags: Flags, depth: int) -> Node:
    start = reader.place - 1
    if reader.takes("?"):
        flags = _opened(reader, flags)
    found, _ = _alternatives(reader, flags, depth + 1)
    if not reader.takes(")"):
        raise PatternSyntaxError("a ( is not closed by a )", start)
    return found


def _opened(reader: Reader, flags: Flags) -> Flags:
    """What follows `(?`, up to where the group's own expression begins."""
    for mark in ("=", "!", "<=", "<!"):
        if reader.takes(mark):
            raise PatternSyntaxError("look-around is not supported", reader.place - len(mark) - 2)
    if reader.takes("P<") or reader.takes("<"):
        reader.group_name()
        return flags
    flags, end = _read_flags(reader, flags)
    if end != ":":
        raise PatternSyntaxError("flags are set where a group was expected", reader.place)
    return flags


def _flags_alone(reader: Reader, flags: Flags) -> Flags | None:
    """`(?i)`, which holds up to the end of the group around it; None when something else comes next."""
    letters = reader.ahead("(?", ")")
    if letters is None or not letters or set(letters) - set(f"{_FLAGS}-"):
        return None
    reader.skip(2)
    return _read_flags(reader, flags)[0]


def _read_flags(reader: Reader, flags: Flags) -> tuple[Flags, str]:
    seen, on = "", True
    while (letter := reader.next()) not in {":", ")"}:
        if letter in seen or (letter not in _FLAGS and letter != "-"):
            raise PatternSyntaxError("a flag is unknown or set twice", reader.place - 1)
        seen += letter
        if letter == "-":
            on = False
        else:
            flags = _changed(flags, letter, on=on)
    if seen.endswith("-") or (not seen and letter == ")"):
        raise PatternSyntaxError("flags are missing", reader.place - 1)
    return flags, letter


def _changed(flags: Flags, letter: str, *, on: bool) -> Flags:
    if letter == "i":
        return Flags(on, flags.swapped)
    if letter == "U":
        return Flags(flags.any_case, on)
    # A dot never matches a line's end here, and lines, Unicode and carriage returns are what they are.
    if letter == "s" or (on and letter in "muR"):
        return flags
    raise UnsupportedPatternError(f"the flag {'' if on else '-'}{letter}")


def _repeated(reader: Reader, body: Node, flags: Flags) -> Node:
    sign = reader.next()
    least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(sign) or _counts(reader)
    greedy = reader.takes("?") == flags.swapped
    if (least, most) == (0, 1):
        return Alternation((body, Concatenation()) if greedy else (Concatenation(), body))
    if can_be_empty(body):
        raise UnsupportedPatternError("repeating what may be empty")
    if max(least, most or 0) > _MAX_COPIES:
        raise UnsupportedPatternError("so many repetitions")
    return Repeat(body, least, most, greedy)


def _counts(reader: Reader) -> tuple[int, int | None]:
    start = reader.place - 1
    least = reader.number()
    most: int | None = least
    if reader.takes(","):
        reader.spaces()
        most = None if reader.peek() == "}" else reader.number()
    if not reader.takes("}"):
        raise PatternSyntaxError("a { is not closed by a }", start)
    if most is not None and most < least:
        raise PatternSyntaxError("the counts of a repetition are the wrong way round", start)
    return least, most
