"""What a complex command would run, as far as tree-sitter sees: to show it and to be stricter, never to prove it safe.

The grammar is not bash: it takes a carriage return for a blank and knows nothing of aliases. Where it is wrong, a
command may be missing here, or be one too many.
"""

from functools import cache
from typing import TYPE_CHECKING

from handrail.code.feeding import parse_with_timeout
from handrail.code.shell_hidden import expand_known_variables
from handrail.code.shell_text import join_continued_lines
from handrail.code.shell_tree import MAX_COMMANDS, MAX_TEXTS, ShellFindings, collect_commands
from handrail.policy.wrappers import MAX_INNER_COMMANDS as MOST_INSIDE
from handrail.policy.wrappers import unwrap
from handrail.protocol.decisions import DisplayedCommand

if TYPE_CHECKING:
    from tree_sitter import Language

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
