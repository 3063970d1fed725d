"""Lists the commands of a complex command."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from handrail.code.treesitter import parse_with_timeout
from handrail.policy.wrappers import MAX_INNER_COMMANDS as MOST_INSIDE
from handrail.policy.wrappers import unwrap
from handrail.protocol.decisions import DisplayedCommand

if TYPE_CHECKING:
    from tree_sitter import Language, Node


# § [code.shell_hidden] What the grammar does not see in a shell text, found by its signs alone: a little too much
# § rather than too little.

_BACKTICK = re.compile(r"(?<!\\)`")
_PARENTHESIS = re.compile(r"[()]")
_SIGN = r"[\w./~@%+:,*-]"
_NAME = r"(?:[A-Za-z_]\w*|[@*])"
_ASSIGNED = re.compile(
    rf"(?<![\w$./-])([A-Za-z_]\w*)=(?:'([^']*)'|\"([^\"$`\\]*)\"|\(([^()$`]*)\)|({_SIGN}+))(?=[\s;&|)]|\Z)"
)
_LOOPED = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n$`]+)[;\n]")
_SET = re.compile(r"\bset\s+--\s+([^;\n&|]*)")
_USED = re.compile(
    rf"(?P<quote>\"?)\$(?:(?P<plain>{_NAME})|\{{(?P<name>{_NAME})(?:\[[@*]\]|:?[-=](?P<default>{_SIGN}*))?\}})"
    rf"(?P<rest>{_SIGN}*)(?P=quote)"
)
_BLANK = re.compile(r"\$(?:IFS(?!\w)|\{IFS\})(?:\$9)?")
_BRACES = re.compile(rf"(?<![$\\\w./~-])([\w./~-]*)\{{({_SIGN}*)\}}([\w./~*-]*)")
_MAX_NESTED_BRACES = 3


def list_backtick_texts(text: str) -> list[str]:
    """What stands between each two backticks, with those inside freed of their backslash."""
    pieces = _BACKTICK.split(text)
    return [piece.replace("\\`", "`") for piece in pieces[1::2]]


def list_substitution_texts(text: str, most: int) -> list[str]:
    """What stands in each `$( )`, as far as parentheses can be counted without knowing of quotes; one more than `most`
    where there are more."""
    return [text[start : _end(text, start)] for start in islice(_starts(text), most + 1)]


def expand_known_variables(text: str, most: int) -> str | None:
    """The text with what its own words say put in place of variables, braces and blanks; None where that is too long.

    A variable with several values becomes them all. What is in single quotes is changed as well: nobody runs this text.
    """
    if "$" not in text and "{" not in text:
        return text
    known = _values(text)
    if sum(len(values) for values in known.values()) * text.count("$") > most:
        return None
    spelled = _USED.sub(lambda use: _put(use, known), _BLANK.sub(" ", text))
    for _ in range(_MAX_NESTED_BRACES):
        spelled = _BRACES.sub(_apart, spelled)
    return spelled


def _starts(text: str) -> Iterator[int]:
    at = text.find("$(")
    while at >= 0:
        yield at + 2
        at = text.find("$(", at + 2)


def _end(text: str, start: int) -> int:
    depth = 1
    for sign in _PARENTHESIS.finditer(text, start):
        depth += 1 if sign[0] == "(" else -1
        if depth == 0:
            return sign.start()
    return len(text)


def _values(text: str) -> dict[str, str]:
    """The values that each variable is given somewhere in the text, separated by blanks."""
    known: dict[str, str] = {}
    for name, *spellings in _ASSIGNED.findall(text):
        known[name] = f"{known.get(name, '')} {' '.join(spellings).strip()}".strip()
    for name, values in _LOOPED.findall(text):
        known[name] = f"{known.get(name, '')} {values}".strip()
    for values in _SET.findall(text):
        known["@"] = known["*"] = values
    return known


def _put(use: re.Match[str], known: Mapping[str, str]) -> str:
    values = known.get(use["plain"] or use["name"], use["default"] or "").replace('"', "").replace("'", "")
    if not values:
        return use[0]
    return " ".join(f"{value}{use['rest']}" for value in values.split())


def _apart(braces: re.Match[str]) -> str:
    before, inside, behind = braces.groups()
    return " ".join(f"{before}{one}{behind}" for one in inside.split(",")) if "," in inside else braces[0]


# § [code.shell_text] What the words of a shell command say: quotes are taken off, what would be expanded stays as
# § it is written.

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_ANSI_C = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_C_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def get_source(node: "Node", data: bytes) -> str:
    """As it is written."""
    return data[node.start_byte : node.end_byte].decode(errors="replace")


def unquote_word(node: "Node", data: bytes) -> str:
    """A word without its quotes."""
    match node.type:
        case "command_name" | "concatenation":
            return "".join(unquote_word(child, data) for child in node.children)
        case "raw_string":
            return get_source(node, data)[1:-1]
        case "ansi_c_string":
            return _ANSI_C.sub(_ansi_c, get_source(node, data)[2:-1]).partition("\0")[0]  # as bash does
        case "string" | "translated_string":
            inner = get_source(node, data).removeprefix("$")[1:-1]
            return _ESCAPED_IN_QUOTES.sub(r"\1", inner)
        case "word":
            return _ESCAPED.sub(r"\1", get_source(node, data))
        case _:
            return get_source(node, data)


def join_continued_lines(text: str) -> str:
    """With lines that end in a backslash put together with the next, as bash does everywhere but in single quotes."""
    return _CONTINUED.sub(r"\1", text)


def _ansi_c(match: re.Match[str]) -> str:
    *codes, octal, sign = match.groups()
    if sign is not None:
        return _ANSI_C_SIGNS.get(sign, sign)
    code = int(octal, 8) if octal is not None else next(int(code, 16) for code in codes if code is not None)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "\ufffd"


# § [code.shell_tree] Walks the tree of a shell text and takes the simple commands out of it.

MAX_NODES = 50_000
MAX_COMMANDS = 2_000
MAX_TEXTS = 100
"""Texts in one command: strings for `sh -c` and `eval`, what is fed to a shell."""
MAX_TEXT_CHARS = 1 << 20
"""Of all commands together: one that stands in another is told twice."""

_COMMANDS = frozenset(("command", "declaration_command", "unset_command", "test_command"))
# fmt: off
_WORDS = frozenset((
    "command_name", "word", "string", "raw_string", "ansi_c_string", "translated_string", "concatenation", "number",
    "simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion",
    "brace_expression", "variable_assignment", "variable_name", "test_operator", "regex", "extglob_pattern",
))
# fmt: on
_REDIRECTS = frozenset(("file_redirect", "heredoc_redirect", "herestring_redirect"))
_WRITING = frozenset((">", ">>", "&>", "&>>", ">|", ">&", "<>"))
_NO_FILE = re.compile(r"\d*-?")
_SHELL = r"(?:[^\s|;&()]*/)?(?:(?:rba|ba|da|mk|z|k|a|fi|c|tc|pw)?sh|powershell)"
_BEFORE_SHELL = r"(?:(?:sudo|doas|env|nohup|exec|command|time|nice|busybox)(?:\s+-[^\s|;&()]+|\s+\w+=[^\s|;&()]*)*\s+)*"
_IS_SHELL = re.compile(rf"(?:^|[\s|;&(]){_SHELL}(?=$|[\s|;&)<])")
_INTO_SHELL = re.compile(rf"\|&?\s*{_BEFORE_SHELL}{_SHELL}(?=$|[\s|;&)<])")
_RUNS_TEXT = re.compile(rf"{_SHELL}|eval|source|\.|[$`].*", re.DOTALL)
"""A first word that runs what the substitutions behind it, or it itself, say."""
# Words that the grammar takes for a program when it does not understand what stands before them.
_LEADING = frozenset(("then", "else", "elif", "do", "if", "while", "until", "{", "!", "coproc"))
_SPEAKING = frozenset(("echo", "printf"))


class ShellFindings(NamedTuple):
    """What a text holds."""

    commands: list[DisplayedCommand]
    texts: list[str]
    """Texts that a shell is fed with: `sh <<EOF`, `echo … | sh`."""


class _NodeContext(NamedTuple):
    """A node, and what is around it."""

    node: "Node"
    writes: tuple[str, ...] = ()
    """Files that the redirections behind it write to …"""
    redirects: str = ""
    """… and how these are written."""
    function: str = ""
    forks: bool = False
    """In a pipeline or in the background, as seen from the function."""
    into_shell: bool = False


def collect_commands(root: "Node", data: bytes) -> ShellFindings | None:
    """Everything below a node, None where it is too much; no deeper calls for deeper trees."""
    walk = _ShellTreeWalk(data)
    waiting, count = [_NodeContext(root)], 0
    while waiting:
        place = waiting.pop()
        # Turned around, since the last is taken first.
        waiting += list(walk.visit(place))[::-1]
        count += 1
        if count > MAX_NODES or len(walk.found) > MAX_COMMANDS or walk.size > MAX_TEXT_CHARS:
            return None
    return ShellFindings(walk.commands(), walk.texts)


class _ShellTreeWalk:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found: list[tuple[DisplayedCommand, _NodeContext]] = []
        self.texts: list[str] = []
        self.size = 0
        self.calls: dict[str, set[str]] = {}
        """Which programs each function names."""

    def visit(self, place: _NodeContext) -> Iterator[_NodeContext]:
        """Takes what is of interest, and says where to look next."""
        node = place.node
        if node.type == "redirected_statement":
            yield from self.redirected(place)
            return
        if node.type in _COMMANDS:
            place = place._replace(into_shell=place.into_shell or self.runs_text(node))
            self.take(place)
        elif node.type == "ERROR":
            self.take_stray(place)
        elif node.type == "function_definition":
            yield from self.function(place)
            return
        elif node.type == "pipeline":
            place = place._replace(forks=True, into_shell=bool(_INTO_SHELL.search(self.text(node))))
        elif node.type in {"command_substitution", "expansion"}:
            self.take_backticks(node)
        elif node.type == "heredoc_redirect":
            self.take_hidden(node)
        yield from self.below(place)

    def below(self, place: _NodeContext) -> Iterator[_NodeContext]:
        children = place.node.children
        for number, child in enumerate(children):
            if child.child_count:
                behind = children[number + 1].type if number + 1 < len(children) else ""
                yield place._replace(node=child, writes=(), redirects="", forks=place.forks or behind == "&")

    def redirected(self, place: _NodeContext) -> Iterator[_NodeContext]:
        """A statement and its redirections: they are the command's if it is a simple one."""
        body = next((child for child in place.node.children if child.type not in _REDIRECTS), None)
        writes = tuple(self.writes(place.node))
        is_simple = body is not None and body.type in _COMMANDS
        place = place._replace(into_shell=place.into_shell or (body is not None and self.runs_text(body)))
        shown = " ".join(self.head(child) for child in place.node.children if child.type in _REDIRECTS)
        if writes and not is_simple:
            self.add((), place._replace(writes=writes), shown)
        self.take_fed(place.node, place)
        for inner in self.below(place):
            is_body = is_simple and inner.node == body
            yield inner._replace(writes=writes, redirects=f" {shown}") if is_body else inner

    def function(self, place: _NodeContext) -> Iterator[_NodeContext]:
        name = next((self.text(child) for child in place.node.children if child.type == "word"), "")
        writes = tuple(self.writes(place.node))
        if writes:
            self.add((), place._replace(writes=writes), self.head(place.node))
        for inner in self.below(place):
            yield inner._replace(function=name, forks=False)

    def take(self, place: _NodeContext) -> None:
        """A simple command."""
        node = place.node
        words = self.words(node)
        while words and words[0] in _LEADING:
            named = words[0] == "coproc" and words[2:3] == ["{"]
            del words[: 2 if named else 1]
        writes = (*place.writes, *self.writes(node))
        self.add(tuple(words), place._replace(writes=writes), self.text(node) + place.redirects)
        if place.into_shell and words and words[0] in _SPEAKING:
            self.texts.append(" ".join(words[1:]))
        self.take_fed(node, place)

    def runs_text(self, node: "Node") -> bool:
        """Whether a simple command runs what other commands print."""
        words = self.words(node) if node.type == "command" else []
        return bool(words) and _RUNS_TEXT.fullmatch(words[0]) is not None

    def words(self, node: "Node") -> list[str]:
        if node.type == "test_command":
            return self.text(node).split()
        if node.type != "command":  # `export`, `unset`: their names are signs of the grammar
            return [self.word(child) for child in node.children if child.type in _WORDS or not child.is_named]
        # What stands before the program is for its environment.
        wanted = _WORDS - {"variable_assignment"}
        return [self.word(child) for child in node.children if child.type in wanted and not child.is_missing]

    def take_stray(self, place: _NodeContext) -> None:
        """Words that the parser could not make sense of: each row of them may be a command."""
        row: list[Node] = []
        for child in [*place.node.children, None]:
            if child is not None and child.type in _WORDS:
                row.append(child)
            elif row:
                self.add(tuple(self.word(word) for word in row), place, self.head(place.node))
                row = []

    def take_backticks(self, node: "Node") -> None:
        """Substitutions in one another, side by side or in `${ }`: the grammar does not see all of them."""
        text = self.text(node)
        self.size += len(text)  # each is in the text of all around it
        if node.type == "expansion" or text.count("`") > 2:
            self.texts += list_backtick_texts(text)

    def take_hidden(self, node: "Node") -> None:
        """What is substituted in a text that follows, unless its end is quoted."""
        start = next((self.text(child) for child in node.children if child.type == "heredoc_start"), "")
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if body is not None and not set(start) & set("'\"\\"):
            self.texts += list_backtick_texts(self.text(body))
            if not body.named_child_count:
                self.texts += list_substitution_texts(self.text(body), MAX_TEXTS)

    def take_fed(self, node: "Node", place: _NodeContext) -> None:
        """What a shell gets on its input."""
        for redirect in node.children:
            if redirect.type == "heredoc_redirect":
                body = next((child for child in redirect.children if child.type == "heredoc_body"), redirect)
                before = self.data[node.start_byte : body.start_byte].decode(errors="replace")
                if body is not redirect and _IS_SHELL.search(before):
                    self.texts.append(self.text(body))
            elif redirect.type == "herestring_redirect" and (place.into_shell or _IS_SHELL.search(self.text(node))):
                self.texts += [self.word(child) for child in redirect.children if child.type in _WORDS]

    def writes(self, node: "Node") -> Iterator[str]:
        """The files that a node's own redirections write to."""
        for redirect in node.children:
            if redirect.type == "heredoc_redirect":
                yield from self.writes(redirect)
            elif redirect.type == "file_redirect":
                signs = {child.type for child in redirect.children if not child.is_named}
                errors = {self.text(child) for child in redirect.children if child.type == "ERROR"}
                for child in redirect.children:
                    if child.type in _WORDS and (signs | errors) & _WRITING:
                        target = self.word(child)
                        if not (">&" in signs and _NO_FILE.fullmatch(target)):
                            yield target

    def add(self, words: tuple[str, ...], place: _NodeContext, text: str) -> None:
        if words or place.writes:
            self.found.append((DisplayedCommand(words=words, text=text, writes=place.writes), place))
            self.size += len(text) + sum(map(len, words))
        if place.function and words:
            self.calls.setdefault(place.function, set()).add(words[0])

    def commands(self) -> list[DisplayedCommand]:
        """Those that were found, with what is known only at the end: which functions start themselves again."""
        return [
            DisplayedCommand(
                words=one.words, text=one.text, writes=one.writes, forks_itself=self.comes_back(one, place)
            )
            for one, place in self.found
        ]

    def comes_back(self, command: DisplayedCommand, place: _NodeContext) -> bool:
        """Whether a call that forks leads back to the function that it is in."""
        if not (place.forks and place.function and command.words):
            return False
        reached, waiting = {command.words[0]}, [command.words[0]]
        while waiting:
            new = self.calls.get(waiting.pop(), set()) - reached
            reached |= new
            waiting += new
        return place.function in reached

    def head(self, node: "Node") -> str:
        """The first line."""
        return self.text(node).partition("\n")[0]

    def text(self, node: "Node") -> str:
        return get_source(node, self.data)

    def word(self, node: "Node") -> str:
        return unquote_word(node, self.data)


