"""Whether one rule is about everything that another is about: the other then decides nothing, if it is no stricter."""

from functools import lru_cache

from handrail.policy.rules.book import CommandRule, build_command_rule, normalize_program_name
from handrail.policy.rules.globs import split_pattern
from handrail.policy.rules.operands import is_inside_by_spelling
from handrail.policy.rules.path_rules import EVERY_TOOL, ToolRules, group_by_tool
from handrail.policy.rules.prefix import is_about
from handrail.policy.rules.rule import Rule

_ANY = "\ue000"
"""Stands for what a wildcard matches: no name has it, so only a wildcard can match it."""
_SIZES = (0, 1, 9)
"""What covers wildcards that match so little, and so much, covers all between."""


def is_wider_rule(wide: Rule, narrow: Rule) -> bool:
    """Whether `wide` is about all that `narrow` is about; only words and patterns are looked at."""
    if "exec" in {wide.tool, narrow.tool}:
        return wide.tool == narrow.tool and _covers_command(build_command_rule(wide), build_command_rule(narrow))
    return wide.tool in {narrow.tool, EVERY_TOOL} and _covers_paths(wide, narrow)


def _covers_command(wide: CommandRule, narrow: CommandRule) -> bool:
    words = narrow.wanted.words
    if wide.rule.verdict != "allow":
        return normalize_program_name(wide.wanted.words[0]) == normalize_program_name(words[0]) and is_about(
            wide.wanted, words
        )
    if narrow.rule.any_args and not wide.rule.any_args and not narrow.verbatim:
        return False
    return wide.allows(words, is_inside_by_spelling)


def _covers_paths(wide: Rule, narrow: Rule) -> bool:
    rules = _made_ready(wide)
    find = rules.allowing if wide.verdict == "allow" else rules.strict
    return all(find(path) for path in _samples(narrow))


@lru_cache(maxsize=1024)
def _made_ready(rule: Rule) -> ToolRules:
    return group_by_tool([rule])[rule.tool]


def _samples(rule: Rule) -> list[str]:
    parts = split_pattern(rule.pattern)
    if rule.verdict != "allow":  # such a rule is about the folder too, and about all below whatever else it names
        while parts and parts[-1] == "**":
            parts = parts[:-1]
    return ["/".join(_sample(parts, size)) for size in _SIZES]


def _sample(parts: tuple[str, ...], size: int) -> list[str]:
    names: list[str] = []
    for at, part in enumerate(parts):
        if part == "**":
            names += [_ANY] * (size if at < len(parts) - 1 else max(size, 1))
        else:
            names.append(part.replace("?", _ANY).replace("*", _ANY * size) or (_ANY if part else ""))
    return names
