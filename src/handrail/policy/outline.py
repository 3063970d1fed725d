"""The outline of a command for the audit log, without the values of its options."""

import re
from functools import lru_cache

from handrail.policy.parse import UNNAMED, expand_inner_commands, name_program
from handrail.policy.programs.registry import load_registry
from handrail.policy.programs.spec import to_base_name
from handrail.policy.programs.wrapper_table import SHELLS, WRAPPERS
from handrail.policy.secrets import is_random_value, is_secret_value
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Unparsed
from handrail.policy.wrappers import unwrap
from handrail.protocol.decisions import DisplayedCommand

_OPTION = re.compile(r"(--[a-z][a-z-]{0,30}(?:=|\Z)|-[A-Za-z]{1,2}\Z|-[A-Za-z]=?)(.*)", re.DOTALL)
"""The name of an option, and a possible value. A longer word after one dash may be both: `-psecret`."""
_MAX_OUTLINE_CHARS = 300


@lru_cache(maxsize=32)  # agents repeat their commands
def outline_command(text: str, displayed: tuple[DisplayedCommand, ...] | None = None) -> str:
    """Outline a command. `…` stands for words that may be secret. Inner commands follow in brackets."""
    script = lex(text)
    if isinstance(script, Unparsed):
        return _outline_unparsed(displayed)
    parts: list[str] = []
    for command, join in zip(script.commands, (*script.joins, ""), strict=True):
        parts.append(_outline_with_inner(command.argv, displayed))
        parts += [f"{into.operator} {UNNAMED if into.target else ''}".rstrip() for into in command.redirections]
        parts.append(join)
    outline = " ".join(parts).rstrip()
    return outline if len(outline) <= _MAX_OUTLINE_CHARS else outline[: _MAX_OUTLINE_CHARS - 1] + UNNAMED


def _outline_unparsed(displayed: tuple[DisplayedCommand, ...] | None) -> str:
    outlines = (
        _outline(inner.words[:1], is_certain=False) for inner in expand_inner_commands(displayed or ()) if inner.words
    )
    programs = [name for name in dict.fromkeys(outlines) if name != UNNAMED]
    return "command not parsed" + (f": {', '.join(programs)}" if programs else "")


def _outline_with_inner(words: tuple[str, ...], displayed: tuple[DisplayedCommand, ...] | None) -> str:
    unwrapped = unwrap(words)
    inner = [_outline(_cut_inner(inner, unwrapped.commands), is_certain=False) for inner in unwrapped.commands]
    if any(isinstance(lex(text), Unparsed) for text in unwrapped.texts):
        inner.append(_outline_unparsed(displayed))
    outer = _outline(_cut_inner(words, unwrapped.commands), is_certain=True)
    return f"{outer} ({'; '.join(inner)})" if inner else outer


def _cut_inner(words: tuple[str, ...], commands: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The words of a wrapper without those of the command that it starts."""
    lengths = [len(inner) for inner in commands if len(inner) < len(words) and words[-len(inner) :] == inner]
    return words[: len(words) - max(lengths, default=0)]


def _outline(words: tuple[str, ...], *, is_certain: bool) -> str:
    """One simple command. Its first word is shown if it is certainly the program, or a known program."""
    name, program = name_program(words), to_base_name(words[0])
    is_known = program in SHELLS or program in WRAPPERS or load_registry(program).find((program,)) is not None
    if is_secret_value(name) or is_random_value(name) or not (is_certain or is_known):
        name = UNNAMED
    shown, ended = [name], False
    for word in words[len(name.split()) :]:
        ended = ended or word == "--"
        match = None if ended else _OPTION.match(word)
        option = match[1] + (match[2] and UNNAMED) if match else UNNAMED
        if option != UNNAMED or shown[-1] != UNNAMED:
            shown.append(option)
    return " ".join(shown)
