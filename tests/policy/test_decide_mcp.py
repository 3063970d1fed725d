"""Decisions on MCP tools: modes, trusted servers, rules, grants, changed descriptions."""

import itertools

import pytest
from tests.policy.deciding import decided

from handrail.policy.config import Grant, PolicyConfig, RestrictedProfile, Rule, TrustedServer
from handrail.policy.decide import decide
from handrail.policy.rules.lint import review
from handrail.protocol.decisions import MODES, Decision, Facts, ForeignFact
from handrail.protocol.tool_spec import Arguments, ToolSpec

NAME = "mcp__github__get_issue"
SPEC = ToolSpec(
    name=NAME, title="", description="", arguments=Arguments, data=Arguments, category="mcp", server="github",
    side_effects=("network",), auto_execute=True,
)  # fmt: skip
GRANT = Grant(id="g-1", command=NAME)


def judged(mode: str = "ask", *, read_only: bool = False, changed: bool = False, **rules: object) -> Decision:
    fact = ForeignFact(server="github", tool="get_issue", read_only=read_only, changed=changed)
    return decide(SPEC, None, Facts(foreign=fact), PolicyConfig(mode, **rules))  # type: ignore[arg-type]


def rule(verdict: str, tool: str = NAME, pattern: str = "**") -> Rule:
    return Rule(id="mine", verdict=verdict, pattern=pattern, tool=tool)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mode", "verdict"), [("plan", "deny"), ("ask", "confirm"), ("auto", "confirm"), ("full", "allow")]
)
@pytest.mark.parametrize("read_only", [False, True])
def test_the_mode_decides_whatever_the_server_says_of_itself(mode: str, verdict: str, read_only: bool) -> None:
    decision = judged(mode, read_only=read_only)
    assert (decision.decision, decision.rule) == (verdict, "tool.mcp")
    assert decision.subject == "get_issue (github)"


def test_the_reason_names_the_server_and_that_undo_does_not_cover_it() -> None:
    assert judged().reason == "it runs on the server github, and undo does not cover its effects"
    assert "plan mode calls only tools of other servers that the settings declare read-only" in judged("plan").reason


def test_of_a_tool_without_a_fact_the_spec_tells_whose_it_is() -> None:
    decision = decide(SPEC, None, Facts(), PolicyConfig("ask"))
    assert (decision.rule, decision.subject) == ("tool.mcp", f"{NAME} (github)")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("vouching", "read_only", "counts"),
    [
        (TrustedServer("github", read_only=("get_*",)), False, True),
        (TrustedServer("github", read_only=("list_*", "get_issue")), False, True),
        (TrustedServer("github", read_only=("GET_*",)), False, False),
        (TrustedServer("github", read_only=("issue",)), False, False),
        (TrustedServer("github", hints=True), True, True),
        (TrustedServer("github", hints=True), False, False),
        (TrustedServer("github"), True, False),
        (TrustedServer("gitlab", read_only=("*",), hints=True), True, False),
    ],
)
def test_what_the_settings_vouch_for_only_looks(
    mode: str, vouching: TrustedServer, read_only: bool, counts: bool
) -> None:
    decision = judged(mode, read_only=read_only, servers=(vouching,))
    assert (decision.rule == "tool.vouched") == counts
    assert decision.decision == ("allow" if counts else judged(mode).decision)


@pytest.mark.parametrize("vouching", [(), (TrustedServer("github", read_only=("*",)),)])
def test_the_restricted_profile_calls_no_server(vouching: tuple[TrustedServer, ...]) -> None:
    decision = judged("full", restriction=RestrictedProfile((), (".",)), servers=vouching, rules=(rule("allow"),))
    assert (decision.decision, decision.rule) == ("deny", "restricted.tool")


def test_where_nobody_can_be_asked_it_is_refused() -> None:
    decision = judged(unattended=True)
    assert (decision.decision, decision.code) == ("deny", "PERMISSION_DENIED")


def test_a_yes_can_be_for_the_calls_after_it() -> None:
    assert judged().grants == (NAME,)
    decision = judged(grants=(GRANT,))
    assert (decision.decision, decision.rule) == ("allow", "grant.g-1")
    assert judged(grants=(Grant(id="g-2", command="mcp__github__get_issues"),)).decision == "confirm"


