"""Parses the provable subset of the shell language.

The subset is a list of accepted forms, each with one reading in bash. Everything else is refused. Outside quotes only
printable ASCII is accepted: some shells treat a carriage return or a no-break space as a blank, others as a letter.

A word consists of signs that mean themselves, signs that are quoted, and globs. Some signs only look dangerous:
- `!`: a shell without a terminal does not expand history, and `!` as a program is refused.
- A backslash before a printable sign means that sign. Between double quotes the backslash stays, except before `$`, a
  backtick, `"` and a backslash.
- `{}`, `@{upstream}`, `HEAD^{tree}`: braces expand only around a comma or two dots. These close, with neither
  inside, so that they cannot pair with braces in the rest of the word.
- `$` at the end of a word, or between double quotes before the last of them, a blank, `|` or `)`: it names nothing.
- `~` and `#` behind a letter: they are active at the start of a word, and `~` also behind `=` and `:`.
- `[` without a later `]`, and `]` without an earlier `[`: no globs.
- `"$(cat <<'EOF' …)"` as a whole word: `cat` prints the lines up to EOF, in which a quoted delimiter expands nothing.
- `time` before a pipeline, and variables before a program that only affect how it displays text.
"""

import re
from itertools import islice

from handrail.policy.names import has_invisible
from handrail.policy.shell.syntax import Join, Operator, Redirection, Script, SimpleCommand, Unparsed, Word

MAX_SCRIPT_BYTES = 8192
MAX_PARTS = 400
"""Words, operators and parts of words. The limit bounds the time that any text takes."""
MAX_COMMANDS = 30
MAX_WORD_PARTS = 100

_BLANKS = " \t\n"


def lex(text: str) -> Script | Unparsed:
    """Parse a text into simple commands, or tell why it is outside the subset."""
    size = len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
    if size > MAX_SCRIPT_BYTES:
        return Unparsed(f"is longer than {MAX_SCRIPT_BYTES} bytes", 0, too_large=True)
    try:
        _check_visible(text)
        return _ScriptReader(text).read_script()
    except UnsupportedSyntax as refusal:
        return refusal.unparsed


class UnsupportedSyntax(Exception):  # noqa: N818  nothing went wrong: the text is one that nothing can be said about
    """The text is outside the subset."""

    def __init__(self, reason: str, at: int, *, too_large: bool = False) -> None:
        super().__init__(reason)
        self.unparsed = Unparsed(reason, at, too_large)


