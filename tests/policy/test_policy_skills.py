"""Active skills deny what they do not cover, and allow nothing."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.policy.corpus.records import HALVES, attacks, everyday
from tests.policy.deciding import EXEC, facts_of

from handrail.policy.config import PolicyConfig, RestrictedProfile
from handrail.policy.decide import decide
from handrail.protocol.decisions import MODES, Decision, Facts, Mode, Narrowing, PathFact, ProcessFact
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.tools.find import FIND
from handrail.tools.process import PROCESS
from handrail.tools.read import READ

STRICTNESS = ("deny", "confirm", "allow")


def narrowed(command: str, *patterns: str, mode: Mode = "full", skills: tuple[str, ...] = ("commit",)) -> Decision:
    facts = replace(facts_of(command), narrowed=Narrowing(skills=skills, patterns=patterns))
    return decide(EXEC, None, facts, PolicyConfig(mode))


def is_refused(decision: Decision) -> bool:
    return (decision.decision, decision.rule, decision.code) == ("deny", "skill.commit", "POLICY_DENIED")


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status", "git:*"),
        ("git status --short", "git status:*"),
        ("git status", "git status"),
        ("git status -s", "git status *"),
        ("git add a.py && git commit -m 'one; two'", "git:*"),
        ("cd api && git status", "git:*"),
        ("git log > /dev/null 2>&1", "git:*"),
        ("git apply < fix.patch", "git:*"),
        ("npm run test -- --watch", "npm run test:*"),
        ("git log | git shortlog", "git:*"),
        ("python3 scripts/make.py", "python3 scripts/make.py:*"),
    ],
)
def test_a_command_that_the_skill_names_is_judged_as_without_it(command: str, pattern: str) -> None:
    for mode in MODES:
        assert narrowed(command, pattern, mode=mode) == decide(EXEC, None, facts_of(command), PolicyConfig(mode))


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status && rm x", "git:*"),
        ("git log | head", "git:*"),
        ("git status\nrm x", "git:*"),
        ("git status & rm x", "git:*"),
        ("git status || rm x", "git:*"),
        ("PAGER=sh git log", "git:*"),
        ("(git status)", "git:*"),
        ("GIT status", "git:*"),
        ("find . -exec rm {} +", "find:*"),
        ("ls | xargs rm", "ls:*"),
        ("cd api > log", "cd:*"),
        ("git log > log.txt", "git:*"),
        ("git status -s", "git status"),
        ("gitx status", "git:*"),
        ("./git status", "git:*"),
        ("/usr/bin/git status", "git:*"),
        ("git -c core.pager=sh log", "git:*"),
        ("env git status", "git:*"),
        ("timeout 5 git status", "git:*"),
        ("sh -c 'git status'", "git:*"),
        ("timeout 5 rm x", "timeout:*"),
        ("sh -c 'echo $HOME'", "sh:*"),
        ('git commit -m "$(date)"', "git:*"),
        ("git status $X", "git:*"),
        ("npm run tests", "npm run test:*"),
        ("git status", "git sta*"),
        ("git status", "git * status"),
        ("git status", "git; rm:*"),
    ],
)
def test_a_command_outside_the_patterns_is_refused_whatever_the_mode(command: str, pattern: str) -> None:
    for mode in MODES:
        decision = narrowed(command, pattern, mode=mode)
        assert decision.decision == "deny"
        assert any(part.rule == "skill.commit" for part in decision.parts)
    assert is_refused(narrowed(command, pattern))


def test_what_a_wrapper_starts_needs_a_pattern_too() -> None:
    assert not is_refused(narrowed("timeout 5 git status", "timeout:*", "git:*"))


def test_more_inner_commands_than_can_be_looked_at_are_named_by_nobody() -> None:
    endless = "env " * 150 + "git status"
    decision = narrowed(endless, "env:*", "git:*")
    assert [part.rule for part in decision.parts if part.decision == "deny"] == ["exec.limit", "skill.commit"]


def test_the_reason_names_the_skill_and_what_it_is_for() -> None:
    decision = narrowed("rm x", "git add:*", "git status")
    assert decision.reason == "the active skill commit is for git add:*, git status only"
    assert decision.subject == "rm x"


def test_of_several_skills_all_are_named_and_of_many_patterns_a_few() -> None:
    patterns = [f"tool{number}:*" for number in range(9)]
    decision = narrowed("rm x", *patterns, skills=("commit", "release"))
    assert decision.rule == "skill.commit"
    assert decision.reason.startswith("the active skills commit and release are for tool0:*, ")
    assert decision.reason.endswith(" and 3 more only")
    assert "nothing readable only" in narrowed("rm x").reason


def test_a_built_in_no_is_told_before_the_skills() -> None:
    assert narrowed("rm -rf /", "git:*").rule.startswith("deny.")


def of_path(spec: ToolSpec, fact: PathFact, *patterns: str) -> Decision:
    narrowing = Narrowing(skills=("commit",), patterns=patterns)
    return decide(spec, None, Facts(paths=(fact,), narrowed=narrowing), PolicyConfig("full"))


def at(path: str, kind: str = "file", **more: Any) -> PathFact:
    return PathFact(path=path, access="read", kind=kind, **{"real": path, **more})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("path", "pattern"), [("docs/a.md", "docs/**"), ("docs/x/a.md", "docs/**"), ("a.md", "*.md"), ("x/a.md", "*.md")]
)
def test_a_path_that_the_skill_names_is_read(path: str, pattern: str) -> None:
    assert of_path(READ, at(path), pattern).decision == "allow"


@pytest.mark.parametrize(
    "fact",
    [
        at("src/a.py"),
        at("docs"),
        at("docsx/a.md"),
        at("docs/link.md", real="src/a.py", named="docs/link.md"),
        at("docs/link.md", real="docs/a.md", named="src/link.md"),
        at("/etc/hosts", real=None),
    ],
)
def test_a_path_that_it_does_not_name_by_all_its_names_is_refused(fact: PathFact) -> None:
    decision = of_path(READ, fact, "docs/**")
    assert decision.decision == "deny"
    assert "skill.commit" in {decision.rule, *(part.rule for part in decision.parts)}


@pytest.mark.parametrize(
    ("folder", "pattern", "covered"),
    [
        ("docs", "docs/**", True),
        ("docs/deep", "docs/**", True),
        ("docs", "docs/*", False),
        (".", "docs/**", False),
        (".", "**", True),
        ("docs", "*.md", False),
    ],
)
def test_a_folder_is_searched_where_all_in_it_may_be_read(folder: str, pattern: str, covered: bool) -> None:
    assert (of_path(FIND, at(folder, "directory"), pattern).decision == "allow") is covered


@pytest.mark.parametrize(("action", "refused"), [("poll", False), ("kill", False), ("write", True)])
def test_what_a_program_is_sent_is_named_by_no_pattern(action: str, refused: bool) -> None:
    fact = ProcessFact(action=action, id="p-abc", command="python3 -i")
    narrowing = Narrowing(skills=("commit",), patterns=("python3:*",))
    assert is_refused(decide(PROCESS, None, Facts(process=fact, narrowed=narrowing), PolicyConfig("full"))) is refused


@pytest.mark.parametrize(("category", "refused"), [("builtin", False), ("custom", True)])
def test_a_tool_that_names_no_path_cannot_be_compared_with_any(category: Any, refused: bool) -> None:
    spec = ToolSpec(name="fetch", title="", description="", arguments=Arguments, data=Arguments, category=category)
    facts = Facts(narrowed=Narrowing(skills=("commit",), patterns=("domain:example.org",)))
    assert is_refused(decide(spec, None, facts, PolicyConfig("full"))) is refused


PATTERNS = st.lists(
    st.sampled_from(["git:*", "git status", "ls:*", "cat:*", "sh:*", "env:*", "python3:*", "find:*", "rm:*", "x y:*"]),
    max_size=4,
)
COMMANDS = [one.text for half in HALVES for one in (*attacks(half), *everyday(half))]
RESTRICTION = RestrictedProfile(commands=("ls", "git status"), folders=(".minds",))


@given(st.sampled_from(COMMANDS), PATTERNS, st.sampled_from(MODES), st.booleans(), st.booleans())
def test_no_skill_makes_a_decision_about_a_command_any_looser(
    command: str, patterns: list[str], mode: Mode, unattended: bool, restricted: bool
) -> None:
    rules = PolicyConfig(mode, unattended=unattended, restriction=RESTRICTION if restricted else None)
    facts = facts_of(command)
    plain = decide(EXEC, None, facts, rules)
    narrowing = Narrowing(skills=("commit",), patterns=tuple(patterns))
    decision = decide(EXEC, None, replace(facts, narrowed=narrowing), rules)
    assert STRICTNESS.index(decision.decision) <= STRICTNESS.index(plain.decision)
    assert decision == plain or decision.decision == "deny"