def test_a_grant_lifts_no_refusal() -> None:
    assert judged("plan", grants=(GRANT,)).decision == "deny"


def test_a_grant_for_a_tool_is_none_for_a_command_of_that_name() -> None:
    assert decided("mcp__github__get_issue", grants=(GRANT,)).decision == "confirm"
    assert decided("mcp__github__get_issue").grants == ()


CHANGED_ANYWAY = [
    {"mode": "full"},
    {"grants": (GRANT,)},
    {"rules": (rule("allow"),)},
    {"servers": (TrustedServer("github", read_only=("*",)),)},
    {"mode": "plan", "servers": (TrustedServer("github", read_only=("*",)),)},
]


@pytest.mark.parametrize("allowing", CHANGED_ANYWAY)
def test_a_tool_that_became_another_asks_whatever_allows_it(allowing: dict[str, object]) -> None:
    assert judged(**allowing).decision == "allow"  # type: ignore[arg-type]
    decision = judged(changed=True, **allowing)  # type: ignore[arg-type]
    assert (decision.decision, decision.rule) == ("confirm", "tool.changed")
    assert decision.grants == (NAME,)
    assert judged(changed=True, unattended=True, **allowing).decision == "deny"  # type: ignore[arg-type]


def test_a_no_stays_a_no_for_a_tool_that_became_another() -> None:
    assert judged("plan", changed=True).decision == "deny"
    assert judged(changed=True, rules=(rule("deny"),)).decision == "deny"


ABOUT = ["mcp__github__get_issue", "mcp__github__get_*", "mcp__github__*", "mcp__github"]
NOT_ABOUT = ["mcp__github__get", "mcp__git", "mcp__github__set_*", "mcp__gitlab__*", "mcp__gitlab"]


@pytest.mark.parametrize("tool", ABOUT)
def test_a_rule_names_one_tool_some_or_all_of_a_server(tool: str) -> None:
    assert judged(rules=(rule("allow", tool),)).decision == "allow"
    assert judged("full", rules=(rule("confirm", tool),)).decision == "confirm"
    assert judged("full", rules=(rule("deny", tool),)).decision == "deny"
    assert judged("plan", rules=(rule("allow", tool),)).decision == "deny"


@pytest.mark.parametrize("tool", NOT_ABOUT)
def test_a_rule_about_other_tools_says_nothing(tool: str) -> None:
    for verdict in ("allow", "deny"):
        assert judged(rules=(rule(verdict, tool),)).rule == "tool.mcp"


def test_in_another_spelling_a_rule_refuses_and_does_not_allow() -> None:
    assert judged(rules=(rule("deny", "MCP__GitHub__Get_Issue"),)).decision == "confirm"  # is about no such tool
    assert judged(rules=(rule("deny", "mcp__GitHub__Get_Issue"),)).decision == "deny"
    assert judged(rules=(rule("allow", "mcp__GitHub__get_issue"),)).decision == "confirm"


def test_rules_for_every_tool_count_beside_those_for_one() -> None:
    assert judged(rules=(rule("deny", "*"),)).decision == "deny"
    assert judged(rules=(rule("allow"), rule("deny", "*"))).decision == "deny"
    assert judged(rules=(rule("allow"), rule("deny", "*", "docs/**"))).decision == "allow"


def test_of_all_rules_the_strictest_decides() -> None:
    for first, second in itertools.permutations(("allow", "confirm", "deny"), 2):
        said = (rule(first, "mcp__github__*"), rule(second))
        strictest = "deny" if "deny" in {first, second} else "confirm"
        assert judged("full", rules=said).decision == strictest


@pytest.mark.parametrize("tool", ["mcp__*", "mcp__g*", "mcp__?__x", "mcp__[ab]__x", "mcp__"])
def test_no_rule_allows_the_tools_of_any_server(tool: str) -> None:
    (fault,) = review((rule("allow", tool),))
    assert fault.is_error
    assert "name the server" in fault.problem
    assert review((rule("deny", tool),)) == ()


def test_sound_rules_about_servers_are_sound() -> None:
    for tool in ABOUT:
        assert review((rule("allow", tool),)) == ()
