"""Finds errors in rules."""

from collections.abc import Iterator
from functools import lru_cache

from handrail.policy.builtin_denies import find_builtin_deny
from handrail.policy.config import SAYS, STRICTEST_FIRST, Fault, Rule, describe_rule, rank_rule
from handrail.policy.names import find_protection
from handrail.policy.rules.command_match import PatternError, is_about, is_inside_by_spelling, parse_command_pattern
from handrail.policy.rules.rulebook import (
    EVERY_TOOL,
    MCP_PREFIX,
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
from handrail.policy.shell.syntax import Unparsed
from handrail.policy.wrappers import can_run_code

# § [policy.rules.covering] Whether one rule is about everything that another is about: the other then decides
# § nothing, if it is no stricter.

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


# § [policy.rules.unused] Rules that never decide anything: what they are about cannot be, is never done, or is
# § decided by another rule.

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


# § [policy.rules.examples] The examples of a rule: what it must be about, and what it must not.


def list_failing_examples(rule: Rule) -> list[str]:
    """What is wrong with the examples of a rule whose pattern is sound, in words."""
    book = build_rulebook((rule,))
    failing = [_failure(rule, book, example, wanted=True) for example in rule.match]
    failing += [_failure(rule, book, example, wanted=False) for example in rule.no_match]
    return [problem for problem in failing if problem]


def _failure(rule: Rule, book: RuleBook, example: str, *, wanted: bool) -> str:
    found = book.path(rule.tool, (example,)) is not None if rule.tool != "exec" else _is_about(rule, book, example)
    if isinstance(found, str):
        return f"cannot check its example {example!r}: it {found}"
    if found == wanted:
        return ""
    return f"should match its example {example!r}" if wanted else f"should not match its example {example!r}"


def _is_about(rule: Rule, book: RuleBook, example: str) -> bool | str:
    """An allow rule must be about every command of the example, a stricter one about any. Or why it cannot be read."""
    script = lex(example)
    if isinstance(script, Unparsed):
        return False if rule.verdict == "allow" else script.reason
    commands = [tuple(word.text for word in command.words) for command in script.commands]
    found = [book.command(words, is_inside_by_spelling) is not None for words in commands]
    return all(found) if rule.verdict == "allow" else any(found)


# § [policy.rules.review] What is wrong with the rules that people wrote, told when they are loaded.


def review(rules: tuple[Rule, ...]) -> tuple[Fault, ...]:
    """Errors, then rules that never decide anything. Which tools there are is not known yet when rules are loaded."""
    faults = [*_clashes(rules)]
    sound: list[Rule] = []
    for rule in rules:
        problems = [*_problems(rule)]
        if not problems:
            sound.append(rule)
            problems = list_failing_examples(rule)
        faults += [Fault(rule.id, f"{describe_rule(rule)} {problem}", is_error=True) for problem in problems]
    return (
        *faults,
        *(Fault(rule.id, f"{describe_rule(rule)} {why}", is_error=False) for rule, why in list_unused_rules(sound)),
    )


def _clashes(rules: tuple[Rule, ...]) -> Iterator[Fault]:
    """Rules of one layer that have one id, or that say different things of the same."""
    ids: dict[tuple[str, str], Rule] = {}
    patterns: dict[tuple[str, ...], Rule] = {}
    for rule in rules:
        same = ids.setdefault((rule.layer, rule.id), rule)
        if same is not rule:
            yield Fault(
                rule.id,
                f"{describe_rule(rule)} has the id of {describe_rule(same)}; give it one of its own",
                is_error=True,
            )
        other = patterns.setdefault((rule.layer, rule.tool, *_about(rule)), rule)
        if other.verdict != rule.verdict:
            problem = (
                f"{SAYS[rule.verdict]} {rule.pattern}, which {describe_rule(other)} {SAYS[other.verdict]}; keep one"
            )
            yield Fault(rule.id, f"{describe_rule(rule)} {problem}", is_error=True)


def _about(rule: Rule) -> tuple[str, ...]:
    return tuple(rule.pattern.split()) if rule.tool == "exec" else split_pattern(rule.pattern)


def _problems(rule: Rule) -> Iterator[str]:
    if rule.tool == EVERY_TOOL and rule.verdict == "allow":
        yield "allows every tool at once; name the tool"
    if rule.verdict == "allow" and _is_any_server(rule.tool):
        yield "allows the tools of more than one server at once; name the server: mcp__github__*"
    if rule.any_args and rule.verdict != "allow":
        yield f"has any_args, which is for allow rules; what {SAYS[rule.verdict]} a command is about any arguments"
    yield from _path_problems(rule) if rule.tool != "exec" else _command_problems(rule)


def _is_any_server(tool: str) -> bool:
    server = tool.removeprefix(MCP_PREFIX).partition("__")[0]
    return tool.startswith(MCP_PREFIX) and (not server or any(sign in server for sign in "*?["))


def _path_problems(rule: Rule) -> Iterator[str]:
    if not rule.pattern.strip():
        yield "has an empty pattern; write a glob of paths, or ** for all"
    if rule.any_args:
        yield "has any_args, which is for commands"


def _command_problems(rule: Rule) -> Iterator[str]:
    try:
        words = parse_command_pattern(rule.pattern)
    except PatternError as error:
        yield f"is no rule: {error}"
        return
    if rule.any_args and can_run_code(words):
        yield f"has any_args, but {rule.pattern} runs what it is given; allow one whole command of it, or none"
