"""Which of the rules that people wrote decides: the strictest that is about a command, or about a path."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from handrail.policy.names import normalize_name
from handrail.policy.rules.code import can_run_code, has_git_global_options, list_starters
from handrail.policy.rules.foreign_names import MCP_PREFIX
from handrail.policy.rules.operands import Inside
from handrail.policy.rules.path_rules import EVERY_TOOL, ToolRules, build_mcp_rules, group_by_tool
from handrail.policy.rules.patterns import parse_command_pattern
from handrail.policy.rules.prefix import Prefix, build_prefix, is_about, is_continuation
from handrail.policy.rules.rule import Rule, rank_rule


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
