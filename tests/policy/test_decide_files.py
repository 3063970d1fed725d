"""Decisions on file tools: rules, bulk changes, the restricted profile."""

from typing import Any

import pytest

from handrail.policy.config import PolicyConfig, RestrictedProfile, Rule
from handrail.policy.decide import decide
from handrail.protocol.decisions import MODES, CommandFact, Decision, Facts, PathFact
from handrail.protocol.tool_spec import Arguments, ToolSpec


def tool(*permissions: str, **more: Any) -> ToolSpec:
    fields = {"name": "write", "title": "", "description": "", "arguments": Arguments, "data": Arguments, **more}
    return ToolSpec(permissions=permissions, **fields)  # type: ignore[arg-type]


def path(name: str, access: str = "write", **more: Any) -> PathFact:
    return PathFact(path=name, access=access, kind="file", **{"real": name, **more})  # type: ignore[arg-type]


def decided(*paths: PathFact, mode: str = "ask", spec: ToolSpec | None = None, **rules: Any) -> Decision:
    return decide(spec or tool("fs.write"), None, Facts(paths=paths), PolicyConfig(mode, **rules))  # type: ignore[arg-type]


def verdicts(*paths: PathFact, **more: Any) -> str:
    """One letter a mode: a allow, c confirm, d deny; plan, ask, auto, full."""
    return "".join(decided(*paths, mode=mode, **more).decision[0] for mode in MODES)


def rule(verdict: str, pattern: str, tool: str = "write", **more: Any) -> Rule:
    return Rule(id=verdict, verdict=verdict, pattern=pattern, tool=tool, **more)  # type: ignore[arg-type]


ALLOW, ASK, DENY = rule("allow", "docs/**"), rule("confirm", "docs/**"), rule("deny", "docs/**")


@pytest.mark.parametrize(
    ("rules", "fact", "expected", "deciding"),
    [
        ((ALLOW,), path("docs/a"), "daaa", "allow"),
        ((ALLOW,), path("src/a"), "dcaa", "fs.write"),
        ((ASK,), path("docs/a"), "dccc", "confirm"),
        ((DENY,), path("docs/a"), "dddd", "deny"),
        ((ALLOW, DENY), path("docs/a"), "dddd", "deny"),
        ((ASK,), path("docs/a", "read"), "cccc", "confirm"),
        ((DENY,), path("link", real="docs/a", named="link"), "dddd", "deny"),
        ((DENY,), path("docs/link", real="src/a", named="docs/link"), "dddd", "deny"),
        ((ALLOW,), path("docs/link", real="src/a", named="docs/link"), "dcaa", "fs.write"),
        ((ALLOW,), path("link", real="docs/a", named="link"), "dcaa", "fs.write"),
        ((ALLOW,), path("docs/link", real="docs/a", named="docs/link"), "daaa", "allow"),
        ((rule("allow", "docs/**", "edit"),), path("docs/a"), "dcaa", "fs.write"),
        ((rule("deny", "**", "*"),), path("docs/a"), "dddd", "deny"),
        ((rule("deny", "docs", "exec"),), path("docs/a"), "dcaa", "fs.write"),
    ],
)
def test_a_rule_about_a_path_decides_instead_of_the_mode(
    rules: tuple[Rule, ...], fact: PathFact, expected: str, deciding: str
) -> None:
    """But in plan mode, in which nothing is changed."""
    assert verdicts(fact, rules=rules) == expected
    found = decided(fact, rules=rules)
    assert (found.rule, found.subject) == (deciding, fact.path)
    assert (found.code == "POLICY_DENIED") == (found.decision == "deny")


@pytest.mark.parametrize(
    ("fact", "deciding"),
    [
        (path(".env"), "fs.secret"),
        (path("x", real=None), "fs.outside"),
        (path("a", writable=False), "fs.read-only"),
        (path("a", real="b", named=".ssh/a"), "fs.secret"),
    ],
)
def test_no_rule_about_a_path_lifts_what_is_built_in(fact: PathFact, deciding: str) -> None:
    for rules in ((rule("allow", "**"),), (rule("allow", fact.path),), (rule("allow", "**", "*"),)):
        assert (verdicts(fact, rules=rules), decided(fact, rules=rules).rule) == ("dddd", deciding)


