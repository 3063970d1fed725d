"""Finds faults in rules when they are loaded."""

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from handrail.policy.builtin_denies import find_builtin_deny
from handrail.policy.config import MCP_PREFIX, STRICTEST_FIRST, Rule, describe_rule, rank_rule
from handrail.policy.names import find_protection
from handrail.policy.rules.command_match import PatternError, is_about, is_inside_by_spelling, parse_command_pattern
from handrail.policy.rules.rulebook import (
    EVERY_TOOL,
    CommandRule,
    RuleBook,
    ToolRules,
    build_command_rule,
    build_rulebook,
    group_by_tool,
    normalize_program_name,
    split_pattern,
)
from handrail.policy.shell.lexer import lex
from handrail.policy.shell.syntax import Script, Unparsed
from handrail.policy.wrappers import can_run_code
from handrail.protocol.decisions import Verdict

_VERBS: dict[Verdict, str] = {"deny": "denies", "confirm": "asks about", "allow": "allows"}


class Fault(msgspec.Struct, frozen=True):
    """A problem that the author of a rule should know."""

    rule: str
    problem: str
    is_error: bool
    """Whether the rules cannot be used. Otherwise the rule just never decides anything."""


def review(rules: tuple[Rule, ...]) -> tuple[Fault, ...]:
    """Errors, then rules that never decide anything. Unknown tools are no fault: tools are not known yet."""
    faults = [*_find_clashes(rules)]
    sound: list[Rule] = []
    for rule in rules:
        problems = [*_find_problems(rule)]
        if not problems:
            sound.append(rule)
            problems = list_failing_examples(rule)
        faults += [_build_fault(rule, problem) for problem in problems]
    faults += [_build_fault(rule, why, is_error=False) for rule, why in _list_unused_rules(sound)]
    return tuple(faults)


def _build_fault(rule: Rule, problem: str, *, is_error: bool = True) -> Fault:
    return Fault(rule.id, f"{describe_rule(rule)} {problem}", is_error)


def _find_clashes(rules: tuple[Rule, ...]) -> Iterator[Fault]:
    """Rules of one layer that share an id, or that contradict each other."""
    ids: dict[tuple[str, str], Rule] = {}
    patterns: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        same = ids.setdefault((rule.layer, rule.id), rule)
        if same is not rule:
            yield _build_fault(rule, f"has the id of {describe_rule(same)}; give it one of its own")
        words = tuple(rule.pattern.split()) if rule.tool == "exec" else split_pattern(rule.pattern)
        other = patterns.setdefault((rule.layer, rule.tool, *words), rule)
        if other.verdict != rule.verdict:
            contradiction = f"{_VERBS[rule.verdict]} {rule.pattern}, which {_describe_verdict(other)}"
            yield _build_fault(rule, f"{contradiction}; keep one")


def _describe_verdict(rule: Rule) -> str:
    return f"{describe_rule(rule)} {_VERBS[rule.verdict]}"


def _find_problems(rule: Rule) -> Iterator[str]:
    if rule.tool == EVERY_TOOL and rule.verdict == "allow":
        yield "allows every tool at once; name the tool"
    if rule.verdict == "allow" and _is_any_server(rule.tool):
        yield "allows the tools of more than one server at once; name the server: mcp__github__*"
    if rule.any_args and rule.verdict != "allow":
        yield f"has any_args, which is for allow rules; what {_VERBS[rule.verdict]} a command is about any arguments"
    yield from _find_path_problems(rule) if rule.tool != "exec" else _find_command_problems(rule)


def _is_any_server(tool: str) -> bool:
    server = tool.removeprefix(MCP_PREFIX).partition("__")[0]
    return tool.startswith(MCP_PREFIX) and (not server or any(sign in server for sign in "*?["))


def _find_path_problems(rule: Rule) -> Iterator[str]:
    if not rule.pattern.strip():
        yield "has an empty pattern; write a glob of paths, or ** for all"
    if rule.any_args:
        yield "has any_args, which is for commands"


def _find_command_problems(rule: Rule) -> Iterator[str]:
    try:
        words = parse_command_pattern(rule.pattern)
    except PatternError as error:
        yield f"is not a rule: {error}"
        return
    if rule.any_args and can_run_code(words):
        yield f"has any_args, but {rule.pattern} runs what it is given; allow one complete command instead"


def list_failing_examples(rule: Rule) -> list[str]:
    """Problems with the examples of a rule whose pattern is sound."""
    book = build_rulebook((rule,))
    failing = [_check_example(rule, book, example, wanted=True) for example in rule.match]
    failing += [_check_example(rule, book, example, wanted=False) for example in rule.no_match]
    return [problem for problem in failing if problem]


def _check_example(rule: Rule, book: RuleBook, example: str, *, wanted: bool) -> str:
    script = lex(example) if rule.tool == "exec" else None
    if isinstance(script, Unparsed) and rule.verdict != "allow":
        return f"cannot check its example {example!r}: it {script.reason}"
    matches = book.find_path_rule(rule.tool, (example,)) is not None if script is None else _matches(rule, book, script)
    if matches == wanted:
        return ""
    return f"should match its example {example!r}" if wanted else f"should not match its example {example!r}"