# § [code.shell_commands] What a complex command would run, as far as tree-sitter sees: to show it and to be
# § stricter, never to prove it safe. The grammar is not bash: it takes a carriage return for a blank and knows
# § nothing of aliases. Where it is wrong, a command may be missing here, or be one too many.

MAX_SCRIPT_BYTES = 128 << 10
MAX_DEPTH = 5
MAX_PIPES = 1_000
"""In one text: the parser's memory grows with their square (4,000 of them take 240 MB)."""
MAX_HEREDOCS = 1_000


def find_shell_commands(text: str) -> tuple[DisplayedCommand, ...] | None:
    """Every simple command in a text, wherever it stands, and in texts that a shell is given; None: nobody can tell."""
    seen: dict[DisplayedCommand, None] = {}
    known, waiting = {text}, [(text, 0)]
    for one, depth in waiting:
        found = _found_in_all(one)
        if found is None:
            return None
        seen |= dict.fromkeys(found.commands)
        if len(seen) > MAX_COMMANDS:
            return None
        new = [inner for inner in dict.fromkeys(found.texts) if inner not in known]
        known.update(new)
        waiting += [(inner, depth + 1) for inner in new]
        if new and (depth == MAX_DEPTH or len(known) > MAX_TEXTS):
            return None
    return tuple(seen)


