"""What is wrong with the rules that people wrote, told when they are loaded."""

from collections.abc import Iterator

from handrail.policy.rules.code import can_run_code
from handrail.policy.rules.examples import list_failing_examples
from handrail.policy.rules.foreign_names import MCP_PREFIX
from handrail.policy.rules.globs import split_pattern
from handrail.policy.rules.path_rules import EVERY_TOOL
from handrail.policy.rules.patterns import PatternError, parse_command_pattern
from handrail.policy.rules.rule import SAYS, Fault, Rule, describe_rule
from handrail.policy.rules.unused import list_unused_rules


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
