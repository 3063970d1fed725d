"""What a skill names in the brackets of a tool: `git status`, `git:*` for commands, `docs/**` for paths."""

import re
from functools import lru_cache

import msgspec

from handrail.policy.rules.code import has_git_global_options
from handrail.policy.rules.globs import build_exact_regex, split_pattern
from handrail.policy.rules.patterns import PatternError, parse_command_pattern
from handrail.policy.rules.prefix import Prefix, build_prefix

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
