"""Reads a command as bash would, or not at all.

The subset is a list of what is accepted; whatever is not in it is refused. Each form in it has one reading in bash.
Outside quotes all is printable ASCII: a carriage return or a no-break space is a blank to some, a letter to others.
"""

import re
from itertools import islice

from handrail.policy.shell.refused import UnsupportedSyntax, build_unsupported_syntax, check_visible
from handrail.policy.shell.script import Join, Operator, Redirection, Script, SimpleCommand, Unparsed, Word
from handrail.policy.shell.words import INSIDE_DOUBLE, INSIDE_SINGLE, PLAIN, WORD, parse_word

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
