"""Decisions on calls about process sessions."""

import pytest

from handrail.policy.config import PolicyConfig, RestrictedProfile
from handrail.policy.decide import decide
from handrail.protocol.decisions import Decision, Facts, Mode, ProcessFact, Verdict
from handrail.tools.process import PROCESS


def decided(action: str, rules: PolicyConfig, *, looks: bool = False) -> Decision:
    fact = ProcessFact(action=action, id="p-abc", command="python3 -i", looks=looks)
    return decide(PROCESS, None, Facts(process=fact), rules)


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
@pytest.mark.parametrize("action", ["list", "poll", "log", "kill", "clear", "remove"])
def test_looking_and_ending_are_allowed_in_every_mode(action: str, mode: Mode) -> None:
    decision = decided(action, PolicyConfig(mode=mode))
    rule = "process.look" if action in {"list", "poll", "log"} else "process.stop"
    assert (decision.decision, decision.rule) == ("allow", rule)


@pytest.mark.parametrize(
    ("mode", "verdict"), [("plan", "deny"), ("ask", "confirm"), ("auto", "confirm"), ("full", "allow")]
)
def test_writing_to_a_program_is_running_something(mode: Mode, verdict: Verdict) -> None:
    decision = decided("write", PolicyConfig(mode=mode))
    assert (decision.decision, decision.rule) == (verdict, "process.write")
    assert decision.subject == "write to python3 -i"


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
def test_writing_to_a_program_that_only_looks_asks_nobody(mode: Mode) -> None:
    assert decided("write", PolicyConfig(mode=mode), looks=True).decision == "allow"


def test_what_asks_about_writing_is_granted_to_nobody_for_good() -> None:
    assert all(part.grant == "" for part in decided("write", PolicyConfig(mode="ask")).parts)


def test_nobody_to_ask_is_a_no() -> None:
    decision = decided("write", PolicyConfig(mode="ask", unattended=True))
    assert (decision.decision, decision.code) == ("deny", "PERMISSION_DENIED")


@pytest.mark.parametrize("mode", ["ask", "auto", "full"])
def test_the_restricted_profile_writes_to_nothing(mode: Mode) -> None:
    restricted = PolicyConfig(mode=mode, restriction=RestrictedProfile(commands=("cat",), folders=(".minds",)))
    assert decided("write", restricted, looks=True).rule == "restricted.tool"


def test_a_permission_that_the_call_leaves_out_is_missing() -> None:
    fact = ProcessFact(action="list")
    assert decide(PROCESS, ("fs.read",), Facts(process=fact), PolicyConfig(mode="full")).rule == "call.narrowed"