_OPTION_SIGNS = "-+"
_NAME = r"A-Za-z0-9_\-"
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f"
_PLAIN_SIGNS = rf"[{_NAME}./,:=+@%^!]++"
"""Signs that mean themselves wherever they stand in an operand."""
_INNER_SIGNS = rf"(?<=[{_NAME}./,+@%^!~#}}])[~#]|(?<=[=:])[#]"
_BRACES = rf"\{{\}}|(?<=[@^])\{{[{_NAME}]++(?:\.[{_NAME}]++)*\}}"
_INSIDE_DOUBLE = rf'(?:[^"\\$`{_CONTROL}]++|\\[ -~]|\$(?=[ "|)]))*'
_INSIDE_SINGLE = rf"[^'{_CONTROL}]*+"
_BRACKET_SET = rf"[!^]?[{_NAME}.]++\]"
# Each piece begins with a sign of its own, or looks ahead. So a word can be split in one way only, and backtracking
# finds no other. Possessive groups would express that too, but Python 3.11.2 matches them wrongly.
_PIECES = {
    "literal": rf"{_PLAIN_SIGNS}|{_INNER_SIGNS}|{_BRACES}|\$(?=[ \t\n]|\Z)",
    "single": f"'{_INSIDE_SINGLE}'",
    "double": rf'"{_INSIDE_DOUBLE}"',
    "escaped": r"\\[ -~]",
    "wildcard": r"[*?]",
    "bracket": rf"\[{_BRACKET_SET}",
    "lone bracket": rf"\[(?!{_BRACKET_SET})|\]",
}
_LITERAL, _SINGLE, _DOUBLE, _ESCAPED, _WILDCARD = range(1, 6)
_PIECE = re.compile("|".join(f"({pattern})" for pattern in _PIECES.values()))
_WORD = f"(?:{'|'.join(_PIECES.values())}){{1,{MAX_WORD_PARTS}}}"
_END = r"(?=[ \t\n;|&<>]|\Z)"
_WHOLE_WORD = rf"(?![0-9]++[<>]){_WORD}{_END}"
_TO_FILE = "[12]?>>?|&>>?|<"
_HERE_TEXT = (
    r""""\$\(cat[ ]<<'(?P<tag>[A-Za-z_][A-Za-z0-9_]*)'\n"""
    rf"""(?P<lines>(?:(?!(?P=tag)\n)[^\n{_CONTROL}]*\n)*)(?P=tag)\n[ \t\n]*\)\""""
)
"""Constant text in a word: `"$(cat <<'EOF'`, its lines, `EOF`, `)"`."""
_TOKEN = re.compile(
    rf"""[ \t]*+(?:
      ({_PLAIN_SIGNS})(?=[ \t\n;|&]|\Z)
    | ({_WHOLE_WORD})
    | (&&|\|\||\|(?!&)|;(?![;&])|\n)[ \t\n]*+
    | (2>&1|1?>&2){_END}
    | ({_TO_FILE})[ \t]*+({_WHOLE_WORD})
    | ({_HERE_TEXT}){_END}
    | (.))""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN, _MIXED, _JOIN, _COPY, _OPERATOR, _TARGET, _HERE = range(1, 8)
_OTHER = 10  # behind the two groups in _HERE
_TOKEN_START = re.compile(rf"(?:(?:{_TO_FILE})[ \t]*+)?(?:{_WORD})?")
_WORD_PART = re.compile(_WORD)
_OPEN_QUOTE = re.compile(f"(?:'{_INSIDE_SINGLE}|\"{_INSIDE_DOUBLE})?")
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
_PREFIX = re.compile(
    r"""(?:time[ \t]+(?:-p[ \t]+)?)?
    (?:(?: (?:LANG|LC_[A-Z]+)=[A-Za-z0-9_.@-]*
    | TZ=[A-Z][A-Za-z0-9_+-]*(?:/[A-Z][A-Za-z0-9_+-]*)?
    | (?:NO_COLOR|FORCE_COLOR|CLICOLOR|CLICOLOR_FORCE|COLUMNS|LINES|CI|NODE_ENV|PYTHONUNBUFFERED
      |PYTHONDONTWRITEBYTECODE|PYTHONUTF8|PYTHONHASHSEED|RUST_BACKTRACE)=[a-z0-9]*
    | TERM=(?:dumb|xterm(?:-256color)?)
    | (?:GIT_PAGER|PAGER)=cat
    )[ \t]+)*""",
    re.VERBOSE,
)
"""Words before a program that change nothing. Their values select no file and no program."""
_JOINS: dict[str, Join] = {"&&": "&&", "||": "||", ";": ";", "|": "|", "\n": ";"}
_SOCKETS = ("/dev/tcp/", "/dev/udp/")


class _ScriptReader:
    __slots__ = ("at", "join", "parts", "rest", "text", "tokens")

    def __init__(self, text: str) -> None:
        self.text = text.rstrip(_BLANKS)
        self.at = len(text) - len(text.lstrip(_BLANKS))
        """Position of the next command."""
        self.join = ""
        """The join before the next command."""
        self.parts = 0
        self.rest = _TOKEN.finditer(self.text, self.at)
        self.tokens = islice(self.rest, MAX_PARTS)

    def read_script(self) -> Script:
        commands, joins = [self.read_command()], list[Join]()
        while self.join and not (self.join == ";" and self.at == len(self.text)):
            joins.append(_JOINS[self.join])
            commands.append(self.read_command())
            if len(commands) > MAX_COMMANDS:
                raise self.build_limit_error()
        if next(self.rest, None):
            raise self.build_limit_error()
        return Script(tuple(commands), tuple(joins))

    def read_command(self) -> SimpleCommand:
        begin, is_piped, self.join = self.at, self.join == "|", ""
        words, redirections = list[Word](), list[Redirection]()
        for match in self.tokens:
            kind = match.lastindex
            if kind == _PLAIN:
                words.append(Word(match[_PLAIN]))
            elif kind == _MIXED:
                words.append(self.read_word(match, _MIXED))
            elif kind == _HERE:
                words.append(Word(match["lines"].rstrip("\n")))  # as a substitution does
            elif kind == _JOIN:
                self.join, self.at = match[_JOIN], match.end()
                break
            else:
                redirections.append(self.read_redirection(match))
        if not words:
            raise self.build_missing_program_error(redirections, begin)
        prefix = self.read_prefix(words, begin) if "=" in words[0].text or words[0].text == "time" else ()
        if prefix and (len(prefix) == len(words) or (is_piped and prefix[0] == "time")):
            prefix = ()
        _check_program(words[len(prefix)], begin)
        return SimpleCommand(tuple(words[len(prefix) :]), tuple(redirections), prefix)

    def read_prefix(self, words: list[Word], begin: int) -> tuple[str, ...]:
        """The words before the program that change nothing, as they are spelled: quoted they would be a program."""
        match = _PREFIX.match(self.text, begin)
        prefix = tuple(match[0].split()) if match else ()
        return prefix if [word.text for word in words[: len(prefix)]] == [*prefix] else ()

    def read_word(self, match: re.Match[str], group: int) -> Word:
        word, parts = _parse_word(match[group], match.start(group))
        self.parts += parts
        if self.parts > MAX_PARTS:
            raise self.build_limit_error()
        return word

    def read_redirection(self, match: re.Match[str]) -> Redirection:
        if match.lastindex == _OTHER:
            raise self.build_token_error(match.start(_OTHER))
        if match.lastindex == _COPY:
            return Redirection(_OPERATORS[match[_COPY]])
        self.parts += 2  # a redirection takes as long as two parts of words
        target = self.read_word(match, _TARGET)
        if target.globs or not target.text:
            raise UnsupportedSyntax("redirects to or from something that is not one file", match.start(_TARGET))
        if target.text.startswith(_SOCKETS):
            raise UnsupportedSyntax("opens a network connection (/dev/tcp, /dev/udp)", match.start(_TARGET))
        return Redirection(_OPERATORS[match[_OPERATOR]], target)

    def build_missing_program_error(self, redirections: list[Redirection], begin: int) -> UnsupportedSyntax:
        if redirections:
            return UnsupportedSyntax("redirects, but names no program", begin)
        if not self.join and next(self.rest, None):
            return self.build_limit_error()
        return _build_sign_error(self.text, begin)

    def build_token_error(self, at: int) -> UnsupportedSyntax:
        """The fault of the word or the redirection at this position."""
        place = next(_TOKEN_START.finditer(self.text, at)).end()
        if _WORD_PART.match(self.text, place):
            return self.build_limit_error()
        inside = next(_OPEN_QUOTE.finditer(self.text, place)).end()
        return _build_sign_error(self.text, inside if inside < len(self.text) else place)

    def build_limit_error(self) -> UnsupportedSyntax:
        return UnsupportedSyntax(f"has more than {MAX_COMMANDS} commands or {MAX_PARTS} words", self.at, too_large=True)


def _check_program(program: Word, begin: int) -> None:
    if program.text in _RESERVED:
        raise UnsupportedSyntax(f"uses a keyword of the shell ({program.text})", begin)
    if "=" in program.text:
        raise UnsupportedSyntax("sets a variable instead of naming a program (=)", begin)
    if program.globs or not _PROGRAM.fullmatch(program.text):
        raise UnsupportedSyntax("does not begin with the plain name of a program", begin)


_QUOTES = "'\""
_NEEDS_SPLIT = re.compile(r"""['"\\\[\]]""")
_WILDCARD_SIGN = re.compile(r"[*?]")
_HIDDEN = re.compile(r"(?:^|/)\.[^/]*[*?\[]")


def _parse_word(raw: str, at: int) -> tuple[Word, int]:
    """The word of a text that matches `_WORD`, and the number of its parts. `at` is its position."""
    first = raw[0]
    if first in _QUOTES:
        if raw.find(first, 1) == len(raw) - 1 and (first == "'" or "\\" not in raw):
            return Word(raw[1:-1]), 0
    elif not _NEEDS_SPLIT.search(raw):
        globs = [] if first in _OPTION_SIGNS else [match.start() for match in _WILDCARD_SIGN.finditer(raw)]
        return (_build_pattern(raw, globs, at), len(globs) + 1) if globs else (Word(raw), 0)
    return _join_pieces(raw, at)


def _join_pieces(raw: str, at: int) -> tuple[Word, int]:
    text, globs, opened, parts = "", list[int](), False, 2  # such a word takes as long as two more parts
    for match in _PIECE.finditer(raw):
        kind, part = match.lastindex or 0, match[0]
        if kind == _WILDCARD:
            globs.append(len(text))
        elif kind > _WILDCARD:
            globs += _find_bracket_globs(part, len(text), opened, at + match.start())
            opened = opened or part == "["
        elif kind != _LITERAL:
            part = _unquote(kind, part)
        text += part
        parts += 1
    return _build_pattern(text, globs, at) if globs else Word(text), parts


def _unquote(kind: int, part: str) -> str:
    if kind == _ESCAPED:
        return part[1]
    if kind == _SINGLE or "\\" not in part:
        return part[1:-1]
    # Pairs of backslashes first: the rest of a row of them belongs to the next sign.
    pairs = part[1:-1].split("\\\\")
    return "\\".join(piece.replace('\\"', '"').replace("\\$", "$").replace("\\`", "`") for piece in pairs)


def _find_bracket_globs(part: str, place: int, opened: bool, at: int) -> tuple[int, ...]:
    """The globs of `[a-z]`. A single bracket is literal, unless an earlier one makes it a pair."""
    if opened and part[-1] == "]":
        raise UnsupportedSyntax("uses [ ] with characters that shells read differently", at)
    return (place, place + len(part) - 1) if len(part) > 1 else ()


def _build_pattern(text: str, globs: list[int], at: int) -> Word:
    """A pattern that cannot match an option, a hidden file or the folder above.

    - `-x*`, `--include=*.py` stay literal: only a file whose name begins like that option could match.
    - `*.py` becomes `./*.py`, because a file called `-rf` would become an option.
    """
    if text[0] in _OPTION_SIGNS:
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
    ";": "has a ; without a command before it, or the ;; or ;& of a case statement",
    "<": "redirects in an unusual way (<)",
    ">": "redirects in an unusual way (>)",
    "\\": "has a backslash at the end of a line, or before an invisible character",
    "'": "has a quote that is never closed",
    '"': "has a quote that is never closed",
    "": "ends before its command does",
    "\n": "has a line that ends before its command does",
}
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")


def _build_sign_error(text: str, at: int) -> UnsupportedSyntax:
    """The fault of a sign that begins neither a word nor an operator."""
    if not text:
        return UnsupportedSyntax("is empty", 0)
    sign = text[at : at + 1]
    return UnsupportedSyntax(_REASONS[sign], at) if sign in _REASONS else _build_invisible_error(sign, at)


def _check_visible(text: str) -> None:
    """People must read what bash runs: no direction marks, no signs without width, no private signs."""
    if text.isascii():
        return
    beyond = "".join(_BEYOND_ASCII.findall(text))
    if beyond.isprintable() and not has_invisible(beyond):
        return
    at = next(at for at, sign in enumerate(text) if not (sign.isascii() or sign.isprintable()) or has_invisible(sign))
    raise _build_invisible_error(text[at], at)


def _build_invisible_error(sign: str, at: int) -> UnsupportedSyntax:
    return UnsupportedSyntax(f"has a character that is not plain text (U+{ord(sign):04X})", at)
