"""Denies the parts of a call that the active skills do not cover."""

import re
from functools import lru_cache

import msgspec

from handrail.policy.config import SKILL
from handrail.policy.parse import CD_RULE, CommandStep, parse_fact
from handrail.policy.rules.command_match import PatternError, Prefix, build_prefix, parse_command_pattern
from handrail.policy.rules.rulebook import build_exact_regex, split_pattern
from handrail.policy.verdict import PartVerdict, deny
from handrail.policy.wrappers import has_git_global_options
from handrail.protocol.decisions import CommandFact, Facts, Narrowing, PathFact
from handrail.protocol.tool_spec import ToolSpec

_BELOW = "/\ue000/\ue000"
"""Stands for any path below a folder. Only `**` matches it."""
_MAX_NAMED_PATTERNS = 6


def deny_outside_skills(spec: ToolSpec, narrowed: Narrowing, facts: Facts) -> list[PartVerdict]:
    """The parts of a call that no active skill covers, each denied. Covered parts are judged as usual."""
    if facts.command is not None:
        return _deny_steps(facts.command, narrowed)
    if facts.process is not None:
        if facts.process.action != "write":
            return []  # any skill may look at processes and end them
        return [_deny(f"write to {facts.process.command}", narrowed, "the program would not run such a command")]
    if not facts.paths and spec.category != "builtin":
        return [_deny(spec.name, narrowed, "it cannot be compared with the allowed commands")]
    return [_deny(fact.path, narrowed) for fact in facts.paths if not _covers_path(narrowed, fact)]


def _deny(subject: str, narrowed: Narrowing, why: str = "") -> PartVerdict:
    first, *others = narrowed.skills
    are = f"the active skills {' and '.join((first, *others))} are" if others else f"the active skill {first} is"
    patterns, more = narrowed.patterns[:_MAX_NAMED_PATTERNS], len(narrowed.patterns) - _MAX_NAMED_PATTERNS
    only = ", ".join(patterns) + (f" and {more} more" if more > 0 else "") or "nothing readable"
    return deny(subject, f"{SKILL}{first}", f"{are} for {only} only" + (f"; {why}" if why else ""))


def _deny_steps(fact: CommandFact, narrowed: Narrowing) -> list[PartVerdict]:
    command = parse_fact(fact)
    if command.unparsed is not None:
        why = f"this command {command.unparsed.reason}, so the program is unknown; write plain words"
        return [_deny(fact.text, narrowed, why)]
    commands = list(filter(None, map(parse_skill_command, narrowed.patterns)))
    return [_deny(step.text, narrowed) for step in command.steps if not _covers_step(commands, step)]


class _SkillCommand(msgspec.Struct, frozen=True):
    """Commands that a skill names: exactly one (`git status`), or all with a prefix (`git:*`)."""

    prefix: Prefix
    exact: bool

    def covers(self, words: tuple[str, ...]) -> bool:
        """Compares whole words: `git statusx` and `./git status` are other commands."""
        if self.exact:
            return words == self.prefix.words
        # Global options of git can make it run anything, so a pattern must name them.
        return words[: len(self.prefix.words)] == self.prefix.words and not has_git_global_options(self.prefix, words)


@lru_cache(maxsize=1024)
def parse_skill_command(pattern: str) -> _SkillCommand | None:
    """None if the pattern cannot be parsed. It then covers nothing."""
    is_prefix = pattern.endswith((":*", " *"))
    try:
        words = parse_command_pattern(pattern[:-2] if is_prefix else pattern)
    except PatternError:
        return None
    return _SkillCommand(build_prefix(words), exact=not is_prefix)


def _covers_step(commands: list[_SkillCommand], step: CommandStep) -> bool:
    """A pattern covers a command and the commands it starts. It does not cover redirections into files."""
    if step.has_unparsed_text or step.is_too_deep or step.writes:
        return False
    if step.classification.rule == CD_RULE:  # `cd` only sets the folder of the next step
        return True
    command_words = (step.words, *(inner.words for inner in step.inner))
    return all(any(command.covers(words) for command in commands) for words in command_words)


def _covers_path(narrowed: Narrowing, fact: PathFact) -> bool:
    """A folder is covered if a pattern matches it or everything below it."""
    expression = _compile_globs(narrowed.patterns)
    for name in {fact.real or fact.outside or fact.path, fact.named or fact.real or fact.path}:
        below = _BELOW[1:] if name == "." else name + _BELOW
        is_covered = expression.fullmatch(name) or (fact.kind == "directory" and expression.fullmatch(below))
        if not is_covered:
            return False
    return True


@lru_cache(maxsize=256)
def _compile_globs(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{build_exact_regex(split_pattern(pattern))})" for pattern in patterns), re.DOTALL)
