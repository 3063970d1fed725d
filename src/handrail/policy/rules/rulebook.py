"""Compiled rules."""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from handrail.policy.config import Rule, rank_rule
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

# § [policy.rules.globs] Globs of paths as regular expressions that never backtrack far, whatever the pattern and
# § the path.  `*` and `?` stay within a name, `**` is any number of folders. A pattern without a slash is about a
# § name at any depth, `./name` only about the one at the top; `docs/` and `docs/**` are about everything below
# § docs. A pattern that begins with a slash is about an extra root, whose paths are absolute.


def split_pattern(pattern: str) -> tuple[str, ...]:
    """The names of a pattern; an absolute one begins with an empty name, just as its paths do when they are split."""
    if "/" not in pattern:
        return (pattern,) if pattern == "**" else ("**", pattern)
    spelled = f"{pattern}**" if pattern.endswith("/") else pattern
    parts = [part for part in spelled.split("/") if part not in {"", "."}]
    return ("", *parts) if pattern.startswith("/") else tuple(parts) or (".",)


def build_exact_regex(parts: tuple[str, ...]) -> str:
    """What just the paths match that the pattern names; the source of a regular expression without groups."""
    *before, last = _between_depths(parts)
    if last:
        return _joined(before) + (_ANY_DEPTH if before else "") + "/".join(map(_name, last))
    return _joined(before) + (".+" if any(before) else ".*")


def build_covering_regex(parts: tuple[str, ...]) -> str:
    """What the paths match that the pattern names, and everything below them."""
    while parts and parts[-1] == "**":
        parts = parts[:-1]
    return f"{build_exact_regex(parts)}(?:/.*)?" if parts else ".*"


_ANY_DEPTH = "(?:[^/]*/)*?"


