"""What a command is to the sandbox: the text that bash is given, whether it only looks, the programs it starts."""

import re
from functools import lru_cache
from itertools import takewhile

import msgspec

from handrail.policy.commands.reader import with_guards
from handrail.policy.commands.targets import base_name
from handrail.policy.script import Step, read_script
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.rewrite import rewrite
from handrail.policy.shell.script import Outside, Script
from handrail.policy.tables.load import known

_UNREADABLE = ("bash",)
_PLAIN = re.compile(r"[A-Za-z0-9_.+\[-]{1,40}")
_NAMELESS = "…"
_COMPARING = frozenset({"git status", "git diff"})
_FILTERS = frozenset({"head", "tail", "wc", "sort", "uniq", "cut", "tr", "nl", "true", "echo", "cd"})
"""What reads no file but those that it names."""


class Runnable(msgspec.Struct, frozen=True, kw_only=True):
    """A command as it is run."""

    text: str
    """For bash: what was read in the command, written anew, with the guards of what is proven; where it cannot be read,
    the command as it is."""
    proven: bool
    """Whether it only looks, whatever is there: nothing that it could change needs to be within its reach."""
    programs: tuple[str, ...]
    """What it starts, as far as that is known, by name and sub-command and without arguments: `git status`."""
    last: str | None
    """The program whose exit code is that of the whole, where that is certain."""
    compares: bool = False
    """Whether it compares files with what git has of them, and looks at no other file."""


@lru_cache(maxsize=256)
def runnable(text: str, cwd: str, there: tuple[str, ...] = ()) -> Runnable:
    """How a command is run that starts in a folder; `there` are the folders that a `cd` in it leads to for certain."""
    script, steps = lex(text), read_script(text, cwd, there)
    if isinstance(script, Outside):
        return Runnable(text=text, proven=False, programs=_UNREADABLE, last=None)
    if isinstance(steps, Outside):
        return Runnable(text=rewrite(script), proven=False, programs=_UNREADABLE, last=None)
    named = [_named(step.words) for step in steps]
    inner = [_named(one.words) for step in steps for one in step.inner if one.words]
    proven = all(map(_only_looks, steps))
    return Runnable(
        text=rewrite(Script(tuple(map(with_guards, script.commands)), script.joins) if proven else script),
        proven=proven,
        programs=tuple(dict.fromkeys([*named, *inner])),
        last=named[-1] if _decides(script) else None,
        compares=any(name in _COMPARING for name in named) and all(map(_compares_or_reads_nothing, steps, named)),
    )


def _compares_or_reads_nothing(step: Step, name: str) -> bool:
    return name in _COMPARING or (name in _FILTERS and not step.uses and not step.redirected)


def _only_looks(step: Step) -> bool:
    return step.reading.effect == "proven" and not step.writes


def _decides(script: Script) -> bool:
    """Whether the last command runs for certain: nothing but pipes between it and the `;` before it."""
    return all(join == "|" for join in takewhile(lambda join: join != ";", reversed(script.joins)))


def _named(words: tuple[str, ...]) -> str:
    """A program by its own name; what is none is not told, since it may be anything."""
    program = base_name(words[0])
    if not _PLAIN.fullmatch(program):
        return _NAMELESS
    found = known(program).find((program, *words[1:]))
    length = max(found.length, found.group_length, 1) if found else 1
    return " ".join((program, *words[1:length]))
