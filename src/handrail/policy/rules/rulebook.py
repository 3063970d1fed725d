"""Compiled rules, looked up by command or by path."""

import re
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from handrail.policy.config import (
    MCP_PREFIX,
    Rule,
    is_mcp_name_match,
    is_mcp_tool_excluded,
    rank_rule,
)
from handrail.policy.names import find_protection, normalize_name
from handrail.policy.rules.command_match import (
    Inside,
    Prefix,
    build_prefix,
    is_about,
    is_continuation,
    parse_command_pattern,
)
from handrail.policy.wrappers import can_run_code, has_git_global_options, list_starters

EVERY_TOOL = "*"


class CommandRule(msgspec.Struct, frozen=True):
    """A rule about commands, with the words of its pattern."""

    rule: Rule
    prefix: Prefix
    verbatim: bool
    """The command runs other code, so an allow rule covers exactly the command it names."""
    starters: tuple[Prefix, ...] = ()
    """Longer prefixes that start other programs. An allow rule must name these itself."""

    def allows(self, words: tuple[str, ...], inside: Inside) -> bool:
        """Whether an allow rule covers a command."""
        if self.verbatim:
            return words == self.prefix.words
        if has_git_global_options(self.prefix, words) or any(is_about(starter, words) for starter in self.starters):
            return False
        if self.rule.any_args:
            return words[: len(self.prefix.words)] == self.prefix.words
        return is_continuation(self.prefix, words, inside)


class _PathMatcher(msgspec.Struct, frozen=True):
    """Path rules in one regular expression. The number of the matching group is the number of the rule."""

    rules: tuple[Rule, ...]
    expression: re.Pattern[str]

    def find(self, path: str) -> Rule | None:
        match = self.expression.fullmatch(path)
        return None if match is None or match.lastindex is None else self.rules[match.lastindex - 1]


class ToolRules(msgspec.Struct, frozen=True):
    """The rules about the paths of one tool."""

    strict: _PathMatcher
    allow: _PathMatcher
    allow_protected: _PathMatcher
    """Allow rules that name a protected file or folder themselves. A wildcard never reaches one."""

    def find_strict(self, path: str) -> Rule | None:
        """The deny or ask rule about a path in any spelling, or about a folder above it."""
        return self.strict.find(normalize_name(path))

    def find_allowing(self, path: str) -> Rule | None:
        """The allow rule about exactly this path."""
        return (self.allow_protected if find_protection(path) else self.allow).find(path)


class RuleBook(msgspec.Struct, frozen=True):
    """All rules, compiled. If several match, the strictest decides, then the one of the highest layer."""

    strict_by_program: dict[str, tuple[CommandRule, ...]]
    """By the normalized name of the program."""
    allow_by_program: dict[str, tuple[CommandRule, ...]]
    """By the program as the rule spells it."""
    tools: dict[str, ToolRules]
    mcp_rules: tuple[Rule, ...] = ()
    """Rules about MCP tools and about every tool."""

    def find_command_rule(self, words: tuple[str, ...], inside: Inside, *, at_root: bool = True) -> Rule | None:
        """The rule for a simple command. `at_root`: whether a rule for `./script` applies in its folder."""
        return self.find_stricter(words) or self._find_allowing(words, inside, at_root=at_root)

    def find_stricter(self, words: tuple[str, ...]) -> Rule | None:
        """The deny or ask rule for a simple command, by any path of its program."""
        candidates = self.strict_by_program.get(normalize_program_name(words[0]), ()) if words else ()
        return next((candidate.rule for candidate in candidates if is_about(candidate.prefix, words)), None)

    def find_path_rule(self, tool: str, paths: tuple[str, ...]) -> Rule | None:
        """The rule for a tool's access to a file, by all names of the file.

        A deny or ask rule needs to match one name, an allow rule every name. A tool without rules of its own, and
        `exec`, has the rules for every tool.
        """
        rules = self.tools.get(tool) or self.tools.get(EVERY_TOOL)
        if tool.startswith(MCP_PREFIX) and self.mcp_rules:
            rules = _build_mcp_rules(self.mcp_rules, tool)
        if rules is None:
            return None
        strict = [rule for path in paths if (rule := rules.find_strict(path))]
        if strict:
            return min(strict, key=rank_rule)
        allowing = [rules.find_allowing(path) for path in paths]
        return allowing[0] if allowing and all(allowing) else None

    def _find_allowing(self, words: tuple[str, ...], inside: Inside, *, at_root: bool) -> Rule | None:
        if not words or not (at_root or words[0].startswith("/") or "/" not in words[0]):
            return None
        candidates = self.allow_by_program.get(words[0], ())
        return next((candidate.rule for candidate in candidates if candidate.allows(words, inside)), None)


