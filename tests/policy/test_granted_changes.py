"""The grants for plain edits and for local git, and the prompts that a preview may answer."""

import pytest
from tests.policy.deciding import EXEC, decided, facts_of

from handrail.policy.changeset import are_tool_caches, judge_changes
from handrail.policy.config import Grant, PolicyConfig, Rule
from handrail.policy.decide import decide, is_default_prompt
from handrail.policy.parse import parse_command
from handrail.protocol.changes import Change
from handrail.protocol.decisions import Facts, PathFact
from handrail.protocol.permissions import StandingGrant
from handrail.protocol.tool_spec import Arguments, ToolSpec

WRITE = ToolSpec(name="write", title="", description="", arguments=Arguments, data=Arguments, permissions=("fs.write",))
EDITS = Grant("g-1", StandingGrant.EDITS)
GIT = Grant("g-2", StandingGrant.LOCAL_GIT)


# Plain edits


@pytest.mark.parametrize(
    ("fact", "allowed"),
    [
        (PathFact(path="a", access="write", kind="file", real="a"), True),
        (PathFact(path="a", access="write", kind="file", real="a", sets_mode=True), False),
        (PathFact(path="a", access="delete", kind="file", real="a"), False),
        (PathFact(path=".envrc", access="write", kind="missing", real=".envrc"), False),
    ],
)
def test_the_grant_for_plain_edits_allows_file_tools_that_edit(fact: PathFact, allowed: bool) -> None:
    facts = Facts(paths=(fact,))
    assert decide(WRITE, None, facts, PolicyConfig("ask")).edits is allowed
    decision = decide(WRITE, None, facts, PolicyConfig("ask", grants=(EDITS,)))
    assert (decision.decision == "allow", decision.rule == "grant.g-1") == (allowed, allowed)


@pytest.mark.parametrize(("options", "offered"), [({}, True), ({"unattended": True}, False), ({"mode": "auto"}, False)])
def test_the_grant_for_plain_edits_is_for_ask_with_a_person(options: dict[str, object], offered: bool) -> None:
    mode = options.get("mode", "ask")
    rules = PolicyConfig(mode, unattended=bool(options.get("unattended")))  # type: ignore[arg-type]
    assert rules.can_grant_edits is offered


def test_a_command_may_be_plain_edits_if_its_preview_shows_that() -> None:
    assert decided("python3 x.py", tier=3).edits
    assert not decided("git push", tier=3).edits
    secret = Rule(id="r", verdict="deny", pattern="private/**", tool="read")
    assert not decided("python3 x.py", tier=3, rules=(secret,)).edits


@pytest.mark.parametrize(
    ("change", "is_edit"),
    [
        (Change(path="a", action="modified"), True),
        (Change(path="a", action="created"), True),
        (Change(path="a", action="deleted"), False),
        (Change(path="a", action="created", kind="link"), False),
        (Change(path="b", action="created", renamed_from="a"), False),
        (Change(path=".git/index", action="modified"), False),
        (Change(path="/data/a", action="modified"), False),
    ],
)
def test_the_changes_of_a_command_are_plain_edits_or_not(change: Change, is_edit: bool) -> None:
    assert judge_changes((change,), PolicyConfig("ask"), undo=True).edits is is_edit


# Local git


@pytest.mark.parametrize(
    "command",
    [
        "git add -A",
        "git --no-pager add a",
        "git -P stage a b",
        "git commit -qam x",
        "git commit --message=x --author 'A <a@b.c>'",
        "git commit -m x -- a",
        "git commit -m \"$(cat <<'EOF'\nFix $HOME & more\nEOF\n)\"",
        "git checkout -b new",
        "git switch -c new",
        "git stash push -m x",
        "git reset -q HEAD a",
        "git merge --no-ff side",
    ],
)
def test_everyday_git_has_one_grant(command: str) -> None:
    assert decided(command, tier=3).grants == (StandingGrant.LOCAL_GIT,)
    assert decided(command, tier=3, grants=(GIT,)).decision == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git commit --amend",
        "git commit -n -m x",
        "git commit -m",
        "git commit --message",
        "git checkout -B x",
        "git branch -D x",
        "git branch -f x",
        "git reset --hard",
        "git reset HEAD~1",
        "git stash drop",
        "git stash clear",
        "git tag -d v1",
        "git merge -s ours x",
        'git commit -m "$(cat <<EOF\n$HOME\nEOF\n)"',
        "git commit -m \"$(cat <<'EOF'\nx\nEOF\nrm -r y\n)\"",
    ],
)
def test_git_that_loses_or_skips_something_has_no_grant(command: str) -> None:
    decision = decided(command, tier=3, grants=(GIT,))
    assert (decision.decision, decision.grants) == ("confirm", ())


