"""Rules about paths, made ready: those of one tool in one expression each for what is stricter and what allows."""

import re
from functools import lru_cache

import msgspec

from handrail.policy.names import find_protection, normalize_name
from handrail.policy.rules.foreign_names import is_mcp_name_match, is_mcp_tool_excluded
from handrail.policy.rules.globs import build_covering_regex, build_exact_regex, split_pattern
from handrail.policy.rules.rule import Rule

EVERY_TOOL = "*"


class Alternatives(msgspec.Struct, frozen=True):
    """Rules in order, and one expression over them all; the number of the group that matched tells which."""

    rules: tuple[Rule, ...]
    expression: re.Pattern[str]

    def find(self, path: str) -> Rule | None:
        """The first rule about a path."""
        found = self.expression.fullmatch(path)
        return None if found is None or found.lastindex is None else self.rules[found.lastindex - 1]


class ToolRules(msgspec.Struct, frozen=True):
    """The rules about the paths of one tool."""

    stricter: Alternatives
    allow: Alternatives
    allow_protected: Alternatives
    """Those of the allow rules that name a protected file or folder themselves: no wildcard is meant to reach one."""

    def strict(self, path: str) -> Rule | None:
        """The deny or ask rule about a path, in any spelling, or about a folder that it is in."""
        return self.stricter.find(normalize_name(path))

    def allowing(self, path: str) -> Rule | None:
        """The allow rule about just this path."""
        return (self.allow_protected if find_protection(path) else self.allow).find(path)


def group_by_tool(rules: list[Rule]) -> dict[str, ToolRules]:
    """The rules about paths, strictest first, for each tool that one of them names."""
    tools = {rule.tool for rule in rules}
    return {tool: _tool_rules([rule for rule in rules if rule.tool in {tool, EVERY_TOOL}]) for tool in tools}


@lru_cache(maxsize=256)
def build_mcp_rules(rules: tuple[Rule, ...], tool: str) -> ToolRules:
    """Those of some rules, strictest first, that are about one tool of another server."""
    return _tool_rules([rule for rule in rules if rule.tool == EVERY_TOOL or is_about_mcp_tool(rule, tool)])


def is_about_mcp_tool(rule: Rule, tool: str) -> bool:
    """Whether a rule names the tool, or all of its server. One that does not allow is about any spelling in upper and
    lower case."""
    return is_mcp_name_match(rule.tool, tool) if rule.verdict == "allow" else is_mcp_tool_excluded((rule.tool,), tool)


def build_path_regex(rule: Rule) -> str:
    """What the paths match that a rule is about; for a deny or ask rule they are folded before."""
    if rule.verdict == "allow":
        return build_exact_regex(split_pattern(rule.pattern))
    return build_covering_regex(split_pattern(normalize_name(rule.pattern)))


def _tool_rules(rules: list[Rule]) -> ToolRules:
    allow = [rule for rule in rules if rule.verdict == "allow"]
    guarded = [rule for rule in allow if find_protection(rule.pattern)]
    stricter = [rule for rule in rules if rule.verdict != "allow"]
    return ToolRules(_alternatives(stricter), _alternatives(allow), _alternatives(guarded))


def _alternatives(rules: list[Rule]) -> Alternatives:
    either = "|".join(f"({build_path_regex(rule)})" for rule in rules)
    return Alternatives(tuple(rules), re.compile(either, re.DOTALL))
