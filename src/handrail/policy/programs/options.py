"""Option parsers: a strict one for the tables of programs, a lenient one for everything else."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from handrail.policy.programs.spec import SINKS, SOURCES, Kind, ParsedArgs, PathUse, ProgramSpec
from handrail.policy.shell.syntax import Word
from handrail.protocol.decisions import Access

_STREAMS: dict[Access, frozenset[str]] = {"read": SOURCES, "write": SINKS}
_ENDLESS = frozenset(["/dev/zero", "/dev/random", "/dev/urandom"])
_Options = list[tuple[str, str | None]]

# Whether an option has a value: never, always, optionally in the same word, always in the same word.
_FLAG, _VALUE, _ATTACHED, _INSIDE = 0, 1, 2, 3
_BY_EQUALS_SIGNS = {0: _FLAG, 1: _ATTACHED, 2: _INSIDE}


def parse_path_uses(table: ProgramSpec, words: tuple[Word, ...]) -> tuple[PathUse, ...] | str:
    """The paths among the words after a table's name, or why the table does not accept the words."""
    if table.custom_parser:
        return table.custom_parser(words)
    parsed = parse_args(table, words)
    if isinstance(parsed, str):
        return parsed
    streams = _STREAMS | {"read": SOURCES | _ENDLESS} if _always_ends(table, parsed) else _STREAMS
    return tuple([use for use in list_path_uses(table, parsed) if use.path not in streams.get(use.access, ())])


def parse_args(table: ProgramSpec, words: tuple[Word, ...]) -> ParsedArgs | str:
    """Options and operands after a table's name, or why the table does not accept them."""
    parser = _parsers.get(id(table))
    if parser is None:  # the parser keeps its table alive, so that the id stays unique
        parser = _parsers[id(table)] = _OptionParser(table)
    return parser.parse(words)


def list_path_uses(table: ProgramSpec, parsed: ParsedArgs) -> tuple[PathUse, ...]:
    uses = [PathUse(value, kind) for name, value in parsed.options if value and (kind := _path(table.paths.get(name)))]
    is_positional = not (table.unless_options and parsed.has_option(*table.unless_options))
    end = len(parsed.operands) - 1
    for place, text in enumerate(parsed.operands):
        is_glob = place in parsed.globs
        first = table.first if is_positional and place == 0 else None
        last = table.last if is_positional and place == end and (place > 0 or is_glob) else None
        # A glob may become several operands, so it may be several kinds. It counts even as text: for `echo *` bash
        # reads a folder.
        for kind in (first, table.operands, last) if is_glob else (last or first or table.operands,):
            if kind and (is_glob or kind != "text"):
                uses.append(PathUse(text, _path(kind) or "read", is_glob))
    if table.extra_paths:
        uses += table.extra_paths(parsed)
    return tuple(dict.fromkeys(uses)) if parsed.globs else tuple(uses)


class LooseArgument(NamedTuple):
    """An option with its value, or an operand."""

    place: int
    """Position among the words."""
    word: str
    option: str = ""
    """The name of the option that takes the value, else the word. Empty for an operand."""
    value: str = ""


def split_options(
    words: tuple[str, ...], valued: Collection[str], paired: Collection[str] = ()
) -> Iterator[LooseArgument]:
    """Split the words after a program leniently. An option that is neither valued nor paired has no value.

    `valued` holds the options with a value (`-o`, `--output`), `paired` the long options with two values.
    """
    place = 0
    while place < len(words):
        word = words[place]
        if word == "--":
            yield from (LooseArgument(at, words[at]) for at in range(place + 1, len(words)))
            return
        if not word.startswith("-") or word == "-":
            yield LooseArgument(place, word)
        else:
            option, value = _split_option(word, valued)
            size = 0 if value is not None else 2 if option in paired else int(option in valued)
            yield LooseArgument(place, word, option, value or " ".join(words[place + 1 : place + 1 + size]))
            place += size
        place += 1


def _split_option(word: str, valued: Collection[str]) -> tuple[str, str | None]:
    """The option of `--name=value`, `-ovalue` or `-xo`, and the value in the same word."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    for place, letter in enumerate(word[1:], 2):
        if f"-{letter}" in valued:
            return f"-{letter}", word[place:] or None
    return word, None


_GIT_VALUED = frozenset(["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env"])


def split_git_options(words: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """git's global options with their values, and the words from the sub-command on."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        place += 2 if words[place] in _GIT_VALUED else 1
    return words[1:place], words[place:]


