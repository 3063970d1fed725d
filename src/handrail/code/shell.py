"""Lists the commands that a complex shell command would run, as far as tree-sitter sees them.

The list makes policy stricter. It never proves a command safe: the grammar is not bash, so commands may be missing.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from handrail.code.treesitter import parse_with_timeout
from handrail.policy.wrappers import MAX_INNER_COMMANDS, unwrap
from handrail.protocol.decisions import DisplayedCommand

if TYPE_CHECKING:
    from tree_sitter import Language, Node

MAX_SCRIPT_BYTES = 128 << 10
_MAX_DEPTH = 5
_MAX_PIPES = 1_000
"""In one text. The parser's memory grows with their square: 4,000 take 240 MB."""
_MAX_HEREDOCS = 1_000
_MAX_NODES = 50_000
_MAX_COMMANDS = 2_000
_MAX_TEXTS = 100
"""Texts for shells in one command: of `sh -c`, of `eval`, of their input."""
_MAX_TEXT_CHARS = 1 << 20
"""Of all commands together. A nested command counts twice."""

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
"""A first word that runs the output of its substitutions, or its own value."""
# Words that the grammar takes for a program if it does not understand the text before them.
_LEADING = frozenset(("then", "else", "elif", "do", "if", "while", "until", "{", "!", "coproc"))
_SPEAKING = frozenset(("echo", "printf"))
_BACKTICK = re.compile(r"(?<!\\)`")
_OPENING = re.compile(r"\$\(")
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
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_ANSI_C = re.compile(r"\\(?:x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})|([0-7]{1,3})|(.))", re.DOTALL)
_ANSI_C_SIGNS = {"n": "\n", "t": "\t", "r": "\r", "e": "\x1b", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


class _ShellFindings(NamedTuple):
    commands: list[DisplayedCommand]
    texts: list[str]
    """Texts that a shell gets: `sh <<EOF`, `echo … | sh`."""


class _NodeContext(NamedTuple):
    """A node with its surroundings."""

    node: "Node"
    writes: tuple[str, ...] = ()
    """Files that its redirections write to."""
    redirects: str = ""
    """The source of its redirections."""
    function: str = ""
    forks: bool = False
    """Whether it is in a pipeline or in the background, inside of the function."""
    into_shell: bool = False


def find_shell_commands(text: str) -> tuple[DisplayedCommand, ...] | None:
    """Every simple command in a text, and in the texts that it gives to a shell. None: not known."""
    seen: dict[DisplayedCommand, None] = {}
    known, queue = {text}, [(text, 0)]
    for one, depth in queue:
        found = _search_variants(one)
        if found is None:
            return None
        seen |= dict.fromkeys(found.commands)
        if len(seen) > _MAX_COMMANDS:
            return None
        new = [inner for inner in dict.fromkeys(found.texts) if inner not in known]
        known.update(new)
        queue += [(inner, depth + 1) for inner in new]
        if new and (depth == _MAX_DEPTH or len(known) > _MAX_TEXTS):
            return None
    return tuple(seen)


def _search_variants(text: str) -> _ShellFindings | None:
    """Search the text as it is, with joined lines, and with expanded variables."""
    joined = _CONTINUED.sub(r"\1", text)  # bash joins lines everywhere but in single quotes
    commands: list[DisplayedCommand] = []
    texts: list[str] = []
    for variant in dict.fromkeys((text, joined, _expand_known_variables(joined, MAX_SCRIPT_BYTES))):
        found = _parse(variant) if variant is not None else None
        if found is None:
            return None
        commands += found.commands
        texts += found.texts
        for command in found.commands:
            inner = unwrap(command.words)
            if not inner.complete and len(inner.commands) > MAX_INNER_COMMANDS:
                return None
            texts += inner.texts
    return _ShellFindings(commands, texts)


def _parse(text: str) -> _ShellFindings | None:
    data = text.encode(errors="replace")
    if len(data) > MAX_SCRIPT_BYTES or b"\0" in data:
        return None
    if data.count(b"|") > _MAX_PIPES or data.count(b"<<") > _MAX_HEREDOCS:
        return None
    try:
        tree = parse_with_timeout(_bash(), data)
    except (ImportError, ValueError):  # not installed, or grammar and parser do not fit
        return None
    return _collect_commands(tree.root_node, data) if tree else None


@cache
def _bash() -> "Language":
    import tree_sitter_bash  # noqa: PLC0415  only for commands that are not proven
    from tree_sitter import Language  # noqa: PLC0415

    return Language(tree_sitter_bash.language())


# The tree.


def _collect_commands(root: "Node", data: bytes) -> _ShellFindings | None:
    """Collect everything below a node, without recursion. None if it is too much."""
    walk = _ShellTreeWalk(data)
    stack, count = [_NodeContext(root)], 0
    while stack:
        stack += list(walk.visit(stack.pop()))[::-1]
        count += 1
        if count > _MAX_NODES or len(walk.found) > _MAX_COMMANDS or walk.size > _MAX_TEXT_CHARS:
            return None
    return _ShellFindings(walk.commands(), walk.texts)


class _ShellTreeWalk:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.found: list[tuple[DisplayedCommand, _NodeContext]] = []
        self.texts: list[str] = []
        self.size = 0
        self.calls: dict[str, set[str]] = {}
        """The programs that each function calls."""

    def visit(self, place: _NodeContext) -> Iterator[_NodeContext]:
        """Record a node, and yield the nodes to visit next."""
        node = place.node
        if node.type == "redirected_statement":
            yield from self.visit_redirected(place)
            return
        if node.type in _COMMANDS:
            place = place._replace(into_shell=place.into_shell or self.runs_text(node))
            self.record_command(place)
        elif node.type == "ERROR":
            self.record_stray_words(place)
        elif node.type == "function_definition":
            yield from self.visit_function(place)
            return
        elif node.type == "pipeline":
            place = place._replace(forks=True, into_shell=bool(_INTO_SHELL.search(self.text(node))))
        elif node.type in {"command_substitution", "expansion"}:
            self.record_backticks(node)
        elif node.type == "heredoc_redirect":
            self.record_heredoc(node)
        yield from self.list_children(place)

    def list_children(self, place: _NodeContext) -> Iterator[_NodeContext]:
        children = place.node.children
        for number, child in enumerate(children):
            if child.child_count:
                behind = children[number + 1].type if number + 1 < len(children) else ""
                yield place._replace(node=child, writes=(), redirects="", forks=place.forks or behind == "&")

    def visit_redirected(self, place: _NodeContext) -> Iterator[_NodeContext]:
        """Visit a statement with redirections. They belong to its command if that is a simple one."""
        body = next((child for child in place.node.children if child.type not in _REDIRECTS), None)
        writes = tuple(self.writes(place.node))
        is_simple = body is not None and body.type in _COMMANDS
        place = place._replace(into_shell=place.into_shell or (body is not None and self.runs_text(body)))
        shown = " ".join(self.first_line(child) for child in place.node.children if child.type in _REDIRECTS)
        if writes and not is_simple:
            self.add((), place._replace(writes=writes), shown)
        self.record_shell_input(place.node, place)
        for inner in self.list_children(place):
            is_body = is_simple and inner.node == body
            yield inner._replace(writes=writes, redirects=f" {shown}") if is_body else inner

    def visit_function(self, place: _NodeContext) -> Iterator[_NodeContext]:
        name = next((self.text(child) for child in place.node.children if child.type == "word"), "")
        writes = tuple(self.writes(place.node))
        if writes:
            self.add((), place._replace(writes=writes), self.first_line(place.node))
        for inner in self.list_children(place):
            yield inner._replace(function=name, forks=False)

    def record_command(self, place: _NodeContext) -> None:
        """Record a simple command."""
        node = place.node
        words = self.words(node)
        while words and words[0] in _LEADING:
            named = words[0] == "coproc" and words[2:3] == ["{"]
            del words[: 2 if named else 1]
        writes = (*place.writes, *self.writes(node))
        self.add(tuple(words), place._replace(writes=writes), self.text(node) + place.redirects)
        if place.into_shell and words and words[0] in _SPEAKING:
            self.texts.append(" ".join(words[1:]))
        self.record_shell_input(node, place)

    def runs_text(self, node: "Node") -> bool:
        """Whether a simple command runs the output of other commands."""
        words = self.words(node) if node.type == "command" else []
        return bool(words) and _RUNS_TEXT.fullmatch(words[0]) is not None

    def words(self, node: "Node") -> list[str]:
        if node.type == "test_command":
            return self.text(node).split()
        if node.type != "command":  # `export`, `unset`: their names are unnamed nodes
            return [self.word(child) for child in node.children if child.type in _WORDS or not child.is_named]
        # Assignments before the program are for its environment.
        wanted = _WORDS - {"variable_assignment"}
        return [self.word(child) for child in node.children if child.type in wanted and not child.is_missing]

    def record_stray_words(self, place: _NodeContext) -> None:
        """Record words that the parser did not understand. Each row of them may be a command."""
        row: list[Node] = []
        for child in [*place.node.children, None]:
            if child is not None and child.type in _WORDS:
                row.append(child)
            elif row:
                self.add(tuple(self.word(word) for word in row), place, self.first_line(place.node))
                row = []

    def record_backticks(self, node: "Node") -> None:
        """Record nested substitutions, and those in `${ }`. The grammar does not see all of them."""
        text = self.text(node)
        self.size += len(text)  # nested texts count again
        if node.type == "expansion" or text.count("`") > 2:
            self.texts += _list_backtick_texts(text)

    def record_heredoc(self, node: "Node") -> None:
        """Record the substitutions in a here-document, unless its delimiter is quoted."""
        start = next((self.text(child) for child in node.children if child.type == "heredoc_start"), "")
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if body is not None and not set(start) & set("'\"\\"):
            self.texts += _list_backtick_texts(self.text(body))
            if not body.named_child_count:
                self.texts += _list_substitution_texts(self.text(body), _MAX_TEXTS)

    def record_shell_input(self, node: "Node", place: _NodeContext) -> None:
        """Record the input of a shell."""
        for redirect in node.children:
            if redirect.type == "heredoc_redirect":
                body = next((child for child in redirect.children if child.type == "heredoc_body"), redirect)
                before = self.data[node.start_byte : body.start_byte].decode(errors="replace")
                if body is not redirect and _IS_SHELL.search(before):
                    self.texts.append(self.text(body))
            elif redirect.type == "herestring_redirect" and (place.into_shell or _IS_SHELL.search(self.text(node))):
                self.texts += [self.word(child) for child in redirect.children if child.type in _WORDS]

    def writes(self, node: "Node") -> Iterator[str]:
        """The files that the redirections of a node write to."""
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
        """The commands, with those marked that start their own function again."""
        return [
            DisplayedCommand(
                words=one.words, text=one.text, writes=one.writes, forks_itself=self.is_recursive(one, place)
            )
            for one, place in self.found
        ]

    def is_recursive(self, command: DisplayedCommand, place: _NodeContext) -> bool:
        """Whether a forking call leads back to its own function."""
        if not (place.forks and place.function and command.words):
            return False
        reached, queue = {command.words[0]}, [command.words[0]]
        while queue:
            new = self.calls.get(queue.pop(), set()) - reached
            reached |= new
            queue += new
        return place.function in reached

    def first_line(self, node: "Node") -> str:
        return self.text(node).partition("\n")[0]

    def text(self, node: "Node") -> str:
        return _get_source(node, self.data)

    def word(self, node: "Node") -> str:
        return _unquote_word(node, self.data)


# Texts that the grammar does not see. Signs alone find rather too much than too little.


def _list_backtick_texts(text: str) -> list[str]:
    """The texts between backticks, with inner backticks unescaped."""
    return [piece.replace("\\`", "`") for piece in _BACKTICK.split(text)[1::2]]


def _list_substitution_texts(text: str, most: int) -> list[str]:
    """The texts in `$( )`, by counting parentheses without regard to quotes. At most `most` + 1."""
    return [text[start.end() : _find_closing(text, start.end())] for start in islice(_OPENING.finditer(text), most + 1)]


def _find_closing(text: str, start: int) -> int:
    depth = 1
    for sign in _PARENTHESIS.finditer(text, start):
        depth += 1 if sign[0] == "(" else -1
        if depth == 0:
            return sign.start()
    return len(text)


def _expand_known_variables(text: str, most: int) -> str | None:
    """Replace variables by the values in the text, and expand braces. None if that gets too long.

    A variable with several values becomes all of them. Quotes do not matter, since this text never runs.
    """
    if "$" not in text and "{" not in text:
        return text
    known = _collect_values(text)
    if sum(len(values) for values in known.values()) * text.count("$") > most:
        return None
    expanded = _USED.sub(lambda use: _replace_variable(use, known), _BLANK.sub(" ", text))
    for _ in range(_MAX_NESTED_BRACES):
        expanded = _BRACES.sub(_expand_braces, expanded)
    return expanded


def _collect_values(text: str) -> dict[str, str]:
    """The values of each variable, separated by blanks."""
    known: dict[str, str] = {}
    for name, *spellings in _ASSIGNED.findall(text):
        known[name] = f"{known.get(name, '')} {' '.join(spellings).strip()}".strip()
    for name, values in _LOOPED.findall(text):
        known[name] = f"{known.get(name, '')} {values}".strip()
    for values in _SET.findall(text):
        known["@"] = known["*"] = values
    return known


def _replace_variable(use: re.Match[str], known: Mapping[str, str]) -> str:
    values = known.get(use["plain"] or use["name"], use["default"] or "").replace('"', "").replace("'", "")
    return " ".join(f"{value}{use['rest']}" for value in values.split()) if values else use[0]


def _expand_braces(braces: re.Match[str]) -> str:
    before, inside, behind = braces.groups()
    return " ".join(f"{before}{one}{behind}" for one in inside.split(",")) if "," in inside else braces[0]


# Words: quotes are removed, expansions stay as they are written.


def _get_source(node: "Node", data: bytes) -> str:
    return data[node.start_byte : node.end_byte].decode(errors="replace")


def _unquote_word(node: "Node", data: bytes) -> str:
    match node.type:
        case "command_name" | "concatenation":
            return "".join(_unquote_word(child, data) for child in node.children)
        case "raw_string":
            return _get_source(node, data)[1:-1]
        case "ansi_c_string":
            return _ANSI_C.sub(_decode_ansi_c, _get_source(node, data)[2:-1]).partition("\0")[0]  # as bash does
        case "string" | "translated_string":
            return _ESCAPED_IN_QUOTES.sub(r"\1", _get_source(node, data).removeprefix("$")[1:-1])
        case "word":
            return _ESCAPED.sub(r"\1", _get_source(node, data))
        case _:
            return _get_source(node, data)


def _decode_ansi_c(match: re.Match[str]) -> str:
    *codes, octal, sign = match.groups()
    if sign is not None:
        return _ANSI_C_SIGNS.get(sign, sign)
    code = int(octal, 8) if octal is not None else next(int(code, 16) for code in codes if code is not None)
    return chr(code) if code < 0xD800 or 0xDFFF < code <= 0x10FFFF else "\ufffd"
