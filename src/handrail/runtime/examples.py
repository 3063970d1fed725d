"""Tries the examples that rules and built-in tables carry."""

from collections.abc import Iterator

import msgspec

from handrail.policy.config import PolicyConfig, Rule, describe_rule
from handrail.policy.programs.registry import ProgramRegistry, build_registry, find_example_refusal
from handrail.policy.programs.spec import ProgramSpec
from handrail.policy.rules.lint import list_failing_examples
from handrail.protocol.wire import Wire
from handrail.runtime.explaining import Explainer
from handrail.tools.exec_spec import EXEC


class Example(Wire, frozen=True):
    """An example, and whether what its rule or table says of it comes out."""

    rule: str
    """The rule with its place, or the table."""
    example: str
    problem: str = ""
    """What is wrong with it, in words; empty where nothing is."""
    came_out: str = ""
    """What policy decides about a command that came out wrong."""


def run_rule_examples(rules: PolicyConfig, explainer: Explainer) -> Iterator[Example]:
    """Every example of the rules that people wrote."""
    for rule in rules.rules:
        for one in _apart(rule):
            [example] = (*one.match, *one.no_match)
            problem = "; ".join(list_failing_examples(one))
            came_out = _decided(explainer, example, rules) if problem and rule.tool == EXEC.name else ""
            yield Example(rule=describe_rule(rule), example=example, problem=problem, came_out=came_out)


def run_table_examples() -> Iterator[Example]:
    """Every example of the tables of programs."""
    known = build_registry()
    for table in {id(table): table for table in known.tables.values()}.values():  # once, whatever its names
        yield from _examples_of(table, known)


def _apart(rule: Rule) -> Iterator[Rule]:
    """The rule with one example at a time."""
    for example in rule.match:
        yield msgspec.structs.replace(rule, match=(example,), no_match=())
    for example in rule.no_match:
        yield msgspec.structs.replace(rule, match=(), no_match=(example,))


def _decided(explainer: Explainer, command: str, rules: PolicyConfig) -> str:
    decision = explainer.explain(EXEC.name, {"command": command}, rules)
    return f"{decision.decision} by {decision.rule}: {decision.reason}"


def _examples_of(table: ProgramSpec, known: ProgramRegistry) -> Iterator[Example]:
    name = f"table {table.name}"
    for example in table.match:
        why = find_example_refusal(table, known, example)
        yield Example(rule=name, example=example, problem=f"is not accepted: {why}" if why else "")
    for example in table.no_match:
        problem = "" if find_example_refusal(table, known, example) else "is accepted"
        yield Example(rule=name, example=example, problem=problem)