@pytest.mark.parametrize(
    "fact",
    [
        path("x/config", repository=True),
        path("x/config", "delete", repository=True),
        path("x/link", real="y/config", named="x/link", repository=True),
    ],
)
def test_a_rule_about_names_does_not_allow_what_steers_a_repository_of_any_name(fact: PathFact) -> None:
    for pattern in ("**", "x/**", "x/config"):
        assert verdicts(fact, rules=(rule("allow", pattern, "*"),)) == "dcca"
        assert decided(fact, rules=(rule("allow", pattern, "*"),)).rule == "fs.protected"
    assert verdicts(fact, rules=(rule("deny", "x/**"),)) == "dddd"
    assert verdicts(path("x/config", "read", repository=True)) == "aaaa"


def test_a_rule_about_a_link_does_not_open_a_folder_outside() -> None:
    fact = path("docs/link", real=None, named="docs/link", outside="/data/x", folder="/data")
    assert verdicts(fact, outside="ask", rules=(ALLOW,)) == "dccc"
    assert decided(fact, outside="ask", rules=(ALLOW,)).rule == "fs.outside"
    assert decided(fact, outside="ask", rules=(DENY,)).rule == "deny"


def test_the_reason_for_a_credential_names_nothing_but_what_the_call_named() -> None:
    assert decided(path(".env")).reason == "credentials may be neither read nor written"


def test_the_reason_of_a_rule_is_its_own_or_says_where_it_stands() -> None:
    told = [rule("deny", "docs/**", **more) for more in ({"because": "it is made"}, {"source": "user:12"}, {})]
    reasons = [decided(path("docs/a"), rules=(one,)).reason for one in told]
    assert reasons == ["it is made", "a rule decides this (user:12)", "a rule decides this (user)"]


@pytest.mark.parametrize(
    ("rules", "expected", "deciding"),
    [
        ((rule("allow", "**"),), "daaa", "allow"),
        ((rule("confirm", "**"),), "dccc", "confirm"),
        ((rule("deny", "**"),), "dddd", "deny"),
        ((rule("deny", "docs/**"),), "dcaa", "tool.fs.write"),
        ((rule("deny", "**", "edit"),), "dcaa", "tool.fs.write"),
    ],
)
def test_a_tool_without_paths_is_about_the_workspace_as_a_whole(
    rules: tuple[Rule, ...], expected: str, deciding: str
) -> None:
    assert verdicts(rules=rules) == expected
    assert decided(rules=rules).rule == deciding


def test_a_rule_about_the_whole_workspace_says_nothing_of_a_path_that_is_named() -> None:
    """A rule about `.` covers what is below where it refuses, but a path that is named is judged by its own name."""
    assert decided(path("src/a"), rules=(rule("allow", "./."),)).rule == "fs.write"
    assert decided(rules=(rule("allow", "./."),)).rule == "allow"


def test_a_rule_about_a_path_says_nothing_of_the_network() -> None:
    spec = tool("fs.write", "net.connect")
    for pattern in ("**", "./."):
        found = decided(path("src/a"), mode="auto", spec=spec, rules=(rule("allow", pattern),))
        assert (found.decision, found.rule) == ("confirm", "tool.net.connect")


def test_what_a_rule_does_not_allow_is_shown_beside_what_the_mode_says() -> None:
    assert [part.rule for part in decided(rules=(rule("confirm", "**"),)).parts] == ["tool.fs.write", "confirm"]
    assert decided(rules=(rule("allow", "**"),)).parts == ()


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        (tool("fs.write"), "ask mode asks before every write"),
        (tool("git.write"), "ask mode asks before every write"),
        (tool("fs.delete"), "ask mode asks before every deletion"),
        (tool("proc.exec"), "handrail cannot prove that it changes nothing"),
        (tool("net.connect"), "network access needs approval"),
        (tool(category="custom"), "handrail cannot prove that it changes nothing"),
    ],
)
def test_a_tool_without_paths_is_told_why_it_asks(spec: ToolSpec, reason: str) -> None:
    assert decided(spec=spec).reason == reason


