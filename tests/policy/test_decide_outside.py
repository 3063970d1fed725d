"""Decisions on paths outside every root, from facts alone."""

from typing import Any

import pytest

from handrail.policy.config import PolicyConfig, Rule
from handrail.policy.decide import decide
from handrail.policy.verdict import judge_path
from handrail.protocol.decisions import Access, Facts, Mode, PathFact, Verdict
from handrail.protocol.tool_spec import Arguments, ToolSpec


def fact(access: Access = "read", **fields: Any) -> PathFact:
    known = {"kind": "file", "outside": "/data/x.txt", "folder": "/data", **fields}
    return PathFact(path="/data/x.txt", access=access, **known)


@pytest.mark.parametrize(
    ("access", "mode", "fields", "outside", "expected"),
    [
        ("read", "ask", {}, "ask", "confirm"),
        ("write", "ask", {}, "ask", "confirm"),
        ("delete", "auto", {}, "ask", "confirm"),
        ("read", "full", {}, "ask", "confirm"),
        ("read", "plan", {}, "ask", "confirm"),
        ("write", "plan", {}, "ask", "deny"),
        ("read", "ask", {}, "deny", "deny"),
        ("read", "ask", {"closed_reason": "it is never opened"}, "ask", "deny"),
        ("read", "ask", {"folder": None, "outside": None}, "ask", "deny"),
    ],
)
def test_it_asks_where_a_folder_may_be_opened(
    access: Access, mode: Mode, fields: dict[str, Any], outside: Any, expected: str
) -> None:
    judged = judge_path(fact(access, **fields), PolicyConfig(mode, outside=outside), undo=True)
    assert (judged.part.decision, judged.part.rule) == (expected, "fs.outside")
    assert judged.code == ("OUTSIDE_WORKSPACE" if expected == "deny" else None)


def test_the_reason_says_which_folder_or_why_not() -> None:
    rules = PolicyConfig("ask", outside="ask")
    assert judge_path(fact(), rules, undo=True).part.reason == "the path leads outside the workspace, to /data"
    reason = judge_path(fact(closed_reason="it is never opened"), rules, undo=True).part.reason
    assert reason == "the path leads outside the workspace; it is never opened"


@pytest.mark.parametrize("outside", ["ask", "deny"])
def test_a_credential_outside_is_one_all_the_same(outside: Any) -> None:
    judged = judge_path(fact(outside="/data/.ssh/id_rsa"), PolicyConfig("full", outside=outside), undo=True)
    assert (judged.part.decision, judged.part.rule, judged.code) == ("deny", "fs.secret", "POLICY_DENIED")


@pytest.mark.parametrize(("mode", "expected"), [("plan", "deny"), ("ask", "confirm"), ("auto", "confirm")])
def test_what_steers_a_repository_by_any_name_is_protected(mode: Mode, expected: str) -> None:
    inside = PathFact(path="x/config", access="write", kind="file", real="x/config", repository=True)
    judged = judge_path(inside, PolicyConfig(mode), undo=True)
    assert (judged.part.decision, judged.part.rule) == (expected, "fs.protected")


READ = ToolSpec(name="read", title="", description="", arguments=Arguments, data=Arguments, permissions=("fs.read",))


@pytest.mark.parametrize(
    ("verdict", "decision", "rule"),
    [("deny", "deny", "r"), ("confirm", "confirm", "fs.outside"), ("allow", "confirm", "fs.outside")],
)
def test_a_rule_can_only_forbid_what_is_outside(verdict: Verdict, decision: str, rule: str) -> None:
    rules = PolicyConfig("ask", outside="ask", rules=(Rule(id="r", verdict=verdict, pattern="/data/**", tool="read"),))
    found = decide(READ, None, Facts(paths=(fact(),)), rules)
    assert (found.decision, found.rule) == (decision, rule)
