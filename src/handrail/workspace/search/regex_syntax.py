"""The syntax of Rust's regular expressions, as far as Python's `re` can match them alike."""

import re
from collections.abc import Callable, Iterable
from typing import NoReturn

import msgspec

_MAX_DEPTH = 100
_MAX_COPIES = 1_000
_MAX_COST = 1e15
"""Bounds of steps are not counted any higher."""

Reach = Callable[[re.Pattern[str]], int]
"""Tells over how many characters in a row a repetition can go, which takes in all that the expression matches."""
Cost = Callable[[frozenset[str], Reach], tuple[float, float]]
"""Given the characters that may follow, bounds the steps in a node and how often `re` then tries what follows."""


class UnsupportedPatternError(Exception):
    """Rust may know the construct. We leave it to ripgrep."""


class PatternSyntaxError(Exception):
    """Rust refuses the expression too."""

    def __init__(self, reason: str, place: int) -> None:
        super().__init__(reason)
        self.place = place


class LineBreakError(Exception):
    """The expression can only match the end of a line."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    translation: str
    """The same for `re`."""
    cost: Cost = lambda _after, _reach: (1, 1)
    first: frozenset[str] = frozenset()
    """The characters that it may begin with. `_OTHER` stands for those that are not ASCII."""
    can_be_empty: bool = False
    is_empty_anywhere: bool = False
    """Whether it can be empty without a test of the position."""
    literals: str = "\n"
    """The characters of every match. A newline stands where others may come between them."""
    sets: frozenset[str] = frozenset()
    """The translations of all sets in it."""
    stuck: int = 1
    """Steps until it fails, or is passed, where it can take no character."""

    def list_first(self, after: frozenset[str]) -> frozenset[str]:
        """Return the characters that it can begin with, or what follows if it is empty."""
        if not self.can_be_empty:
            return self.first
        return self.first | (after if self.is_empty_anywhere else after - END)


END = frozenset({"end"})
"""Stands among the characters that may follow, if the match may end without any more tests."""
_ASCII = frozenset(map(chr, range(128)))
_LINE_ENDS = frozenset("\r\n")
_OTHER = "\x80"
_NEVER = r"\r\n\udc80-\udcff"
"""No set has line ends or bytes that are not UTF-8."""


def _build_position(translation: str) -> Node:
    steps = 1 + translation.count("(?")
    return Node(
        translation=translation, cost=lambda _after, _reach: (steps, 1), can_be_empty=True, literals="", stuck=steps
    )


def _build_set(members: Iterable[str], translation: str, literal: str = "\n") -> Node:
    return Node(translation=translation, first=frozenset(members), literals=literal, sets=frozenset({translation}))


LINE_START = _build_position(r"(?:(?<![^\n])|(?<=\r)(?!\n))")
_LINE_END = _build_position(r"(?:(?=\r|\Z)|(?<!\r)(?=\n))")
_WORD_EDGES = {
    "b": _build_position(r"\b"),
    "B": _build_position(r"(?:(?<=\w)(?=\w)|(?<![\w\udc80-\udcff])(?![\w\udc80-\udcff]))"),
    "<": _build_position(r"\b(?=\w)"),
    ">": _build_position(r"\b(?<=\w)"),
}
_DOT = _build_set(_ASCII - _LINE_ENDS | {_OTHER}, f"[^{_NEVER}]")


def _join(parts: list[Node]) -> Node:
    """One after the other."""

    def cost(after: frozenset[str], reach: Reach) -> tuple[float, float]:
        steps, exits, stuck = 0.0, 1.0, 1
        for part in reversed(parts):
            own, tries = part.cost(after, reach)
            steps, exits = min(own * stuck + tries * steps, _MAX_COST), min(tries * exits, _MAX_COST)
            after, stuck = part.list_first(after), part.stuck + (stuck if part.can_be_empty else 0)
        return steps, exits

    first = frozenset[str]()
    for part in reversed(parts):
        first = part.list_first(first)
    return Node(
        translation="".join(part.translation for part in parts),
        cost=cost,
        first=first,
        can_be_empty=all(part.can_be_empty for part in parts),
        is_empty_anywhere=all(part.is_empty_anywhere for part in parts),
        literals="".join(part.literals for part in parts),
        sets=frozenset[str]().union(*(part.sets for part in parts)),
        stuck=sum(part.stuck for part in parts),
    )


_EMPTY = _join([])


def _choose(ways: list[Node]) -> Node:
    """The first that leads to a match."""
    if len(ways) == 1:
        return ways[0]

    def cost(after: frozenset[str], reach: Reach) -> tuple[float, float]:
        costs = [way.cost(after, reach) for way in ways]
        firsts = [way.list_first(after) for way in ways]
        is_clear = sum(map(len, firsts)) == len(frozenset[str]().union(*firsts))
        is_clear = is_clear and sum(way.can_be_empty for way in ways) < 2
        return 1 + sum(own for own, _ in costs), (max if is_clear else sum)(tries for _, tries in costs)

    return Node(
        translation=f"(?:{'|'.join(way.translation for way in ways)})",
        cost=cost,
        first=frozenset[str]().union(*(way.first for way in ways)),
        can_be_empty=any(way.can_be_empty for way in ways),
        is_empty_anywhere=any(way.is_empty_anywhere for way in ways),
        sets=frozenset[str]().union(*(way.sets for way in ways)),
        stuck=1 + sum(way.stuck for way in ways),
    )


def _repeat(body: Node, least: int, most: int | None, *, is_greedy: bool) -> Node:
    if (least, most) == (0, 1):
        return _choose([body, _EMPTY] if is_greedy else [_EMPTY, body])
    if body.can_be_empty:
        raise UnsupportedPatternError("a repetition of a possibly empty group")
    if max(least, most or 0) > _MAX_COPIES:
        raise UnsupportedPatternError("so many repetitions")
    run = re.compile(f"(?:{'|'.join(sorted(body.sets))})+")

    def cost(after: frozenset[str], reach: Reach) -> tuple[float, float]:
        own, tries = body.cost(body.first | after, reach)
        count = reach(run) if most is None else min(reach(run), most)
        if after >= END:  # the match succeeds, so nothing is taken back
            count = min(count, least + 1)
        # If nothing that follows can begin with the same character, an early exit fails before it takes one.
        exits = 1 + max(0, count - least) if body.first & after else 1
        ways = _MAX_COST if tries > 1 and count > 20 else min(tries ** min(count, 20), _MAX_COST)
        return ways * count * (own + 1), ways * exits

    return Node(
        translation=f"(?:{body.translation}){{{least},{'' if most is None else most}}}{'' if is_greedy else '?'}",
        cost=cost,
        first=body.first,
        can_be_empty=least == 0,
        is_empty_anywhere=least == 0,
        literals=f"{body.literals}\n" if least else "\n",
        sets=body.sets,
        stuck=1 + body.stuck,
    )


_DIGITS = frozenset("0123456789")
_WORD = frozenset(character for character in _ASCII if character.isalnum() or character == "_")
_SPACE = frozenset("\t\n\v\f\r ")
_WIDE_SPACE = r"\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
_WIDE_NO_SPACE = (
    r"\x80-\x84\x86-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e\u2060-\u2fff\u3001-\ud7ff"
    r"\ue000-\U0010ffff"
)
_CLASSES: dict[str, tuple[frozenset[str], str]] = {
    "d": (_DIGITS, r"\d"), "D": (_ASCII - _DIGITS, r"\D"),
    "w": (_WORD, r"\w"), "W": (_ASCII - _WORD, r"\W"),
    "s": (_SPACE, _WIDE_SPACE), "S": (_ASCII - _SPACE, _WIDE_NO_SPACE),
}  # fmt: skip
"""The ASCII members of each set, and how `re` writes the others."""
_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "ascii": r"\x00-\x7f", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9", "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\t-\r ",
    "upper": "A-Z", "word": r"0-9A-Z_a-z", "xdigit": "0-9A-Fa-f",
}  # fmt: skip


class _CharacterClass:
    def __init__(self, members: frozenset[str] = frozenset(), wide: str = "", *, any_case: bool = False) -> None:
        self._any_case = any_case
        self._ascii = set(members)
        self._wide = wide
        """The syntax of `re` for the members that are not ASCII."""

    def add(self, members: frozenset[str], wide: str = "") -> None:
        self._ascii |= members
        self._wide += wide

    def add_range(self, first: str, last: str) -> None:
        self._ascii.update(character for character in _ASCII if first <= character <= last)
        if last >= _OTHER and self._any_case:
            raise UnsupportedPatternError("characters that are not ASCII, in any case")
        first = max(first, _OTHER)
        for low, high in ((first, min(last, "\ud7ff")), (max(first, "\ue000"), last)):
            self._wide += f"{_escape(low)}-{_escape(high)}" if low <= high else ""

    def add_posix(self, name: str, *, is_negated: bool) -> None:
        if name not in _POSIX_CLASSES or (is_negated and self._any_case):
            raise UnsupportedPatternError("a set inside a set")
        members = frozenset(re.findall(f"[{_POSIX_CLASSES[name]}]", "".join(_ASCII)))
        self.add(_ASCII - members, r"\x80-\ud7ff\ue000-\U0010ffff") if is_negated else self.add(members)

    def build(self, *, is_negated: bool = False) -> Node:
        if self._any_case:
            self._ascii |= {character.swapcase() for character in self._ascii}
            self._wide += "".join(wide for letter, wide in (("k", "\u212a"), ("s", "\u017f")) if letter in self._ascii)
        if not is_negated and not self._wide and self._ascii <= _LINE_ENDS:
            raise LineBreakError
        members = "".join(map(_escape, sorted(self._ascii - _LINE_ENDS)))
        if is_negated:
            return _build_set(_ASCII - _LINE_ENDS - self._ascii | {_OTHER}, f"[^{members}{self._wide}{_NEVER}]")
        guard = f"(?![{_NEVER}])" if r"\W" in self._wide or r"\D" in self._wide else ""
        other = {_OTHER} if self._wide else set[str]()
        return _build_set(self._ascii - _LINE_ENDS | other, f"{guard}[{members}{self._wide}]")


def _escape(character: str) -> str:
    return f"\\U{ord(character):08x}"


_HEX = "[0-9a-fA-F]"
_ESCAPE = rf"\\(?:[xuU]\{{{_HEX}+\}}|x{_HEX}{{2}}|u{_HEX}{{4}}|U{_HEX}{{8}}|[ntrfvadDwWsS]|[\x20-/:;=?@\[-`{{-~])"
_MEMBER = rf"{_ESCAPE}|[^\\\[]"
_TOKEN = re.compile(
    rf"""
      (?P<flags> \(\?(?!\)|[imsuR-]{{0,8}}(?P<twin>[imsuR-])[imsuR-]{{0,8}}(?P=twin))
                 (?P<on>[imsuR]*)(?:-(?P<off>[is]+))?(?P<last>[:)]) )
    | (?P<open> \((?:\?P?<(?P<name>[A-Za-z_][A-Za-z0-9_]*)>|(?!\?)) )
    | (?P<close> \) )
    | (?P<or> \| )
    | (?P<count> (?:[*+?]|\{{\s*(?P<least>[0-9]{{1,9}})\s*(?P<comma>,\s*(?P<most>[0-9]{{1,9}})?\s*)?\}})(?P<lazy>\??) )
    | (?P<dot> \. )
    | (?P<start> \^ )
    | (?P<end> \$ )
    | (?P<edge> \\[bB<>](?!\{{[a-zA-Z]) )
    | (?P<set> \[\^?+\]?+(?:\[:\^?[a-z]+:\]|{_ESCAPE}|[^\\\[\]])*\] )
    | (?P<escape> {_ESCAPE} )
    | (?P<literal> [^\\\[(*+?{{] )
    """,
    re.VERBOSE,
)
_SET_ITEM = re.compile(rf"\[:(?P<not>\^?)(?P<posix>[a-z]+):\]|(?P<low>{_MEMBER})(?:-(?P<high>{_MEMBER}))?", re.DOTALL)
_SYNTAX_FAULTS = {
    r"\(\?<?[=!]": "look-around is not supported",
    r"\(\?P?<": "a group's name is not valid",
    r"\(\?(?:\)|[imsUuxR-]{0,8}(?:[^imsUuxR:)-]|-[:)]|(.)[imsUuxR-]{0,8}\1))": "flags are unknown or set twice",
    r"[*+?{]": "a repetition has no valid counts",
    r"\[\^?\]?[^\]]*\Z": "a [ is not closed by a ]",
    r"\\[0-9]": "back-references are not supported",
    r"\\[^AzpPbB]|\\b\{(?!start|end)": "a backslash before a character that is not an escape",
}
"""Beginnings that Rust refuses. Other ones that are no token are left to ripgrep."""
_ATOMS = {"dot": _DOT, "start": LINE_START, "end": _LINE_END}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}


class PatternParser:
    """Reads one expression: refuses what Rust refuses, and leaves rare constructs to ripgrep."""

    def __init__(self, pattern: str, *, any_case: bool) -> None:
        # ripgrep puts the pattern into a group too: `a)(b` is two groups.
        self._text = f"(?:{pattern})"
        self._at = 0
        self._any_case = any_case
        self._names: set[str] = set()
        self.asks_tables = False
        """Whether Unicode tables decide on matches."""
        self.asks_edges = False
        """Whether the edges of words do."""
        self.folds_case = False
        """Whether the literals of the tree stand for all cases."""

    def parse(self) -> Node:
        node = self._parse_alternatives(0)
        if self._at < len(self._text):
            self._fail("a ) has no ( before it")
        return node

    def _parse_alternatives(self, depth: int) -> Node:
        if depth > _MAX_DEPTH:
            raise UnsupportedPatternError("so many groups inside each other")
        ways = [self._parse_sequence(depth)]
        while self._text.startswith("|", self._at):
            self._at += 1
            ways.append(self._parse_sequence(depth))
        return _choose(ways)

    def _parse_sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        can_repeat = False
        while (token := self._read_token()) and token.lastgroup not in {"or", "close"}:
            self._at = token.end()
            if token.lastgroup == "count":
                if not can_repeat:
                    self._fail("nothing to repeat")
                parts[-1] = self._build_repeat(parts[-1], token)
            elif token["last"] == ")":
                self._set_flags(token)
            else:
                is_group = token.lastgroup in {"open", "flags"}
                parts.append(self._parse_group(token, depth) if is_group else self._build_atom(token))
            can_repeat = token["last"] != ")"
        return parts[0] if len(parts) == 1 else _join(parts)

    def _read_token(self) -> re.Match[str] | None:
        token = _TOKEN.match(self._text, self._at)
        if token is not None or self._at >= len(self._text):
            return token
        for beginning, reason in _SYNTAX_FAULTS.items():
            if re.compile(beginning).match(self._text, self._at):
                self._fail(reason)
        raise UnsupportedPatternError(f"`{self._text[self._at : -1][:12]}`, which Python cannot search for")

    def _fail(self, reason: str) -> NoReturn:
        raise PatternSyntaxError(reason, self._at - len("(?:"))

    def _parse_group(self, token: re.Match[str], depth: int) -> Node:
        start, outer_case = token.start(), self._any_case
        if token["name"] in self._names:
            self._fail("two groups have one name")
        if token["name"]:
            self._names.add(token["name"])
        self._set_flags(token)
        node = self._parse_alternatives(depth + 1)
        if not self._text.startswith(")", self._at):
            raise PatternSyntaxError("a ( is not closed by a )", start - 2)
        self._at += 1
        self._any_case = outer_case
        return node

    def _set_flags(self, token: re.Match[str]) -> None:
        """A dot never matches a line's end. Of the flags only case has an effect."""
        self._any_case = "i" in (token["on"] or "") or (self._any_case and "i" not in (token["off"] or ""))

    def _build_repeat(self, body: Node, token: re.Match[str]) -> Node:
        counts: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        least, most = counts.get(token[0][0], (int(token["least"] or 0), int(token["most"] or token["least"] or 0)))
        if token["comma"] and not token["most"]:
            most = None
        if most is not None and most < least:
            self._fail("the counts of a repetition are the wrong way round")
        return _repeat(body, least, most, is_greedy=not token["lazy"])

    def _build_atom(self, token: re.Match[str]) -> Node:
        match token.lastgroup:
            case "edge":
                self.asks_tables = self.asks_edges = True
                return _WORD_EDGES[token[0][1]]
            case "set":
                return self._build_set(token[0])
            case "escape":
                item = self._read_escape(token[0])
                return self._build_literal(item) if isinstance(item, str) else _CharacterClass(*item).build()
            case kind:
                return _ATOMS[kind] if kind in _ATOMS else self._build_literal(token[0])

    def _build_literal(self, character: str) -> Node:
        if character in _LINE_ENDS:
            raise LineBreakError
        if not self._any_case or character.swapcase() == character:
            return _build_set(character if character.isascii() else _OTHER, re.escape(character), character)
        self.folds_case = True
        members = _CharacterClass(any_case=True)
        members.add_range(character, character)
        return msgspec.structs.replace(members.build(), literals=character.casefold())

    def _build_set(self, text: str) -> Node:
        is_negated = text[1] == "^"
        content = text[2:-1] if is_negated else text[1:-1]
        if content.startswith("]-") or any(sign in content for sign in ("&&", "--", "~~", "-[")):
            raise UnsupportedPatternError("set operations in [ ]")
        members = _CharacterClass(any_case=self._any_case)
        for item in _SET_ITEM.finditer(content):
            if item["posix"]:
                members.add_posix(item["posix"], is_negated=bool(item["not"]))
                continue
            low = self._read_escape(item["low"])
            high = self._read_escape(item["high"]) if item["high"] else low
            if isinstance(low, str) and isinstance(high, str) and low <= high:
                members.add_range(low, high)
            elif item["high"] or isinstance(low, str):
                self._fail("a range in [ ] is the wrong way round, or has no character at either end")
            else:
                members.add(*low)
        return members.build(is_negated=is_negated)

    def _read_escape(self, text: str) -> str | tuple[frozenset[str], str]:
        """Return the character that a text means, or the members of a set."""
        if len(text) == 1:
            return text
        letter = text[1]
        if letter in "xuU":
            code = int(text[2:].strip("{}"), 16)
            if code > 0x10FFFF or 0xD800 <= code < 0xE000:
                self._fail("there is no character with that number")
            return chr(code)
        if letter in _CLASSES:
            self.asks_tables |= letter not in "sS"
            return _CLASSES[letter]
        return _CONTROLS.get(letter, letter)