def test_a_tool_of_ours_that_needs_nothing_runs() -> None:
    found = decided(spec=tool(), mode="plan")
    assert (found.decision, found.rule, found.code) == ("allow", "tool.harmless", None)


def test_a_rule_about_paths_speaks_for_a_custom_tool_as_it_does_for_ours() -> None:
    custom = tool("net.connect", category="custom", side_effects=("network",))
    assert verdicts(spec=custom) == "dcca"
    assert verdicts(spec=custom, rules=(rule("allow", "**"),)) == "daaa"
    assert verdicts(spec=custom, rules=(rule("deny", "**"),)) == "dddd"


def test_a_rule_about_paths_says_nothing_of_a_command() -> None:
    spec, facts = tool("proc.exec", name="exec"), Facts(command=CommandFact(text="ls"))
    rules = (rule("deny", "**", "*"), rule("allow", "**", "write"))
    assert decide(spec, None, facts, PolicyConfig("ask", rules=rules)).rule == "exec.read-only"


def test_a_command_speaks_for_what_its_tool_needs_but_for_the_network() -> None:
    facts = Facts(command=CommandFact(text="ls"))
    assert decide(tool("proc.exec", "fs.write"), None, facts, PolicyConfig("plan")).decision == "allow"
    asked = decide(tool("proc.exec", "net.connect"), None, facts, PolicyConfig("ask"))
    assert (asked.decision, asked.rule, asked.subject) == ("confirm", "tool.net.connect", "net.connect")


def test_paths_speak_for_the_file_permissions_and_only_where_there_are_any() -> None:
    assert decided(path("a", "read"), mode="plan").decision == "allow"
    assert decided(mode="plan").rule == "tool.fs.write"
    assert decided(path("a", "read"), mode="plan", spec=tool("git.write")).rule == "tool.git.write"


def files(count: int, access: str = "delete") -> list[PathFact]:
    return [path(f"f{n}", access) for n in range(count)]


@pytest.mark.parametrize(
    ("facts", "bulk"),
    [
        (files(20), False),
        (files(21), True),
        (files(200, "write"), False),
        (files(201, "write"), True),
        (files(300, "read"), False),
        (files(20) + files(180, "write"), False),
        (files(20) + files(181, "write"), True),
        (files(21) + files(100, "read"), True),
        (files(20) + files(300, "read"), False),
    ],
)
def test_very_many_files_at_once_ask(facts: list[PathFact], bulk: bool) -> None:
    assert verdicts(*facts) == ("dcca" if bulk else "aaaa" if facts[0].access == "read" else "dcaa")
    assert (decided(*facts, mode="auto").rule == "fs.bulk") == bulk


def test_how_many_are_very_many_can_be_set() -> None:
    for limits in ({"bulk_deleted": 1}, {"bulk_changed": 1}):
        assert decided(*files(1), mode="auto", **limits).decision == "allow"
        found = decided(*files(2), mode="auto", **limits)
        assert (found.rule, found.reason) == ("fs.bulk", "it changes 2 files at once, of which it deletes 2")


def test_no_rule_allows_very_many_files_at_once() -> None:
    found = decided(*files(21), mode="auto", rules=(rule("allow", "**"),))
    assert (found.decision, found.rule, found.subject) == ("confirm", "fs.bulk", "files")


def test_what_a_tool_of_ours_does_can_be_undone_and_what_others_do_cannot() -> None:
    custom = tool("fs.write", category="custom", auto_execute=True)
    assert decided(path("a"), mode="auto").decision == "allow"
    assert decided(path("a"), mode="auto", spec=custom).decision == "confirm"
    assert decided(mode="auto", spec=tool("fs.write")).decision == "allow"
    assert decided(mode="auto", spec=custom).decision == "confirm"
    assert decided(*files(21, "read"), mode="auto", spec=custom).decision == "allow"


