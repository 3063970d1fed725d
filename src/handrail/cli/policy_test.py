"""policy test: whether the examples of rules and tables come out as they should."""

from argparse import Namespace
from contextlib import closing

from msgspec import structs

from handrail.cli.exits import FAILED, OK
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.policy_place import PolicyWorkspace
from handrail.policy.rules.lint import review
from handrail.protocol.wire import encode
from handrail.runtime.explain import Example, run_rule_examples, run_table_examples
from handrail.settings import SettingsError
from handrail.settings.rules import check_tools

_TIER = 2
"""The sandbox that the examples are about; what they say must not depend on the machine."""


def run(options: Namespace) -> int:
    """Tries every example there is."""
    place = PolicyWorkspace(options, review=False)
    rules = place.rules()
    _refuse_broken(place)
    with closing(place.explainer(lambda: _TIER)) as explainer:
        tried = [*run_rule_examples(rules, explainer), *run_table_examples()]
    failures = [one for one in tried if one.problem]
    remarks = [fault.problem for fault in review(rules.rules) if not fault.is_error]
    if options.json:
        body = {"schema": "handrail.policy/1", "ok": not failures, "examples": len(tried), "rules": len(rules.rules)}
        print_json(encode({**body, "failures": failures, "remarks": remarks}))
    else:
        _print(len(tried), failures, remarks)
    return FAILED if failures else OK


def _refuse_broken(place: PolicyWorkspace) -> None:
    """A rule that would be wrong without its examples too is no rule, and the settings cannot be used."""
    rules = tuple(structs.replace(rule, match=(), no_match=()) for rule in place.loaded.rules)
    if problems := [fault.problem for fault in review(rules) if fault.is_error]:
        raise SettingsError("The rules cannot be used", problems, "Correct them, then try again.")
    check_tools(place.loaded, place.offer().registered)


def _print(tried: int, failures: list[Example], remarks: list[str]) -> None:
    if failures:
        print_out(render_table([("rule", "example", "problem", "what came out"), *map(_row, failures)]))
        print_out(f"{len(failures):,} of {tried:,} examples do not come out as they should\n")
    else:
        print_out(f"all {tried:,} examples come out as they should\n")
    for remark in remarks:
        print_note(remark)


def _row(one: Example) -> tuple[str, str, str, str]:
    return one.rule, one.example, one.problem, one.came_out or "-"
