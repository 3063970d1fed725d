"""What a command is to the sandbox and the audit: the text for bash, whether it only looks, the programs it starts."""

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Literal

import msgspec

from handrail.policy.commands.reader import add_guard_options
from handrail.policy.commands.targets import to_base_name
from handrail.policy.commands.wrapped import unwrap
from handrail.policy.commands.wrappers import SHELLS, WRAPPERS
from handrail.policy.script import CommandStep, expand_inner_commands, parse_steps
from handrail.policy.secret_values import is_random_value, is_secret_value
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.rewrite import to_bash
from handrail.policy.shell.script import Script, Unparsed
from handrail.policy.tables.load import load_registry
from handrail.protocol.decision import DisplayedCommand

_UNREADABLE = ("bash",)
_PLAIN = re.compile(r"[A-Za-z0-9_.+\[-]{1,40}")
_NAMELESS = "…"
_OPTION = re.compile(r"(--[a-z][a-z-]{0,30}(?:=|\Z)|-[A-Za-z]{1,2}\Z|-[A-Za-z]=?)(.*)", re.DOTALL)
"""The name of an option, and what may be its value. A longer word behind one dash may be both: `-psecret`."""
_MAX_OUTLINE_CHARS = 300
_GIT_WORD = re.compile(r"\bgit\b")
_COMPARING = frozenset({"git status", "git diff"})
_KEEPING = frozenset(
    (*("add", "branch", "checkout", "cherry-pick", "commit", "diff", "log", "merge", "mv", "pull", "push", "reset"),
     "restore", "revert", "rm", "stash", "status", "switch", "tag")
)  # fmt: skip
"""What of git compares files with what it has of them, prints no file as it is, and runs nothing that it is told."""
_FILTERS = frozenset({"head", "tail", "wc", "sort", "uniq", "cut", "tr", "nl", "true", "echo", "cd"})
"""What reads no file but those that it names."""


class RunnableCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it is run."""

    bash_text: str
    """For bash: what was read in the command, written anew, with the guards of what is proven; where it cannot be read,
    the command as it is."""
    is_read_only: bool
    """Whether it only looks, whatever is there: nothing that it could change needs to be within its reach."""
    programs: tuple[str, ...]
    """What it starts, as far as that is known, by name and sub-command and without arguments: `git status`."""
    last: str | None
    """The program whose exit code is that of the whole, where that is certain."""
    compares: bool = False
    """Whether it compares files with what git has of them, and looks at no other file."""
    git: Literal["none", "alone", "among others"] = "none"
    """Whether it uses git, as far as its words tell, and whether something else of it may print files or run more."""


@lru_cache(maxsize=256)
def build_runnable(text: str, cwd: str, there: tuple[str, ...] = ()) -> RunnableCommand:
    """How a command is run that starts in a folder; `there` are the folders that a `cd` in it leads to for certain."""
    script, steps = lex(text), parse_steps(text, cwd, there)
    if isinstance(script, Unparsed):
        return RunnableCommand(bash_text=text, is_read_only=False, programs=_UNREADABLE, last=None, git=_git_in(text))
    if isinstance(steps, Unparsed):
        return RunnableCommand(
            bash_text=to_bash(script), is_read_only=False, programs=_UNREADABLE, last=None, git=_git_in(text)
        )
    named = [_named(step.words) for step in steps]
    inner = [_named(one.words) for step in steps for one in step.inner if one.words]
    proven = all(map(_only_looks, steps))
    return RunnableCommand(
        bash_text=to_bash(Script(tuple(map(add_guard_options, script.commands)), script.joins) if proven else script),
        is_read_only=proven,
        programs=tuple(dict.fromkeys([*named, *inner])),
        last=named[-1] if _decides(script) else None,
        compares=any(name in _COMPARING for name in named) and all(map(_compares_or_reads_nothing, steps, named)),
        git=_git_of(steps, named, inner),
    )


def _git_in(text: str) -> Literal["none", "among others"]:
    """Of a command that cannot be read."""
    return "among others" if _GIT_WORD.search(text) else "none"


def _git_of(
    steps: Sequence[CommandStep], named: list[str], inner: list[str]
) -> Literal["none", "alone", "among others"]:
    if not any(name.partition(" ")[0] == "git" for name in (*named, *inner)):
        return "none"
    pairs = zip(steps, named, strict=True)
    alone = all(_keeps_to_git(step) or _compares_or_reads_nothing(step, name) for step, name in pairs)
    return "alone" if alone else "among others"


def _keeps_to_git(step: CommandStep) -> bool:
    return step.words[0] == "git" and len(step.words) > 1 and step.words[1] in _KEEPING


def _compares_or_reads_nothing(step: CommandStep, name: str) -> bool:
    if name == "cd" and not step.redirected:
        return True
    return name in _COMPARING or (name in _FILTERS and not step.uses and not step.redirected)


def _only_looks(step: CommandStep) -> bool:
    return step.reading.effect == "proven" and not step.writes


def _decides(script: Script) -> bool:
    """Whether the last command runs for certain: nothing but pipes between it and the `;` before it."""
    return all(join == "|" for join in takewhile(lambda join: join != ";", reversed(script.joins)))


def _named(words: tuple[str, ...]) -> str:
    """A program by its own name; what is none is not told, since it may be anything."""
    program = to_base_name(words[0])
    if not _PLAIN.fullmatch(program):
        return _NAMELESS
    found = load_registry(program).find((program, *words[1:]))
    length = max(found.length, found.group_length, 1) if found else 1
    return " ".join((program, *words[1:length]))


def outline_command(text: str, seen: tuple[DisplayedCommand, ...] | None = None) -> str:
    """A command by its programs, sub-commands and option names; `…` stands for all else, which may be secret. The
    commands that a program starts follow it in brackets. `seen`: what the display parser found in the text."""
    script = lex(text)
    if isinstance(script, Unparsed):
        return _outline_unparsed(seen)
    parts: list[str] = []
    for command, join in zip(script.commands, (*script.joins, ""), strict=True):
        parts.append(_outline_nested(tuple([word.text for word in command.words]), seen))
        parts += [f"{one.operator} {_NAMELESS if one.target else ''}".rstrip() for one in command.redirections]
        parts.append(join)
    outline = " ".join(parts).rstrip()
    return outline if len(outline) <= _MAX_OUTLINE_CHARS else outline[: _MAX_OUTLINE_CHARS - 1] + _NAMELESS


def _outline_unparsed(seen: tuple[DisplayedCommand, ...] | None) -> str:
    found = (_outline(one.words[:1], is_certain=False) for one in expand_inner_commands(seen or ()) if one.words)
    programs = [name for name in dict.fromkeys(found) if name != _NAMELESS]
    return "command not parsed" + (f": {', '.join(programs)}" if programs else "")


def _outline_nested(words: tuple[str, ...], seen: tuple[DisplayedCommand, ...] | None) -> str:
    found = unwrap(words)
    inner = [_outline(_without_inner(one, found.commands), is_certain=False) for one in found.commands]
    if any(isinstance(lex(text), Unparsed) for text in found.texts):
        inner.append(_outline_unparsed(seen))
    outer = _outline(_without_inner(words, found.commands), is_certain=True)
    return f"{outer} ({'; '.join(inner)})" if inner else outer


def _without_inner(words: tuple[str, ...], commands: tuple[tuple[str, ...], ...]) -> tuple[str, ...]:
    """The words of a wrapper without those of the command that it starts."""
    lengths = [len(one) for one in commands if len(one) < len(words) and words[-len(one) :] == one]
    return words[: len(words) - max(lengths, default=0)]


def _outline(words: tuple[str, ...], *, is_certain: bool) -> str:
    """One simple command. Its first word is shown if it is the program for certain, or a program that is known."""
    name, program = _named(words), to_base_name(words[0])
    is_known = program in SHELLS or program in WRAPPERS or load_registry(program).find((program,)) is not None
    if is_secret_value(name) or is_random_value(name) or not (is_certain or is_known):
        name = _NAMELESS
    shown, ended = [name], False
    for word in words[len(name.split()) :]:
        ended = ended or word == "--"
        found = None if ended else _OPTION.match(word)
        option = found[1] + (found[2] and _NAMELESS) if found else _NAMELESS
        if option != _NAMELESS or shown[-1] != _NAMELESS:
            shown.append(option)
    return " ".join(shown)