def test_a_custom_tool_that_only_looks_and_may_run_by_itself_says_so() -> None:
    found = decided(spec=tool(category="custom", auto_execute=True))
    assert (found.decision, found.rule, found.subject) == ("allow", "tool.read-only", "write")
    asked = decided(spec=tool(category="custom"))
    assert (asked.decision, asked.rule, asked.subject) == ("confirm", "tool.custom", "write")


def test_a_call_that_asks_for_all_it_needs_is_judged_as_any_other() -> None:
    spec = tool("fs.read", "fs.write")
    found = decide(spec, ("fs.write", "fs.read"), Facts(paths=(path("a"),)), PolicyConfig("ask"))
    assert (found.decision, found.rule) == ("confirm", "fs.write")
    assert [(part.rule, part.decision) for part in found.parts] == [("call.narrowed", "allow"), ("fs.write", "confirm")]


def test_a_call_that_leaves_out_what_it_needs_is_told_all_of_it() -> None:
    found = decide(tool("fs.read", "fs.write", "fs.delete"), ("fs.write",), Facts(), PolicyConfig("full"))
    assert (found.decision, found.subject) == ("deny", "call")
    assert found.reason == "the call's requested_permissions leave out fs.read, fs.delete"


RESTRICTED = RestrictedProfile(("ls",), (".minds", "logs/agent/", "BOX/"))


@pytest.mark.parametrize(
    ("fact", "expected", "deciding"),
    [
        (path(".minds/a", "read"), "aaaa", "restricted.path"),
        (path(".minds/a"), "daaa", "restricted.path"),
        (path(".minds/a", "delete"), "daaa", "restricted.path"),
        (path("logs/agent/a"), "daaa", "restricted.path"),
        (path("logs/agent"), "daaa", "restricted.path"),
        (path("BOX/a"), "daaa", "restricted.path"),
        (path("BO/a"), "dddd", "restricted.path"),
        (path("logs/other/a"), "dddd", "restricted.path"),
        (path("logs"), "dddd", "restricted.path"),
        (path("src/a", "read"), "dddd", "restricted.path"),
        (path(".minds2/a", "read"), "dddd", "restricted.path"),
        (path("x/.minds/a", "read"), "dddd", "restricted.path"),
        (path(".minds/link", "read", real="src/a", named=".minds/link"), "dddd", "restricted.path"),
        (path("link", "read", real=".minds/a", named="link"), "dddd", "restricted.path"),
        (path(".minds/b", "read", real=".minds/a", named=".minds/b"), "aaaa", "restricted.path"),
        (path(".minds/.github/ci.yml"), "dddd", "restricted.path"),
        (path(".minds/.github/ci.yml", "read"), "aaaa", "restricted.path"),
        (path(".minds/.env", "read"), "dddd", "fs.secret"),
        (path("/etc/passwd", "read", real=None), "dddd", "fs.outside"),
        (path(".minds/a", writable=False), "dddd", "fs.read-only"),
    ],
)
def test_the_restricted_profile_uses_files_in_its_folders_only(fact: PathFact, expected: str, deciding: str) -> None:
    assert verdicts(fact, restriction=RESTRICTED) == expected
    assert decided(fact, restriction=RESTRICTED).rule == deciding


def test_the_restricted_profile_asks_nobody_about_a_path_outside() -> None:
    fact = path("/data/x", "read", real=None, outside="/data/x", folder="/data")
    assert decided(fact).decision == "deny"
    assert decided(fact, outside="ask").decision == "confirm"
    found = decided(fact, outside="ask", restriction=RESTRICTED)
    assert (found.decision, found.code) == ("deny", "POLICY_DENIED")


def test_no_rule_widens_the_restricted_profile_but_one_can_narrow_it() -> None:
    allow, deny = rule("allow", "**"), rule("deny", ".minds/b")
    assert verdicts(path("src/a"), rules=(allow,), restriction=RESTRICTED) == "dddd"
    assert verdicts(path(".minds/b"), rules=(deny,), restriction=RESTRICTED) == "dddd"
    assert decided(path(".minds/b"), rules=(deny,), restriction=RESTRICTED).rule == "deny"


