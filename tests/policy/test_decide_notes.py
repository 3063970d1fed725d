"""Decisions on notes, which outlast the session and undo."""

import pytest

from handrail.policy.config import PolicyConfig, RestrictedProfile, Rule
from handrail.policy.decide import decide
from handrail.protocol.decisions import MODES, Decision, Facts, MemoryFact, Mode, Verdict
from handrail.tools.companions.memory import MEMORY


def decided(action: str, rules: PolicyConfig) -> Decision:
    return decide(MEMORY, None, Facts(memory=MemoryFact(action=action, note="m-12345")), rules)


@pytest.mark.parametrize("mode", MODES)
def test_reading_notes_is_allowed_in_every_mode(mode: Mode) -> None:
    decision = decided("list", PolicyConfig(mode, unattended=True))
    assert (decision.decision, decision.rule) == ("allow", "memory.read")


@pytest.mark.parametrize("action", ["create", "update", "delete"])
@pytest.mark.parametrize(
    ("mode", "verdict"), [("plan", "deny"), ("ask", "confirm"), ("auto", "confirm"), ("full", "allow")]
)
def test_a_note_is_written_only_after_a_yes_or_in_full_mode(action: str, mode: Mode, verdict: Verdict) -> None:
    decision = decided(action, PolicyConfig(mode))
    assert (decision.decision, decision.rule) == (verdict, "memory.write")
    assert decision.grants == ()


def test_nobody_to_ask_is_a_no() -> None:
    decision = decided("create", PolicyConfig("auto", unattended=True))
    assert (decision.decision, decision.code) == ("deny", "PERMISSION_DENIED")


@pytest.mark.parametrize("mode", MODES)
def test_the_restricted_profile_notes_nothing_and_may_read(mode: Mode) -> None:
    rules = PolicyConfig(mode, restriction=RestrictedProfile(commands=(), folders=()))
    assert decided("create", rules).rule == "restricted.tool"
    assert decided("list", rules).decision == "allow"


def test_a_rule_about_the_tool_may_allow_it() -> None:
    rules = PolicyConfig("ask", rules=(Rule(id="r", verdict="allow", tool="memory", pattern="**"),))
    assert decided("create", rules).decision == "allow"
