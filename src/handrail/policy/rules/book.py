"""Which of the rules that people wrote decides: the strictest that is about a command, or about a path."""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from handrail.policy.names import folded
from handrail.policy.rules.code import runs_code, starters_behind, steers_git
from handrail.policy.rules.foreign_names import FOREIGN
from handrail.policy.rules.operands import Inside
from handrail.policy.rules.path_rules import EVERY_TOOL, ToolRules, by_tool, foreign_rules
from handrail.policy.rules.patterns import command_words
from handrail.policy.rules.prefix import Prefix, continues, is_about, prefix
from handrail.policy.rules.rule import Rule, order


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
        if steers_git(self.wanted, words) or any(is_about(starter, words) for starter in self.starters):
            return False
        if self.rule.any_args:
            return words[: len(self.wanted.words)] == self.wanted.words
        return continues(self.wanted, words, inside)


class RuleBook(msgspec.Struct, frozen=True):
    """All rules, made ready once. Of several that match the strictest decides, then that of the highest layer."""

    stricter_ones: dict[str, tuple[CommandRule, ...]]
    """By the name of the program, folded."""
    allow_ones: dict[str, tuple[CommandRule, ...]]
    """By the program as it is spelled."""
    tools: dict[str, ToolRules]
    foreign_ones: tuple[Rule, ...] = ()
    """Those about tools of other servers, and those about every tool."""

    def command(self, words: tuple[str, ...], inside: Inside, *, at_root: bool = True) -> Rule | None:
        """The rule for a simple command. `at_root`: whether it runs where a rule for `./script` is meant."""
        return self.stricter(words) or self._allowing(words, inside, at_root=at_root)

    def stricter(self, words: tuple[str, ...]) -> Rule | None:
        """The deny or ask rule for a simple command, however its program is reached."""
        about = self.stricter_ones.get(program_name(words[0])) if words else None
        return next((one.rule for one in about if is_about(one.wanted, words)), None) if about else None

    def path(self, tool: str, paths: tuple[str, ...]) -> Rule | None:
        """The rule for what a tool does to a file, by all the names that the file has.

        A deny or ask rule needs to be about one of them only, an allow rule about each. A tool without rules of its
        own, `exec` too, has those for every tool.
        """
        rules = self.tools.get(tool) or self.tools.get(EVERY_TOOL)
        if tool.startswith(FOREIGN) and self.foreign_ones:
            rules = foreign_rules(self.foreign_ones, tool)
        if rules is None:
            return None
        strict = [found for path in paths if (found := rules.strict(path))]
        return min(strict, key=order) if strict else _allowing_all(rules, paths)

    def _allowing(self, words: tuple[str, ...], inside: Inside, *, at_root: bool) -> Rule | None:
        if not words or not (at_root or words[0].startswith("/") or "/" not in words[0]):
            return None
        about = self.allow_ones.get(words[0], ())
        return next((one.rule for one in about if one.allows(words, inside)), None)


@lru_cache(maxsize=32)
def book_of(rules: tuple[Rule, ...]) -> RuleBook:
    """The rules, made ready; a PatternError where one has a pattern that cannot be."""
    ordered = sorted(rules, key=order)
    commands = [command_rule(rule) for rule in ordered if rule.tool == "exec"]
    foreign = any(rule.tool.startswith(FOREIGN) for rule in ordered)
    return RuleBook(
        _by_program((program_name(one.wanted.words[0]), one) for one in commands if one.rule.verdict != "allow"),
        _by_program((one.wanted.words[0], one) for one in commands if one.rule.verdict == "allow"),
        by_tool([rule for rule in ordered if rule.tool != "exec"]),
        tuple(rule for rule in ordered if rule.tool.startswith((FOREIGN, EVERY_TOOL))) if foreign else (),
    )


@lru_cache(maxsize=1024)
def command_rule(rule: Rule) -> CommandRule:
    """A rule about commands, made ready; or a PatternError."""
    words = command_words(rule.pattern)
    wanted = prefix(words)
    return CommandRule(rule, wanted, runs_code(words), starters_behind(wanted))


def program_name(program: str) -> str:
    """A program however it is reached: `/usr/bin/git` is git, and so is `GIT` on some file systems."""
    return folded(program.rpartition("/")[2])


def _allowing_all(rules: ToolRules, paths: tuple[str, ...]) -> Rule | None:
    found = [rules.allowing(path) for path in paths]
    return found[0] if found and all(found) else None


def _by_program(found: Iterable[tuple[str, CommandRule]]) -> dict[str, tuple[CommandRule, ...]]:
    sorted_out: dict[str, tuple[CommandRule, ...]] = {}
    for program, one in found:
        sorted_out[program] = (*sorted_out.get(program, ()), one)
    return sorted_out