@pytest.mark.parametrize("permission", ["fs.write", "fs.delete", "git.write", "proc.exec", "net.connect"])
def test_the_restricted_profile_gives_no_tool_more_than_to_look(permission: str) -> None:
    assert verdicts(spec=tool(permission), restriction=RESTRICTED) == "dddd"
    assert decided(spec=tool(permission), restriction=RESTRICTED).rule == "restricted.tool"
    assert verdicts(spec=tool("fs.read"), restriction=RESTRICTED) == "aaaa"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"auto_execute": True}, "aaaa"),
        ({}, "dddd"),
        ({"auto_execute": True, "side_effects": ("files",)}, "dddd"),
        ({"side_effects": ("files",)}, "dddd"),
    ],
)
def test_the_restricted_profile_runs_no_custom_tool_that_may_have_effects(more: dict[str, Any], expected: str) -> None:
    custom = tool(category="custom", **more)
    assert verdicts(spec=custom, restriction=RESTRICTED) == expected


def test_the_restricted_profile_makes_very_many_files_a_no() -> None:
    facts = [path(f".minds/{n}", "delete") for n in range(21)]
    found = decided(*facts, restriction=RESTRICTED)
    assert (found.decision, found.rule, found.code) == ("deny", "fs.bulk", "PERMISSION_DENIED")
    assert found.reason.endswith("and the restricted profile never asks")


def test_a_write_to_a_read_only_file_asks_in_every_mode_but_full() -> None:
    kept = path("docs/a", read_only=True)
    assert verdicts(kept) == verdicts(kept, rules=(ALLOW,)) == "dcca"
    found = decided(kept, mode="auto")
    assert (found.rule, found.grants) == ("fs.read-only-file", ())
    assert found.reason == "the file is read-only by its mode; a write would still replace it"
    assert verdicts(path("docs/a", "read", read_only=True), rules=(ALLOW,)) == "aaaa"
    assert verdicts(path("docs/a", "delete", read_only=True)) == "dcaa"
    assert decided(path(".git/config", read_only=True)).rule == "fs.protected"


def test_a_lock_in_a_repository_asks_when_it_is_made_and_not_when_it_is_removed() -> None:
    for name in (".git/index.lock", "sub/.git/refs/heads/a.lock", "bare.git/HEAD.lock", ".GIT/Index.LOCK"):
        assert verdicts(path(name)) == "dcca"
        assert decided(path(name), mode="auto").rule == "fs.lock"
        assert verdicts(path(name, "delete")) == "dcaa"
    for name in ("poetry.lock", ".git/index", "git/index.lock", ".github.lock", ".git/locks"):
        assert decided(path(name), mode="auto").rule in {"fs.write", "fs.protected"}


def test_a_write_to_a_file_with_other_names_asks_in_every_mode_but_full() -> None:
    shared = path("docs/a", shared=True)
    assert verdicts(shared) == verdicts(shared, rules=(ALLOW,)) == "dcca"
    found = decided(shared, mode="auto")
    assert (found.rule, found.grants) == ("fs.hard-link", ())
    assert found.reason == (
        "the file has other names (hard links), maybe outside the workspace, and a write changes all names"
    )
    assert verdicts(path("docs/a", "read", shared=True), rules=(ALLOW,)) == "aaaa"
    assert verdicts(path("docs/a", "delete", shared=True)) == "dcaa"
    assert decided(path(".git/config", shared=True)).rule == "fs.protected"


@pytest.mark.parametrize("access", ["read", "write"])
def test_a_credential_under_another_name_is_one(access: str) -> None:
    found = path("notes", access, shared=True, credential=True)
    assert verdicts(found) == "dddd"
    assert decided(found).reason == (
        "credentials may be neither read nor written: the file has another, protected name (hard link)"
    )
