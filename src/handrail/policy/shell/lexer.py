"""Parses the provable subset of the shell language."""

import re
from itertools import islice

from handrail.policy.names import has_invisible
from handrail.policy.shell.syntax import Join, Operator, Redirection, Script, SimpleCommand, Unparsed, Word

# § [policy.shell.refused] Why a text is outside the subset, in words that a person understands.

_REASONS = {
    "$": "uses a variable or a substitution ($)",
    "`": "uses a command substitution (`)",
    "(": "uses a subshell, a function or a substitution ( )",
    ")": "uses a subshell, a function or a substitution ( )",
    "{": "uses braces, which the shell may expand ({ })",
    "}": "uses braces, which the shell may expand ({ })",
    "~": "names a home folder (~)",
    "#": "has a comment (#)",
    "&": "runs something in the background, or copies a stream in an unusual way (&)",
    "|": "joins commands in an unusual way (|)",
    ";": "has a ; with no command before it, or a sign of case behind it (;; ;&)",
    "<": "redirects in an unusual way (<)",
    ">": "redirects in an unusual way (>)",
    "\\": "has a backslash at the end of a line, or before a sign that cannot be seen",
    "'": "has a quote that is never closed",
    '"': "has a quote that is never closed",
    "": "ends before its command does",
    "\n": "has a line that ends before its command does",
}
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