def _found_in_all(text: str) -> ShellFindings | None:
    """What a text holds in each of the ways that it is read in."""
    joined = join_continued_lines(text)
    commands: list[DisplayedCommand] = []
    texts: list[str] = []
    for reading in dict.fromkeys((text, joined, expand_known_variables(joined, MAX_SCRIPT_BYTES))):
        found = _found(reading) if reading is not None else None
        fed = _texts(found) if found else None
        if found is None or fed is None:
            return None
        commands += found.commands
        texts += fed
    return ShellFindings(commands, texts)


def _texts(found: ShellFindings) -> list[str] | None:
    """The texts that a shell is given in what was found."""
    texts = list(found.texts)
    for command in found.commands:
        within = unwrap(command.words)
        if not within.complete and len(within.commands) > MOST_INSIDE:
            return None
        texts += within.texts
    return texts


def _found(text: str) -> ShellFindings | None:
    data = text.encode(errors="replace")
    if len(data) > MAX_SCRIPT_BYTES or b"\0" in data:
        return None
    if data.count(b"|") > MAX_PIPES or data.count(b"<<") > MAX_HEREDOCS:
        return None
    try:
        tree = parse_with_timeout(_bash(), data)
    except (ImportError, ValueError):  # not there, or grammar and parser are of different times
        return None
    return collect_commands(tree.root_node, data) if tree else None


@cache
def _bash() -> "Language":
    import tree_sitter_bash  # noqa: PLC0415  only for commands that are not proven
    from tree_sitter import Language  # noqa: PLC0415

    return Language(tree_sitter_bash.language())