def _matches(rule: Rule, book: RuleBook, script: Script | Unparsed) -> bool:
    """An allow rule must match every command of a script, a stricter rule any."""
    if isinstance(script, Unparsed):
        return False
    commands = [tuple(word.text for word in command.words) for command in script.commands]
    matches = [book.find_command_rule(words, is_inside_by_spelling) is not None for words in commands]
    return all(matches) if rule.verdict == "allow" else any(matches)


_FILLINGS = ("", "x", "example", "x.pub")
"""Texts for a wildcard. If a name with one of these is no credential, the rule can decide."""


def _list_unused_rules(rules: list[Rule]) -> Iterator[tuple[Rule, str]]:
    """Sound rules that never decide, each with the reason."""
    for at, rule in enumerate(rules):
        never = _explain_builtin_deny(rule) if rule.tool == "exec" else _explain_no_match(rule)
        why = never or _explain_shadow(rule, at, rules)
        if why:
            yield rule, why


def _explain_builtin_deny(rule: Rule) -> str:
    deny = find_builtin_deny(parse_command_pattern(rule.pattern), literal=True)
    return f"can never decide: it is always denied ({deny.rule}): {deny.reason}" if deny else ""


def _explain_no_match(rule: Rule) -> str:
    if ".." in split_pattern(rule.pattern) or rule.pattern.startswith("~"):
        return "can never match: paths are named from the root they are in, without .. and ~"
    is_secret = all(find_protection(rule.pattern.replace("*", filling)) == "credential" for filling in _FILLINGS)
    return "can never decide: credentials are always denied (fs.secret)" if is_secret else ""


def _explain_shadow(rule: Rule, at: int, rules: list[Rule]) -> str:
    """The strictest rule that covers this one, in any layer. Of two equal rules the later one is the fault."""
    for n, other in sorted(enumerate(rules), key=_order):
        if STRICTEST_FIRST.index(other.verdict) > STRICTEST_FIRST.index(rule.verdict):
            break
        if n != at and _covers(other, rule) and _takes_precedence((n, other), (at, rule)):
            return f"can never decide: {_describe_verdict(other)} {other.pattern}"
    return ""


def _order(numbered: tuple[int, Rule]) -> tuple[int, int, int]:
    at, rule = numbered
    return *rank_rule(rule), at


def _takes_precedence(other: tuple[int, Rule], rule: tuple[int, Rule]) -> bool:
    """Whether the other rule makes this one useless, and not the other way round."""
    return other[1].verdict != rule[1].verdict or _order(other) < _order(rule) or not _covers(rule[1], other[1])


_ANY = "\ue000"
"""Stands for the text that a wildcard matches. No name contains it, so only a wildcard can match it."""
_SIZES = (0, 1, 9)
"""Lengths of that text. A rule that covers these covers all lengths."""


def _covers(wide: Rule, narrow: Rule) -> bool:
    """Whether `wide` is about everything that `narrow` is about, judged by words and patterns only."""
    if "exec" in {wide.tool, narrow.tool}:
        return wide.tool == narrow.tool and _covers_command(build_command_rule(wide), build_command_rule(narrow))
    return wide.tool in {narrow.tool, EVERY_TOOL} and _covers_paths(wide, narrow)


def _covers_command(wide: CommandRule, narrow: CommandRule) -> bool:
    words = narrow.prefix.words
    if wide.rule.verdict != "allow":
        is_same = normalize_program_name(wide.prefix.words[0]) == normalize_program_name(words[0])
        return is_same and is_about(wide.prefix, words)
    if narrow.rule.any_args and not wide.rule.any_args and not narrow.verbatim:
        return False
    return wide.allows(words, is_inside_by_spelling)


def _covers_paths(wide: Rule, narrow: Rule) -> bool:
    rules = _build_rules_of(wide)
    find = rules.find_allowing if wide.verdict == "allow" else rules.find_strict
    return all(find(path) for path in _list_samples(narrow))


@lru_cache(maxsize=1024)
def _build_rules_of(rule: Rule) -> ToolRules:
    return group_by_tool([rule])[rule.tool]


def _list_samples(rule: Rule) -> list[str]:
    parts = split_pattern(rule.pattern)
    if rule.verdict != "allow":  # such a rule is about the folder too, and about everything below
        while parts and parts[-1] == "**":
            parts = parts[:-1]
    return ["/".join(_fill_wildcards(parts, size)) for size in _SIZES]


def _fill_wildcards(parts: tuple[str, ...], size: int) -> list[str]:
    names: list[str] = []
    for at, part in enumerate(parts):
        if part == "**":
            names += [_ANY] * (size if at < len(parts) - 1 else max(size, 1))
        else:
            names.append(part.replace("?", _ANY).replace("*", _ANY * size) or (_ANY if part else ""))
    return names
