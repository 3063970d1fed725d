"""Tools that active skills allow."""

import re
from functools import lru_cache

import msgspec

from handrail.policy.parse import CD_RULE, CommandStep, parse_fact
from handrail.policy.rules.command_match import PatternError, Prefix, build_prefix, parse_command_pattern
from handrail.policy.rules.rulebook import build_exact_regex, split_pattern
from handrail.policy.verdict import SKILL, PartVerdict, deny
from handrail.policy.wrappers import has_git_global_options
from handrail.protocol.decisions import CommandFact, Facts, Narrowing, PathFact, ProcessFact
from handrail.protocol.tool_spec import ToolSpec

# § [policy.rules.skill_patterns] What a skill names in the brackets of a tool: `git status`, `git:*` for commands,
# § `docs/**` for paths.

_BELOW = "/\ue000/\ue000"
"""Stands for what may be in a folder, at any depth: only `**` matches it."""


class SkillCommand(msgspec.Struct, frozen=True):
    """Commands that a skill names: one as a whole, or all that begin with some words."""

    wanted: Prefix
    whole: bool

    def covers(self, words: tuple[str, ...]) -> bool:
        """Whether a simple command is one of them, word by word: `git statusx` and `./git status` are none."""
        if self.whole:
            return words == self.wanted.words
        # Options for git as a whole can make it run anything: who means them writes them into the pattern.
        return words[: len(self.wanted.words)] == self.wanted.words and not has_git_global_options(self.wanted, words)


@lru_cache(maxsize=1024)
def parse_skill_command(pattern: str) -> SkillCommand | None:
    """A pattern made ready; None where it cannot be read, and so covers nothing."""
    begins = pattern.endswith((":*", " *"))
    try:
        words = parse_command_pattern(pattern[:-2] if begins else pattern)
    except PatternError:
        return None
    return SkillCommand(build_prefix(words), whole=not begins)


class SkillPaths(msgspec.Struct, frozen=True):
    """Paths that a skill names."""

    expression: re.Pattern[str]

    def covers(self, path: str, *, folder: bool) -> bool:
        """Whether a file is one of them; of a folder, whether all in it may be."""
        if self.expression.fullmatch(path):
            return True
        return folder and self.expression.fullmatch(_BELOW[1:] if path == "." else path + _BELOW) is not None


@lru_cache(maxsize=256)
def parse_skill_paths(patterns: tuple[str, ...]) -> SkillPaths:
    """Globs, made ready."""
    return SkillPaths(
        re.compile("|".join(f"(?:{build_exact_regex(split_pattern(one))})" for one in patterns), re.DOTALL)
    )


# § [policy.judging.narrowing] What active skills leave of a tool: a call outside of that is refused, and one inside
# § is judged as ever.

_MAX_NAMED_PATTERNS = 6
"""Patterns that a reason names."""


def deny_outside_skills(spec: ToolSpec, narrowed: Narrowing, facts: Facts) -> list[PartVerdict]:
    """The parts of a call that no active skill speaks of, each refused; none where all are covered."""
    if facts.command is not None:
        return _command(facts.command, narrowed)
    if facts.process is not None:
        return _process(facts.process, narrowed)
    if not facts.paths and spec.category != "builtin":
        return [_refused(spec.name, narrowed, "what it does cannot be compared with that")]
    return [_refused(fact.path, narrowed) for fact in facts.paths if not _is_covered(fact, narrowed)]


def _command(fact: CommandFact, narrowed: Narrowing) -> list[PartVerdict]:
    command = parse_fact(fact)
    if command.unparsed is not None:
        why = f"this command {command.unparsed.reason}, so nobody can tell what it runs; write plain words"
        return [_refused(fact.text, narrowed, why)]
    covering = [one for pattern in narrowed.patterns if (one := parse_skill_command(pattern)) is not None]
    return [_refused(step.text, narrowed) for step in command.steps if not _is_named(step, covering)]


def _is_named(step: CommandStep, covering: list[SkillCommand]) -> bool:
    """A pattern speaks of a command and of what that starts as its words tell, not of files that it is sent into."""
    if step.has_unparsed_text or step.is_too_deep or step.writes:
        return False
    if step.classification.rule == CD_RULE:  # all it does is to say where the next one runs
        return True
    started = (step.words, *(inner.words for inner in step.inner))
    return all(any(one.covers(words) for one in covering) for words in started)


def _process(fact: ProcessFact, narrowed: Narrowing) -> list[PartVerdict]:
    """Who may run some commands only may look at what runs and end it; what a program is sent may be any other."""
    if fact.action != "write":
        return []
    return [_refused(f"write to {fact.command}", narrowed, "what the program makes of it is no such command")]


def _is_covered(fact: PathFact, narrowed: Narrowing) -> bool:
    paths = parse_skill_paths(narrowed.patterns)
    names = {fact.real or fact.outside or fact.path, fact.named or fact.real or fact.path}
    return all(paths.covers(name, folder=fact.kind == "directory") for name in names)


def _refused(subject: str, narrowed: Narrowing, why: str = "") -> PartVerdict:
    first, *others = narrowed.skills
    are = f"the active skills {' and '.join((first, *others))} are" if others else f"the active skill {first} is"
    named, more = narrowed.patterns[:_MAX_NAMED_PATTERNS], len(narrowed.patterns) - _MAX_NAMED_PATTERNS
    only = ", ".join(named) + (f" and {more} more" if more > 0 else "") or "nothing that can be read"
    return deny(subject, f"{SKILL}{first}", f"{are} for {only} only" + (f"; {why}" if why else ""))