def _between_depths(parts: tuple[str, ...]) -> list[list[str]]:
    """The runs of names before, between and behind the `**`."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    return runs


def _joined(runs: list[list[str]]) -> str:
    """All runs but the last. Of those between two `**` the first place that fits is as good as any later one: it
    leaves the most room for the rest, so the choice need never be taken back."""
    texts = ["".join(f"{_name(part)}/" for part in run) for run in runs]
    return "".join(f"(?>{_ANY_DEPTH}{text})" if n and text else text for n, text in enumerate(texts))


def _name(part: str) -> str:
    first, *others = (re.escape(piece).replace(r"\?", "[^/]") for piece in re.split(r"\*+", part))
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return f"{first}{between}[^/]*{others[-1]}"


# § [policy.rules.foreign_names] Names of other servers' tools, as people write them: one, some by a glob, or all of
# § a server.

MCP_PREFIX = "mcp__"
"""How they begin, and nothing else does: no tool of ours, no class of commands."""


def is_mcp_name_match(written: str, tool: str) -> bool:
    """Whether a tool is meant: by `mcp__github__create_issue`, `mcp__github__get_*`, or `mcp__github` for all of it."""
    names = (written, f"{written.rstrip('_')}__*") if written.count("__") == 1 else (written,)
    return any(fnmatchcase(tool, name) for name in names)


def is_mcp_tool_excluded(written: Iterable[str], tool: str) -> bool:
    """Whether one of these takes a tool away, in whatever case it is spelled."""
    folded = tool.casefold()
    names = (one.casefold() for one in written)
    return any(is_mcp_name_match(name, folded) for name in names if name.startswith(MCP_PREFIX))


# § [policy.rules.path_rules] Rules about paths, made ready: those of one tool in one expression each for what is
# § stricter and what allows.

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


# § [policy.rules.book] Which of the rules that people wrote decides: the strictest that is about a command, or
# § about a path.


class CommandRule(msgspec.Struct, frozen=True):
    """A rule about commands, with the words of its pattern."""

    rule: Rule
    wanted: Prefix
    verbatim: bool
    """Runs other code, so that an allow rule is about exactly the command it names."""
    starters: tuple[Prefix, ...] = ()
    """What begins like the pattern and starts other programs: an allow rule would have to name those."""

    def allows(self, words: tuple[str, ...], inside: Inside) -> bool:
        """Whether a command is one that an allow rule speaks of."""
        if self.verbatim:
            return words == self.wanted.words
        if has_git_global_options(self.wanted, words) or any(is_about(starter, words) for starter in self.starters):
            return False
        if self.rule.any_args:
            return words[: len(self.wanted.words)] == self.wanted.words
        return is_continuation(self.wanted, words, inside)


class RuleBook(msgspec.Struct, frozen=True):
    """All rules, made ready once. Of several that match the strictest decides, then that of the highest layer."""

    strict_by_program: dict[str, tuple[CommandRule, ...]]
    """By the name of the program, folded."""
    allow_by_program: dict[str, tuple[CommandRule, ...]]
    """By the program as it is spelled."""
    tools: dict[str, ToolRules]
    mcp_rules: tuple[Rule, ...] = ()
    """Those about tools of other servers, and those about every tool."""

    def command(self, words: tuple[str, ...], inside: Inside, *, at_root: bool = True) -> Rule | None:
        """The rule for a simple command. `at_root`: whether it runs where a rule for `./script` is meant."""
        return self.stricter(words) or self._allowing(words, inside, at_root=at_root)

    def stricter(self, words: tuple[str, ...]) -> Rule | None:
        """The deny or ask rule for a simple command, however its program is reached."""
        about = self.strict_by_program.get(normalize_program_name(words[0])) if words else None
        return next((one.rule for one in about if is_about(one.wanted, words)), None) if about else None

    def path(self, tool: str, paths: tuple[str, ...]) -> Rule | None:
        """The rule for what a tool does to a file, by all the names that the file has.

        A deny or ask rule needs to be about one of them only, an allow rule about each. A tool without rules of its
        own, `exec` too, has those for every tool.
        """
        rules = self.tools.get(tool) or self.tools.get(EVERY_TOOL)
        if tool.startswith(MCP_PREFIX) and self.mcp_rules:
            rules = build_mcp_rules(self.mcp_rules, tool)
        if rules is None:
            return None
        strict = [found for path in paths if (found := rules.strict(path))]
        return min(strict, key=rank_rule) if strict else _allowing_all(rules, paths)

    def _allowing(self, words: tuple[str, ...], inside: Inside, *, at_root: bool) -> Rule | None:
        if not words or not (at_root or words[0].startswith("/") or "/" not in words[0]):
            return None
        about = self.allow_by_program.get(words[0], ())
        return next((one.rule for one in about if one.allows(words, inside)), None)


@lru_cache(maxsize=32)
def build_rulebook(rules: tuple[Rule, ...]) -> RuleBook:
    """The rules, made ready; a PatternError where one has a pattern that cannot be."""
    ordered = sorted(rules, key=rank_rule)
    commands = [build_command_rule(rule) for rule in ordered if rule.tool == "exec"]
    foreign = any(rule.tool.startswith(MCP_PREFIX) for rule in ordered)
    return RuleBook(
        _by_program(
            (normalize_program_name(one.wanted.words[0]), one) for one in commands if one.rule.verdict != "allow"
        ),
        _by_program((one.wanted.words[0], one) for one in commands if one.rule.verdict == "allow"),
        group_by_tool([rule for rule in ordered if rule.tool != "exec"]),
        tuple(rule for rule in ordered if rule.tool.startswith((MCP_PREFIX, EVERY_TOOL))) if foreign else (),
    )


@lru_cache(maxsize=1024)
def build_command_rule(rule: Rule) -> CommandRule:
    """A rule about commands, made ready; or a PatternError."""
    words = parse_command_pattern(rule.pattern)
    wanted = build_prefix(words)
    return CommandRule(rule, wanted, can_run_code(words), list_starters(wanted))


def normalize_program_name(program: str) -> str:
    """A program however it is reached: `/usr/bin/git` is git, and so is `GIT` on some file systems."""
    return normalize_name(program.rpartition("/")[2])


def _allowing_all(rules: ToolRules, paths: tuple[str, ...]) -> Rule | None:
    found = [rules.allowing(path) for path in paths]
    return found[0] if found and all(found) else None


def _by_program(found: Iterable[tuple[str, CommandRule]]) -> dict[str, tuple[CommandRule, ...]]:
    sorted_out: dict[str, tuple[CommandRule, ...]] = {}
    for program, one in found:
        sorted_out[program] = (*sorted_out.get(program, ()), one)
    return sorted_out