class UnsupportedSyntax(Exception):  # noqa: N818  nothing went wrong: the text is one that nothing can be said about
    """The text is outside the subset."""

    def __init__(self, reason: str, at: int, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.outside = Unparsed(reason, at, too_large)


def build_unsupported_syntax(text: str, at: int) -> UnsupportedSyntax:
    """What is wrong with the sign at a place where neither a word nor an operator can stand."""
    if not text:
        return UnsupportedSyntax("is empty", 0)
    sign = text[at : at + 1]
    if sign in _REASONS:
        return UnsupportedSyntax(_REASONS[sign], at)
    return _not_plain(sign, at)


def check_visible(text: str) -> None:
    """What a person reads must be what is run: no marks for direction, nothing of no width, no private signs."""
    if text.isascii():
        return
    beyond = "".join(_BEYOND_ASCII.findall(text))
    if beyond.isprintable() and not has_invisible(beyond):
        return
    at = next(at for at, sign in enumerate(text) if not (sign.isascii() or sign.isprintable()) or has_invisible(sign))
    raise _not_plain(text[at], at)


def _not_plain(sign: str, at: int) -> UnsupportedSyntax:
    return UnsupportedSyntax(f"has a sign that is not plain text (U+{ord(sign):04X})", at)


# § [policy.shell.words] Words: what they may be made of, and what they say once quotes and backslashes are taken
# § off.  Everything here is a sign that means itself where it stands, a sign that quoting makes mean itself, or a
# § glob. Some that look dangerous are not, in a shell that nobody types into: - `!`: history is not expanded, and
# § as a program it is refused. - A backslash before a printable sign: that sign. Between double quotes it stays,
# § but before `$`, a backtick, `"`, `\`. - `{}`, `@{upstream}`, `HEAD^{tree}`: braces expand around a comma or two
# § dots. Each closes what it opened, with neither inside, so none of them can come to stand around those of the
# § rest of the word. - `$` at the end of a word, and between double quotes before the last of them, a blank, `|` or
# § `)`: it names nothing. - `~` and `#` behind a letter or the like: they are active at the start of a word, and
# § `~` behind `=` and `:`. - `[` without a `]` behind it and `]` without a `[` before it: no globs.

_QUOTES = "'\""
_OPTION = "-+"
_NAME = r"A-Za-z0-9_\-"
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f"
PLAIN = rf"[{_NAME}./,:=+@%^!]++"
"""Signs that mean themselves wherever they stand in an operand."""
_INNER = rf"(?<=[{_NAME}./,+@%^!~#}}])[~#]|(?<=[=:])[#]"
_BRACES = rf"\{{\}}|(?<=[@^])\{{[{_NAME}]++(?:\.[{_NAME}]++)*\}}"
INSIDE_DOUBLE = rf'(?:[^"\\$`{_CONTROL}]++|\\[ -~]|\$(?=[ "|)]))*'
INSIDE_SINGLE = rf"[^'{_CONTROL}]*+"
_SET = rf"[!^]?[{_NAME}.]++\]"
# Every piece begins with a sign that no other begins with, or looks at what follows: there is one way to take a word
# apart, and going back over it finds nothing. (Possessive groups would say so too; Python 3.11.2 matches them wrongly.)
_PIECES = {
    "literal": rf"{PLAIN}|{_INNER}|{_BRACES}|\$(?=[ \t\n]|\Z)",
    "single": f"'{INSIDE_SINGLE}'",
    "double": rf'"{INSIDE_DOUBLE}"',
    "escaped": r"\\[ -~]",
    "wild": r"[*?]",
    "bracket": rf"\[{_SET}",
    "lone": rf"\[(?!{_SET})|\]",
}
MAX_WORD_PARTS = 100
WORD = f"(?:{'|'.join(_PIECES.values())}){{1,{MAX_WORD_PARTS}}}"
"""A word, or as much of it as is looked at."""

_PIECE = re.compile("|".join(f"({pattern})" for pattern in _PIECES.values()))
_LITERAL, _SINGLE, _DOUBLE, _ESCAPED, _WILD = range(1, 6)
_TAKEN_APART = re.compile(r"""['"\\\[\]]""")
_WILDCARD = re.compile(r"[*?]")
_HIDDEN = re.compile(r"(?:^|/)\.[^/]*[*?\[]")


def parse_word(raw: str, at: int) -> tuple[Word, int]:
    """What a word in the form of `WORD` says, and how many parts it was read from; `at` is where it begins."""
    first = raw[0]
    if first in _QUOTES:
        if raw.find(first, 1) == len(raw) - 1 and (first == "'" or "\\" not in raw):
            return Word(raw[1:-1]), 0
    elif not _TAKEN_APART.search(raw):
        globs = [] if first in _OPTION else [match.start() for match in _WILDCARD.finditer(raw)]
        return (_pattern(raw, globs, at), len(globs) + 1) if globs else (Word(raw), 0)
    return _put_together(raw, at)


def _put_together(raw: str, at: int) -> tuple[Word, int]:
    text, globs, opened, parts = "", list[int](), False, 2  # such a word takes as long as two more parts would
    for match in _PIECE.finditer(raw):
        kind, part = match.lastindex or 0, match[0]
        if kind == _WILD:
            globs.append(len(text))
        elif kind > _WILD:
            globs += _bracket(part, len(text), opened, at + match.start())
            opened = opened or part == "["
        elif kind != _LITERAL:
            part = _taken_off(kind, part)
        text += part
        parts += 1
    return _pattern(text, globs, at) if globs else Word(text), parts


def _taken_off(kind: int, part: str) -> str:
    """A quoted part without its quotes."""
    if kind == _ESCAPED:
        return part[1]
    if kind == _SINGLE or "\\" not in part:
        return part[1:-1]
    # Pairs of backslashes first: what is left of a row of them belongs to the sign behind.
    pairs = part[1:-1].split("\\\\")
    return "\\".join(piece.replace('\\"', '"').replace("\\$", "$").replace("\\`", "`") for piece in pairs)


def _bracket(part: str, place: int, opened: bool, at: int) -> tuple[int, ...]:
    """The globs of `[a-z]`; a bracket that stands alone is none, unless another one makes a pair of them after all."""
    if opened and part[-1] == "]":
        raise UnsupportedSyntax("uses [ ] with signs between them that shells take in different ways", at)
    return (place, place + len(part) - 1) if len(part) > 1 else ()


def _pattern(text: str, globs: list[int], at: int) -> Word:
    """A pattern, so that no name that matches it can be an option, a hidden file or a way up.

    - `-x*`, `--include=*.py`: only a file whose name begins like that option could match, and nobody means that. The
      word is what it is without such a file: itself.
    - `*.py`: a file called `-rf` would become an option. `./*.py` matches the same files, under names that are paths.
    """
    if text[0] in _OPTION:
        return Word(text)
    if "/." in text or text[0] == ".":
        _check_dots(text, globs[0], at)
    if globs[0] == 0:
        return Word(f"./{text}", tuple([place + 2 for place in globs]))
    return Word(text, tuple(globs))


def _check_dots(text: str, first: int, at: int) -> None:
    if _HIDDEN.search(text):
        raise UnsupportedSyntax("uses a pattern that hidden files or the folder above can match", at)
    if text.find("/../", first) >= 0 or text.endswith("/.."):
        raise UnsupportedSyntax("goes up (..) from a folder that a pattern stands for", at)


# § [policy.shell.lexer] Reads a command as bash would, or not at all.  The subset is a list of what is accepted;
# § whatever is not in it is refused. Each form in it has one reading in bash. Outside quotes all is printable
# § ASCII: a carriage return or a no-break space is a blank to some, a letter to others.

MAX_SCRIPT_BYTES = 8192
MAX_PARTS = 400
"""Words and operators, and the parts that words are put together from: so many that no text takes long."""
MAX_COMMANDS = 30

_BLANKS = " \t\n"
_END = r"(?=[ \t\n;|&<>]|\Z)"
_WHOLE = rf"(?![0-9]++[<>]){WORD}{_END}"
_TO_FILE = "[12]?>>?|&>>?|<"
_TOKEN = re.compile(
    rf"""[ \t]*+(?:
      ({PLAIN})(?=[ \t\n;|&]|\Z)
    | ({_WHOLE})
    | (&&|\|\||\|(?!&)|;(?![;&])|\n)[ \t\n]*+
    | (2>&1|1?>&2){_END}
    | ({_TO_FILE})[ \t]*+({_WHOLE})
    | (.))""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN, _MIXED, _JOIN, _COPY, _OPERATOR, _TARGET, _OTHER = range(1, 8)
_BEGUN = re.compile(rf"(?:(?:{_TO_FILE})[ \t]*+)?(?:{WORD})?")
_PARTS = re.compile(WORD)
_QUOTED = re.compile(f"(?:'{INSIDE_SINGLE}|\"{INSIDE_DOUBLE})?")
_PROGRAM = re.compile(r"\[|[A-Za-z0-9_./:][A-Za-z0-9_./:+@,^~# -]*+")
# fmt: off
_RESERVED = frozenset((
    "if", "then", "else", "elif", "fi", "do", "done", "case", "esac", "while", "until", "for", "in",
    "function", "time", "coproc", "select",
))
_OPERATORS: dict[str, Operator] = {
    "<": "<", ">": ">", ">>": ">>", "1>": ">", "1>>": ">>", "2>": "2>", "2>>": "2>>", "&>": "&>", "&>>": "&>>",
    "2>&1": "2>&1", ">&2": ">&2", "1>&2": ">&2",
}
# fmt: on
_JOINS: dict[str, Join] = {"&&": "&&", "||": "||", ";": ";", "|": "|", "\n": ";"}
_SOCKETS = ("/dev/tcp/", "/dev/udp/")


def lex(text: str) -> Script | Unparsed:
    """The simple commands of a text and how they are joined, or why nobody can say what bash would do with it."""
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if size > MAX_SCRIPT_BYTES:
        return Unparsed(f"is longer than {MAX_SCRIPT_BYTES} bytes", 0, too_large=True)
    try:
        check_visible(text)
        return _ScriptReader(text).script()
    except UnsupportedSyntax as refusal:
        return refusal.outside


class _ScriptReader:
    __slots__ = ("at", "join", "parts", "rest", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text.rstrip(_BLANKS)
        self.at = len(text) - len(text.lstrip(_BLANKS))
        """Where the next command begins."""
        self.join = ""
        """What stands before it."""
        self.parts = 0
        self.rest = _TOKEN.finditer(self.text, self.at)
        self.tokens = islice(self.rest, MAX_PARTS)

    def script(self) -> Script:
        commands, joins = [self.command()], list[Join]()
        while self.join and not (self.join == ";" and self.at == len(self.text)):
            joins.append(_JOINS[self.join])
            commands.append(self.command())
            if len(commands) > MAX_COMMANDS:
                raise self.too_large()
        if next(self.rest, None):
            raise self.too_large()
        return Script(tuple(commands), tuple(joins))

    def command(self) -> SimpleCommand:
        begin, self.join = self.at, ""
        words, redirections = list[Word](), list[Redirection]()
        for match in self.tokens:
            kind = match.lastindex
            if kind == _PLAIN:
                words.append(Word(match[_PLAIN]))
            elif kind == _MIXED:
                words.append(self.word(match, _MIXED))
            elif kind == _JOIN:
                self.join, self.at = match[_JOIN], match.end()
                break
            else:
                redirections.append(self.redirection(match))
        if not words:
            raise self.nothing(redirections, begin)
        self.check_program(words[0], begin)
        return SimpleCommand(tuple(words), tuple(redirections))

    def word(self, match: re.Match[str], group: int) -> Word:
        word, parts = parse_word(match[group], match.start(group))
        self.parts += parts
        if self.parts > MAX_PARTS:
            raise self.too_large()
        return word

    def redirection(self, match: re.Match[str]) -> Redirection:
        if match.lastindex == _OTHER:
            raise self.stray(match.start(_OTHER))
        if match.lastindex == _COPY:
            return Redirection(_OPERATORS[match[_COPY]])
        self.parts += 2  # it takes as long as so many parts of words
        target = self.word(match, _TARGET)
        if target.globs or not target.text:
            raise UnsupportedSyntax(
                "redirects to or from something that is not the name of one file", match.start(_TARGET)
            )
        if target.text.startswith(_SOCKETS):
            raise UnsupportedSyntax("opens a network connection (/dev/tcp, /dev/udp)", match.start(_TARGET))
        return Redirection(_OPERATORS[match[_OPERATOR]], target)

    def nothing(self, redirections: list[Redirection], begin: int) -> UnsupportedSyntax:
        if redirections:
            return UnsupportedSyntax("redirects, but names no program", begin)
        return (
            self.too_large() if not self.join and next(self.rest, None) else build_unsupported_syntax(self.text, begin)
        )

    def check_program(self, program: Word, begin: int) -> None:
        if program.text in _RESERVED:
            raise UnsupportedSyntax(f"uses a word of the shell's own language ({program.text})", begin)
        if "=" in program.text:
            raise UnsupportedSyntax("sets a variable where its program should stand (=)", begin)
        if program.globs or not _PROGRAM.fullmatch(program.text):
            raise UnsupportedSyntax("does not begin with the plain name of a program", begin)

    def stray(self, at: int) -> UnsupportedSyntax:
        """What is wrong with the word or the redirection that begins here."""
        place = next(_BEGUN.finditer(self.text, at)).end()
        if _PARTS.match(self.text, place):
            return self.too_large()
        inside = next(_QUOTED.finditer(self.text, place)).end()
        return build_unsupported_syntax(self.text, inside if inside < len(self.text) else place)

    def too_large(self) -> UnsupportedSyntax:
        return UnsupportedSyntax(f"has more than {MAX_COMMANDS} commands or {MAX_PARTS} words", self.at, too_large=True)