@lru_cache(maxsize=32)
def build_rulebook(rules: tuple[Rule, ...]) -> RuleBook:
    """Compile rules. Raises PatternError."""
    ordered = sorted(rules, key=rank_rule)
    commands = [build_command_rule(rule) for rule in ordered if rule.tool == "exec"]
    strict = [command for command in commands if command.rule.verdict != "allow"]
    allow = [command for command in commands if command.rule.verdict == "allow"]
    has_mcp_rules = any(rule.tool.startswith(MCP_PREFIX) for rule in ordered)
    return RuleBook(
        _group_by_program((normalize_program_name(command.prefix.words[0]), command) for command in strict),
        _group_by_program((command.prefix.words[0], command) for command in allow),
        group_by_tool([rule for rule in ordered if rule.tool != "exec"]),
        tuple(rule for rule in ordered if rule.tool.startswith((MCP_PREFIX, EVERY_TOOL))) if has_mcp_rules else (),
    )


@lru_cache(maxsize=1024)
def build_command_rule(rule: Rule) -> CommandRule:
    """Compile a rule about commands. Raises PatternError."""
    words = parse_command_pattern(rule.pattern)
    prefix = build_prefix(words)
    return CommandRule(rule, prefix, can_run_code(words), list_starters(prefix))


def normalize_program_name(program: str) -> str:
    """`/usr/bin/git` is git, and on some file systems so is `GIT`."""
    return normalize_name(program.rpartition("/")[2])


def _group_by_program(rules: Iterable[tuple[str, CommandRule]]) -> dict[str, tuple[CommandRule, ...]]:
    groups: dict[str, tuple[CommandRule, ...]] = {}
    for program, rule in rules:
        groups[program] = (*groups.get(program, ()), rule)
    return groups


def group_by_tool(rules: list[Rule]) -> dict[str, ToolRules]:
    """Path rules, strictest first, for each tool that one of them names."""
    tools = {rule.tool for rule in rules}
    return {tool: _build_tool_rules([rule for rule in rules if rule.tool in {tool, EVERY_TOOL}]) for tool in tools}


@lru_cache(maxsize=256)
def _build_mcp_rules(rules: tuple[Rule, ...], tool: str) -> ToolRules:
    return _build_tool_rules([rule for rule in rules if rule.tool == EVERY_TOOL or _is_about_mcp_tool(rule, tool)])


def _is_about_mcp_tool(rule: Rule, tool: str) -> bool:
    """Allow rules match the exact name, deny and ask rules any case."""
    return is_mcp_name_match(rule.tool, tool) if rule.verdict == "allow" else is_mcp_tool_excluded((rule.tool,), tool)


def _build_tool_rules(rules: list[Rule]) -> ToolRules:
    strict = [rule for rule in rules if rule.verdict != "allow"]
    allow = [rule for rule in rules if rule.verdict == "allow"]
    allow_protected = [rule for rule in allow if find_protection(rule.pattern)]
    return ToolRules(_build_matcher(strict), _build_matcher(allow), _build_matcher(allow_protected))


def _build_matcher(rules: list[Rule]) -> _PathMatcher:
    either = "|".join(f"({_build_path_regex(rule)})" for rule in rules)
    return _PathMatcher(tuple(rules), re.compile(either, re.DOTALL))


def _build_path_regex(rule: Rule) -> str:
    """Deny and ask rules are compared with normalized paths and cover everything below a folder."""
    if rule.verdict == "allow":
        return build_exact_regex(split_pattern(rule.pattern))
    parts = split_pattern(normalize_name(rule.pattern))
    while parts and parts[-1] == "**":
        parts = parts[:-1]
    return f"{build_exact_regex(parts)}(?:/.*)?" if parts else ".*"


_ANY_DEPTH = "(?:[^/]*/)*?"


def split_pattern(pattern: str) -> tuple[str, ...]:
    """The names of a glob of paths.

    `*` and `?` match within a name, `**` any number of folders. A pattern without a slash matches at any depth,
    `./name` only at the top. `docs/` and `docs/**` match everything below docs. An absolute pattern is about an extra
    root, and begins with an empty name.
    """
    if "/" not in pattern:
        return (pattern,) if pattern == "**" else ("**", pattern)
    spelled = f"{pattern}**" if pattern.endswith("/") else pattern
    parts = [part for part in spelled.split("/") if part not in {"", "."}]
    return ("", *parts) if pattern.startswith("/") else tuple(parts) or (".",)


def build_exact_regex(parts: tuple[str, ...]) -> str:
    """A regular expression without groups for the paths that a glob names. It never backtracks far."""
    *before, last = _split_at_depths(parts)
    if last:
        return _join_runs(before) + (_ANY_DEPTH if before else "") + "/".join(map(_build_name_regex, last))
    return _join_runs(before) + (".+" if any(before) else ".*")


def _split_at_depths(parts: tuple[str, ...]) -> list[list[str]]:
    """The runs of names before, between and after each `**`."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    return runs


def _join_runs(runs: list[list[str]]) -> str:
    """All runs but the last. Between two `**` the first match leaves the most room, so it is never reconsidered."""
    texts = ["".join(f"{_build_name_regex(part)}/" for part in run) for run in runs]
    return "".join(f"(?>{_ANY_DEPTH}{text})" if n and text else text for n, text in enumerate(texts))


def _build_name_regex(part: str) -> str:
    first, *others = (re.escape(piece).replace(r"\?", "[^/]") for piece in re.split(r"\*+", part))
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return f"{first}{between}[^/]*{others[-1]}"
