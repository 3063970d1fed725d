"""Walks the tree of a shell text and takes the simple commands out of it."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from handrail.code.shell_hidden import list_backtick_texts, list_substitution_texts
from handrail.code.shell_text import get_source, unquote_word
from handrail.protocol.decisions import DisplayedCommand

if TYPE_CHECKING:
    from tree_sitter import Node

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