class _OptionParser:
    """Parses as GNU programs do: options may follow operands, `--` ends them, `-` is an operand."""

    def __init__(self, table: ProgramSpec) -> None:
        self._table = table
        self._short = dict.fromkeys(table.flags, _FLAG)
        if table.numbers:  # `diff -u5` is -u -5
            self._short |= dict.fromkeys("0123456789", _FLAG)
        self._short |= dict.fromkeys(table.values, _VALUE) | dict.fromkeys(table.attached, _ATTACHED)
        names = table.long_flags.split()
        self._long = {f"--{name.rstrip('=')}": _BY_EQUALS_SIGNS[name.count("=")] for name in names}
        self._long |= {f"--{name}": _VALUE for name in table.long_values.split()}
        for name in table.paths:
            if name.startswith("--"):
                self._long[name] = _VALUE
            else:
                self._short[name[1]] = _VALUE

    def parse(self, words: tuple[Word, ...]) -> ParsedArgs | str:
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
        return self._check(options, operands, ended, mixed=mixed)

    def _take(self, word: Word, rest: Iterator[Word], options: _Options) -> str | None:
        text = word.text
        if word.globs:
            return f"{text} is a pattern that may become any option"
        if text[1] == "-":
            return self._take_long(text, rest, options)
        if self._table.numbers and text[1:].isascii() and text[1:].isdigit():
            options.append(("-NUM", text[1:]))
            return None
        return self._take_bundle(text, rest, options)

    def _take_long(self, text: str, rest: Iterator[Word], options: _Options) -> str | None:
        name, equals, value = text.partition("=")
        takes = self._long.get(name)
        if takes is None or (equals and takes == _FLAG):
            return self._refuse(f"{name}=" if takes is not None else name)
        if takes == _VALUE and not equals:
            return self._take_value(name, rest, options)
        if takes == _INSIDE and not equals:
            return f"{self._table.name}'s option {name} lacks its value behind ="
        options.append((name, value if equals else None))
        return None

    def _take_bundle(self, text: str, rest: Iterator[Word], options: _Options) -> str | None:
        for place, letter in enumerate(text[1:], start=2):
            name = f"-{letter}"
            takes = self._short.get(letter)
            if takes is None:
                return self._refuse(name)
            if takes == _FLAG:
                options.append((name, None))
                continue
            # Some programs take `-20c` for a number with its unit, and the value for a file.
            if any(sign.isdigit() for sign in text[1 : place - 1]):
                return f"{self._table.name} may take {text} for a number"
            if takes == _VALUE and place == len(text):
                return self._take_value(name, rest, options)
            value = text[place:]
            if value.startswith("=") and name in self._table.paths:
                return f"{text} names another file for some programs than for others"
            options.append((name, value or None))
            break
        return None

    def _take_value(self, name: str, rest: Iterator[Word], options: _Options) -> str | None:
        word = next(rest, None)
        if word is None:
            return f"{self._table.name}'s option {name} lacks its value"
        if word.globs:
            return f"{word.text} is a pattern where {self._table.name}'s option {name} has its value"
        options.append((name, word.text))
        return None

    def _check(self, options: _Options, operands: list[Word], ended: int | None, *, mixed: bool) -> ParsedArgs | str:
        table = self._table
        globs = tuple([place for place, word in enumerate(operands) if word.globs])
        if operands and table.operands is None:
            return f"{table.name} only reads without operands such as {operands[0].text}"
        if table.most is not None and (globs or len(operands) > table.most):
            return f"{table.name} only reads with at most {table.most} operand{'s' if table.most > 1 else ''}"
        parsed = ParsedArgs(tuple(options), tuple([word.text for word in operands]), globs, ended, mixed)
        return (table.reject and table.reject(parsed)) or parsed

    def _refuse(self, name: str) -> str:
        among = "the read-only options" if self._table.effect == "proven" else "the known options"
        return f"{self._table.name}'s option {name} is not among {among}"


_parsers: dict[int, _OptionParser] = {}


def _always_ends(table: ProgramSpec, parsed: ParsedArgs) -> bool:
    return table.effect != "proven" or (table.always_ends is not None and table.always_ends(parsed))


def _path(kind: Kind | None) -> Access | None:
    return None if kind == "text" else kind
