"""Sorts the words of a command into options and operands as a table says; what the table does not list is refused."""

from collections.abc import Iterator

from handrail.policy.builtin_denies import SINKS
from handrail.policy.programs.spec import Kind, ParsedArgs, PathUse, ProgramSpec
from handrail.policy.shell.syntax import Word
from handrail.protocol.decisions import Access

_STREAMS: dict[Access, frozenset[str]] = {
    "read": frozenset(["/dev/null", "/dev/stdin"]),
    "write": SINKS,
}
"""Not files: they hold nothing, and keep nothing."""
_ENDLESS = frozenset(["/dev/zero", "/dev/random", "/dev/urandom"])
"""They hold nothing either, but who reads all of it never ends."""
_Options = list[tuple[str, str | None]]

# Whether an option has a value: never, always, perhaps but only in the same word, always in the same word.
_FLAG, _VALUE, _ATTACHED, _INSIDE = 0, 1, 2, 3
_BY_SIGNS = {0: _FLAG, 1: _ATTACHED, 2: _INSIDE}


def parse_path_uses(table: ProgramSpec, words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    """The paths that the words behind a table's name use, or why the table does not accept them."""
    if table.custom_parser:
        return table.custom_parser(words)
    parsed = sort_words(table, words)
    if isinstance(parsed, str):
        return parsed
    streams = _STREAMS | {"read": _STREAMS["read"] | _ENDLESS} if _ends(table, parsed) else _STREAMS
    return tuple([use for use in list_path_uses(table, parsed) if use.path not in streams.get(use.access, ())])


def _ends(table: ProgramSpec, parsed: ParsedArgs) -> bool:
    return table.effect != "proven" or (table.always_ends is not None and table.always_ends(parsed))


def sort_words(table: ProgramSpec, words: tuple[Word, ...]) -> ParsedArgs | str:
    """The words behind the program's name (and sub-command), sorted, or in words why the table does not accept them."""
    return build_sorter(table).sort(words)


def list_path_uses(table: ProgramSpec, parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """The paths among sorted words."""
    found = [PathUse(value, kind) for name, value in parsed.options if value and (kind := _path(table.paths.get(name)))]
    positions = _Positions(table, parsed)
    for place, text in enumerate(parsed.operands):
        is_glob = place in parsed.globs
        for kind in positions.kinds(place, is_glob=is_glob):
            # Also where a pattern is only text, as for echo: bash reads a folder to put names in its place.
            if (access := _path(kind)) or is_glob:
                found.append(PathUse(text, access or "read", is_glob))
    if table.extra_paths:
        found += table.extra_paths(parsed)
    return tuple(dict.fromkeys(found)) if parsed.globs else tuple(found)


class Sorter:
    """A table made ready to sort words: which option takes what."""

    def __init__(self, table: ProgramSpec) -> None:
        self.table = table
        self._short = dict.fromkeys(table.flags, _FLAG)
        if table.numbers:  # `diff -u5` is -u -5
            self._short |= dict.fromkeys("0123456789", _FLAG)
        self._short |= dict.fromkeys(table.values, _VALUE) | dict.fromkeys(table.attached, _ATTACHED)
        names = table.long_flags.split()
        self._long = {f"--{name.rstrip('=')}": _BY_SIGNS[name.count("=")] for name in names}
        self._long |= {f"--{name}": _VALUE for name in table.long_values.split()}
        for name in table.paths:
            if name.startswith("--"):
                self._long[name] = _VALUE
            else:
                self._short[name[1]] = _VALUE

    def sort(self, words: tuple[Word, ...]) -> ParsedArgs | str:
        """As GNU programs do it: an option behind an operand is an option still, `--` ends them, `-` is an operand."""
        options: _Options = []
        operands: list[Word] = []
        ended: int | None = None
        mixed = False
        rest = iter(words)
        for word in rest:
            text = word.text
            if text[:1] != "-" or text == "-":
                operands.append(word)
            elif text == "--":
                ended = len(operands)
                operands += rest
            elif fault := self._take(word, rest, options):
                return fault
            else:
                mixed = mixed or bool(operands)
        return self._judged(options, operands, ended, mixed=mixed)

    def _take(self, word: Word, rest: Iterator[Word], options: _Options) -> str | None:
        text = word.text
        if word.globs:
            return f"{text} is a pattern that may become any option"
        if text[1] == "-":
            return self._take_long(text, rest, options)
        if self.table.numbers and text[1:].isascii() and text[1:].isdigit():
            options.append(("-NUM", text[1:]))
            return None
        return self._take_bundle(text, rest, options)

    def _take_long(self, text: str, rest: Iterator[Word], options: _Options) -> str | None:
        name, equals, value = text.partition("=")
        takes = self._long.get(name)
        if takes is None or (equals and takes == _FLAG):
            return self._unknown(f"{name}=" if takes is not None else name)
        if takes == _VALUE and not equals:
            return self._take_value(name, rest, options)
        if takes == _INSIDE and not equals:
            return f"{self.table.name}'s option {name} lacks its value behind ="
        options.append((name, value if equals else None))
        return None

    def _take_bundle(self, text: str, rest: Iterator[Word], options: _Options) -> str | None:
        for place, letter in enumerate(text[1:], start=2):
            name = f"-{letter}"
            takes = self._short.get(letter)
            if takes is None:
                return self._unknown(name)
            if takes == _FLAG:
                options.append((name, None))
                continue
            if any(
                sign.isdigit() for sign in text[1 : place - 1]
            ):  # to some programs `-20c` is a number with its unit, and the value a file
                return f"{self.table.name} may take {text} for a number"
            if takes == _VALUE and place == len(text):
                return self._take_value(name, rest, options)
            value = text[place:]
            if value.startswith("=") and name in self.table.paths:
                return f"{text} names another file for some programs than for others"
            options.append((name, value or None))
            break
        return None

    def _take_value(self, name: str, rest: Iterator[Word], options: _Options) -> str | None:
        word = next(rest, None)
        if word is None:
            return f"{self.table.name}'s option {name} lacks its value"
        if word.globs:
            return f"{word.text} is a pattern where {self.table.name}'s option {name} has its value"
        options.append((name, word.text))
        return None

    def _judged(self, options: _Options, operands: list[Word], ended: int | None, *, mixed: bool) -> ParsedArgs | str:
        table = self.table
        globs = tuple([place for place, word in enumerate(operands) if word.globs])
        if operands and table.operands is None:
            return f"{table.name} only reads without operands such as {operands[0].text}"
        if table.most is not None and (globs or len(operands) > table.most):
            return f"{table.name} only reads with at most {table.most} operand{'s' if table.most > 1 else ''}"
        parsed = ParsedArgs(tuple(options), tuple([word.text for word in operands]), globs, ended, mixed)
        return (table.reject and table.reject(parsed)) or parsed

    def _unknown(self, name: str) -> str:
        among = "those that only read" if self.table.effect == "proven" else "those that are known"
        return f"{self.table.name}'s option {name} is not among {among}"


_sorters: dict[int, Sorter] = {}


def build_sorter(table: ProgramSpec) -> Sorter:
    """The sorter of a table, made once."""
    found = _sorters.get(id(table))
    if found is None:  # it keeps the table, so that no other one ever has its id
        found = _sorters[id(table)] = Sorter(table)
    return found


class _Positions:
    """What an operand is by where it stands. A pattern may stand for several operands, so it may be several things."""

    def __init__(self, table: ProgramSpec, parsed: ParsedArgs) -> None:
        plain = not (table.unless_options and any(name in table.unless_options for name, _ in parsed.options))
        self._middle: Kind | None = table.operands
        self._first: Kind | None = table.first if plain else None
        self._last: Kind | None = table.last if plain else None
        self._end = len(parsed.operands) - 1

    def kinds(self, place: int, *, is_glob: bool) -> tuple[Kind | None, ...]:
        first = self._first if place == 0 else None
        last = self._last if place == self._end and (place > 0 or is_glob) else None
        if is_glob:
            return tuple(kind for kind in (first, self._middle, last) if kind)
        return (last or first or self._middle,)


def _path(kind: Kind | None) -> Access | None:
    return None if kind == "text" else kind