def test_without_an_overlay_each_sub_command_has_its_own_grant() -> None:
    assert decided("git add a", tier=2).grants == ("git add",)
    old = Grant("g-3", "git add")
    assert decided("git add a", tier=3, grants=(old,)).rule == "grant.g-3"
    assert decided("git commit -m x", tier=3, grants=(old,)).decision == "confirm"


def test_the_grant_for_local_git_covers_tracked_files_and_no_lost_branch() -> None:
    rules = PolicyConfig("ask", grants=(GIT,))
    tracked = frozenset({"a"})
    own = (Change(path=".git/index", action="modified"), Change(path="a", action="modified"))
    assert judge_changes(own, rules, undo=True, spoken_for=True, tracked=tracked).decision == "allow"
    other = (*own, Change(path="b", action="modified"))
    assert judge_changes(other, rules, undo=True, spoken_for=True, tracked=tracked).rule == "git.untracked"
    lost = (Change(path=".git/refs/heads/x", action="deleted"),)
    assert judge_changes(lost, rules, undo=True, spoken_for=True, tracked=tracked).rule == "git.lost"


# Prompts that a preview may answer


@pytest.mark.parametrize(
    ("command", "options", "is_default"),
    [
        ("python3 x.py", {}, True),
        ("python3 x.py", {"unattended": True}, False),
        ("curl https://example.org", {}, False),
        ("python3 x.py", {"rules": (Rule(id="r", verdict="confirm", pattern="python3"),)}, False),
        ("python3 x.py", {"rules": (Rule(id="r", verdict="deny", pattern="x/**", tool="*"),)}, False),
    ],
)
def test_only_prompts_of_the_mode_are_default_prompts(
    command: str, options: dict[str, object], is_default: bool
) -> None:
    rules = PolicyConfig("ask", **options)  # type: ignore[arg-type]
    assert is_default_prompt(EXEC, None, facts_of(command, tier=3), rules) is is_default


def test_no_other_mode_has_default_prompts() -> None:
    assert not is_default_prompt(EXEC, None, facts_of("python3 x.py", tier=3), PolicyConfig("plan"))


@pytest.mark.parametrize(
    ("command", "leaves"),
    [
        ("node s.js &", True),
        ("cat <<EOF && sleep 9 &\n x & y\nEOF\n", True),
        ("node s.js & sleep 1; kill %1", False),
        ("(a; b) & wait", False),
        ("cat > t.c <<'EOF'\nf(&r);\nEOF\ncc t.c", False),
        ("echo 'a & b' && x 2>&1 | y &> z", False),
    ],
)
def test_background_jobs_are_found_outside_of_quoted_text(command: str, leaves: bool) -> None:
    assert parse_command(command).may_leave_processes is leaves


@pytest.mark.parametrize(
    ("command", "checks"),
    [("pytest -q", True), ("ls && ruff check", True), ("pytest -q && make", False), ("pytest > log", False)],
)
def test_commands_of_test_runners_and_linters_are_known(command: str, checks: bool) -> None:
    assert parse_command(command).is_test_or_lint is checks


def test_a_cache_that_replaces_or_runs_something_is_none() -> None:
    path = ".pytest_cache/a"
    assert are_tool_caches((Change(path=path, action="created", kind="folder"),))
    assert not are_tool_caches((Change(path=path, action="deleted"),))
    assert not are_tool_caches((Change(path=path, action="created", mode=0o755),))
