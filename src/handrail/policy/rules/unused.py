"""Rules that never decide anything: what they are about cannot be, is never done, or is decided by another rule."""

from collections.abc import Iterator

from handrail.policy.commands.denies import find_builtin_deny
from handrail.policy.names import find_protection
from handrail.policy.rules.covering import is_wider_rule
from handrail.policy.rules.globs import split_pattern
from handrail.policy.rules.patterns import parse_command_pattern
from handrail.policy.rules.rule import SAYS, STRICTEST_FIRST, Rule, describe_rule, rank_rule

_FILLINGS = ("", "x", "example", "x.pub")
"""What a wildcard may match so that a name is no credential after all, if anything does."""


def list_unused_rules(rules: list[Rule]) -> Iterator[tuple[Rule, str]]:
    """Those of some sound rules that never decide, each with the reason in words."""
    for at, rule in enumerate(rules):
        never = _never_done(rule) if rule.tool == "exec" else _never_there(rule)
        why = never or _shadowed(rule, at, rules)
        if why:
            yield rule, why


def _never_done(rule: Rule) -> str:
    found = find_builtin_deny(parse_command_pattern(rule.pattern), literal=True)
    return f"can never decide: it is always denied ({found.rule}): {found.reason}" if found else ""


def _never_there(rule: Rule) -> str:
    if ".." in split_pattern(rule.pattern) or rule.pattern.startswith("~"):
        return "can never match: paths are named from the root they are in, without .. and ~"
    secret = all(find_protection(rule.pattern.replace("*", filling)) == "credential" for filling in _FILLINGS)
    return "can never decide: credentials are always denied (fs.secret)" if secret else ""


def _shadowed(rule: Rule, at: int, rules: list[Rule]) -> str:
    """By the strictest rule that covers it, whatever the layer; of two that say the same the later one is told."""
    for n, other in sorted(enumerate(rules), key=_order):
        if STRICTEST_FIRST.index(other.verdict) > STRICTEST_FIRST.index(rule.verdict):
            break
        if n != at and is_wider_rule(other, rule) and _goes_first((n, other), (at, rule)):
            return f"can never decide: {describe_rule(other)} {SAYS[other.verdict]} {other.pattern}"
    return ""


def _order(numbered: tuple[int, Rule]) -> tuple[int, int, int]:
    at, rule = numbered
    return *rank_rule(rule), at


def _goes_first(other: tuple[int, Rule], one: tuple[int, Rule]) -> bool:
    """Whether the other rule makes this one useless, and not the other way round."""
    return other[1].verdict != one[1].verdict or _order(other) < _order(one) or not is_wider_rule(one[1], other[1])
