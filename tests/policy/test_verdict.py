"""Verdicts on parts of a call: which are final, and which one decides."""

from typing import Any

import pytest

from handrail.policy.config import Rule
from handrail.policy.verdict import (
    TABLE,
    PartKind,
    PartVerdict,
    allow,
    ask,
    build_change_refusal,
    deny,
    judge_by_mode,
    judge_by_rule,
    pick_strictest,
)
from handrail.protocol.decisions import Decision, DecisionPart, Mode


def apply_mode(kind: PartKind, mode: Mode, *, undo: bool) -> tuple[str, str]:
    part = judge_by_mode("", "", kind, mode, undo=undo).part
    return part.decision, part.reason


def test_what_is_built_in_or_said_by_a_rule_is_firm_and_what_the_mode_says_is_not() -> None:
    rule = Rule(id="r", verdict="allow", pattern="x")
    assert [one.final for one in (deny("", "", ""), ask("", "", ""), judge_by_rule("", rule))] == [True] * 3
    assert not allow("", "", "").final
    assert not PartVerdict(DecisionPart(subject="", decision="allow", rule="", reason="")).final


@pytest.mark.parametrize("kind", ["unproven", "write", "delete", "network", "process", "bulk", "protected"])
def test_a_question_about_steering_or_very_many_files_is_firm(kind: PartKind) -> None:
    asked = judge_by_mode("s", "r", kind, "ask", undo=True)
    assert (asked.part.decision, asked.final) == ("confirm", kind in {"bulk", "protected"})
    assert not judge_by_mode("s", "r", kind, "full", undo=True).final
    assert judge_by_mode("s", "r", kind, "plan", undo=True).final


def test_what_a_mode_refuses_has_its_code_and_both_reasons() -> None:
    plain = judge_by_mode("s", "r", "write", "plan", undo=True)
    assert (plain.code, plain.part.reason) == ("POLICY_DENIED", "plan mode changes nothing")
    assert judge_by_mode("s", "r", "write", "plan", undo=True, why="it writes").part.reason == (
        "it writes; plan mode changes nothing"
    )
    assert judge_by_mode("s", "r", "outside", "full", undo=True).code == "OUTSIDE_WORKSPACE"
    assert judge_by_mode("s", "r", "write", "ask", undo=True, why="it writes").part.reason == "it writes"
    assert judge_by_mode("s", "r", "write", "ask", undo=True).code is None


def test_the_mode_says_why_it_allows_or_asks_where_what_is_done_does_not() -> None:
    def reason(kind: PartKind, mode: Mode) -> str:
        return judge_by_mode("s", "r", kind, mode, undo=False, why="it does").part.reason

    assert reason("write", "auto") == "it does; undo does not cover it, so it needs approval"
    assert reason("write", "full") == "it does; full mode allows it"
    assert reason("proven", "full") == "it does"
    assert reason("network", "auto") == "it does"


@pytest.mark.parametrize(("subject", "verdict", "reason"), [
    ("unproven", "deny", "plan mode runs only commands that handrail can prove harmless"),
    ("delete", "confirm", "ask mode asks before every deletion"),
    ("outside", "deny", "the path leads outside the workspace"),
    ("network", "confirm", "network access needs approval"),
])  # fmt: skip
def test_a_mode_gives_the_reason_of_its_cell(subject: PartKind, verdict: str, reason: str) -> None:
    modes = [mode for mode, cell in TABLE[subject].items() if cell == verdict]
    assert {apply_mode(subject, mode, undo=False) for mode in modes} == {(verdict, reason)}


def test_where_undo_does_not_cover_it_that_is_the_reason() -> None:
    assert apply_mode("write", "auto", undo=False) == ("confirm", "undo does not cover it, so it needs approval")
    assert apply_mode("write", "auto", undo=True) == ("allow", "auto mode allows what undo covers")
    assert apply_mode("write", "full", undo=False) == ("allow", "full mode allows it")


def test_what_only_reads_is_allowed_for_that() -> None:
    assert apply_mode("proven", "plan", undo=False) == ("allow", "it only reads")


def test_a_path_is_named_where_the_answer_is_no_plain_yes() -> None:
    assert deny("s", "r", "never").with_path("a").part.reason == "never: a"
    assert ask("s", "r", "asks").with_path("a") == ask("s", "r", "asks: a")
    assert deny("s", "r", "never", "OUTSIDE_WORKSPACE").with_path("a").code == "OUTSIDE_WORKSPACE"
    assert allow("s", "r", "fine").with_path("a") == allow("s", "r", "fine")


def part(decision: str, name: str, *, firm: bool = False) -> PartVerdict:
    return PartVerdict(DecisionPart(subject="", decision=decision, rule=name, reason=""), final=firm)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "deciding"),
    [
        ([part("allow", "a"), part("confirm", "b"), part("deny", "c")], "c"),
        ([part("deny", "c"), part("confirm", "b"), part("allow", "a")], "c"),
        ([part("allow", "a", firm=True), part("confirm", "b")], "b"),
        ([part("confirm", "b", firm=True), part("deny", "c")], "c"),
        ([part("confirm", "a"), part("confirm", "b")], "a"),
        ([part("confirm", "a"), part("confirm", "b", firm=True), part("confirm", "c", firm=True)], "b"),
    ],
)
def test_the_strictest_decides_and_among_equals_the_first_that_is_firm(parts: list[Any], deciding: str) -> None:
    assert pick_strictest(parts).part.rule == deciding


@pytest.mark.parametrize(
    ("decision", "code", "message"),
    [
        (Decision(decision="deny", rule="fs.bulk", reason="it deletes much"), "POLICY_DENIED",
         "Rule fs.bulk forbids what it changed: it deletes much. It was dropped. Do not try another way; say what you "
         "need it for."),
        (Decision(decision="confirm", rule="fs.bulk", reason="it deletes much"), "PERMISSION_DENIED",
         "What it changed needs approval: it deletes much. It was dropped. Do not repeat this call."),
        (Decision(decision="deny", rule="fs.bulk", reason="it deletes much", code="PERMISSION_DENIED"),
         "PERMISSION_DENIED",
         "What it changed needs approval: it deletes much. It was dropped. Do not repeat this call."),
    ],
)  # fmt: skip
def test_a_refused_change_says_why_and_what_became_of_it(decision: Decision, code: str, message: str) -> None:
    error = build_change_refusal(decision, "It was dropped.")
    assert (error.code, error.message) == (code, message)
    assert error.details == {"rule": "fs.bulk", "reason": "it deletes much"}
