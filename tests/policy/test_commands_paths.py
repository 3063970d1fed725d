"""Decisions about the paths that a command uses."""

from typing import Any

import pytest
from tests.policy.deciding import EXEC, ROOT, decided

from handrail.policy.config import Rule
from handrail.policy.decide import PolicyConfig, decide
from handrail.protocol.decisions import MODES, CommandFact, Decision, Facts, PathFact


def verdicts(command: str, **more: object) -> str:
    """One letter a mode: a allow, c confirm, d deny; plan, ask, auto, full."""
    return "".join(decided(command, mode, **more).decision[0] for mode in MODES)


@pytest.mark.parametrize(
    ("command", "expected", "rule"),
    [
        ("cat src/*.py", "aaaa", "exec.read-only"),
        ("cat *.py src/*.js", "aaaa", "exec.read-only"),
        (f"cat {ROOT}/src/*.py", "aaaa", "exec.read-only"),
        ("cat src/*/x/*.py", "aaaa", "exec.read-only"),
        ("cat out/*.py", "dddd", "fs.outside"),
        ("cat /etc/*.conf", "dddd", "fs.outside"),
        ("cat ../*.py", "dddd", "fs.outside"),
        ("cat src/../*.py", "dddd", "fs.outside"),
        ("cat src/../a.py", "aaaa", "exec.read-only"),
        ("cat id_r*", "dddd", "fs.secret"),
        ("cat 'id_r*'", "aaaa", "exec.read-only"),
        ("cat 'id_r*' id_r*", "dddd", "fs.secret"),
        ("cat 'src/*' src/*", "aaaa", "exec.read-only"),
        ("cat server.k*", "dddd", "fs.secret"),
        ("frobnicate id_r*", "dddd", "fs.secret"),
        ("frobnicate 'id_r*'", "dcaa", "exec.unknown"),
        ("rm *", "dcaa", "fs.delete"),
        (f"rm -rf {ROOT}/*", "dcaa", "fs.delete"),
        ("rm src/*", "dcaa", "fs.delete"),
        ("rm .github/x src/*", "dcca", "fs.protected"),
        (f"rm -rf {ROOT}", "dddd", "deny.workspace"),
        (f"rm -rf {ROOT}/src/..", "dddd", "deny.workspace"),
        (f"chmod 755 {ROOT}", "dddd", "deny.workspace"),
        (f"chown me {ROOT}", "dddd", "deny.workspace"),
        (f"chgrp us {ROOT}", "dddd", "deny.workspace"),
        (f"/bin/chmod 755 {ROOT}", "dddd", "deny.workspace"),
        (f"chmod 755 {ROOT}/a", "dcaa", "fs.write"),
        (f"chmod --reference={ROOT} a", "dcaa", "fs.write"),
        (f"touch {ROOT}", "dcaa", "fs.write"),
        (f"ls {ROOT}", "aaaa", "exec.read-only"),
        ("touch /tmp/x", "daaa", "fs.temporary"),
        ("rm /tmp/x", "daaa", "fs.temporary"),
        ("ls /tmp", "aaaa", "exec.read-only"),
        ("ls /tmp/", "aaaa", "exec.read-only"),
        ("ls /tmp/.", "aaaa", "exec.read-only"),
        ("ls /tmpx", "dddd", "fs.outside"),
        ("ls /tmp/..", "dddd", "fs.outside"),
        ("ls /a/tmp/x", "dddd", "fs.outside"),
        ("rsync -a host:x a", "dcca", "exec.network"),
        ("rsync -a host:x ../y", "dddd", "fs.outside"),
        ("sed -i s/a/b/ a", "dcaa", "exec.interpreter"),
        ("sed -i s/a/b/ .git/config", "dcca", "fs.protected"),
        ("touch", "dcaa", "exec.write"),
        ("ln -s src/a", "dcaa", "exec.write"),
        ("rm -f", "dcaa", "exec.delete"),
        ("frobnicate .git/config", "dcaa", "exec.unknown"),
        ("cp a/x .", "dcaa", "fs.write"),
        ("cp a/handrail.toml .", "dcca", "fs.protected"),
        ("cp a .git/config", "dcca", "fs.protected"),
    ],
)  # fmt: skip
def test_a_command_is_judged_by_what_it_does_to_its_paths(command: str, expected: str, rule: str) -> None:
    assert verdicts(command, tier=3) == expected
    assert decided(command, tier=3).rule == rule


def test_what_a_command_does_in_the_sandboxes_own_tmp_is_gone_with_it() -> None:
    assert decided("rm /tmp/x", "auto", tier=2).decision == "allow"
    assert decided("rm x", "auto", tier=2).decision == "confirm"
    assert decided("rm /tmp/x", "auto", tier=1).rule == "fs.outside"
    assert decided("rm /tmp/x").reason == "the sandbox removes its own /tmp after the command"
    assert decided("cp a /tmp/../etc/x").rule == "fs.outside"
    assert decided("echo x > /tmp/x", tier=1).rule == "fs.outside"


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("rm a b", "ask mode asks before every deletion: a"),
        ("cat a /etc/b", "the path leads outside the workspace: /etc/b"),
        ("cat src/../*.py", "the pattern src/../*.py may lead outside the workspace"),
        ("cp a .git/config", "this file controls tools, hooks or builds, so changes need approval: .git/config"),
        ("cp a/handrail.toml .", "this file controls tools, hooks or builds, so changes need approval: handrail.toml"),
        ("cat .env", "credentials may be neither read nor written: .env"),
        (f"rm -rf {ROOT}", "a root folder can be neither deleted nor given away"),
        ("cat *.py *.js", "cat only reads"),
        ("python x.py", "python runs the code that it is given"),
    ],
)
def test_the_reason_names_the_path(command: str, reason: str) -> None:
    assert decided(command).reason.replace("./handrail", "handrail") == reason


def test_in_plan_mode_the_reason_says_what_that_promises() -> None:
    assert decided("touch", "plan").reason == "touch writes the files that it names; plan mode changes nothing"
    assert decided("python x.py", "plan").reason == (
        "python runs the code that it is given; plan mode runs only commands that handrail can prove harmless"
    )


@pytest.mark.parametrize("command", ["cat src/../*.py", "cat ../x", "cat out/x"])
def test_what_leads_outside_says_so_by_its_code(command: str) -> None:
    assert decided(command).code == "OUTSIDE_WORKSPACE"


def known(command: str, *paths: PathFact, mode: str = "auto", **rules: Any) -> Decision:
    facts = Facts(paths=paths, command=CommandFact(text=command, tier=3))
    return decide(EXEC, None, facts, PolicyConfig(mode, **rules))  # type: ignore[arg-type]


def fact(path: str, access: str, **more: Any) -> PathFact:
    return PathFact(path=path, access=access, **{"kind": "file", "real": path, **more})  # type: ignore[arg-type]


def test_a_workspace_in_tmp_is_a_workspace() -> None:
    path = "/tmp/shop/.git/config"
    assert known(f"touch {path}", fact(path, "write", real=".git/config")).rule == "fs.protected"
    assert known("rm -rf /tmp/shop", fact("/tmp/shop", "delete", real=".")).rule == "deny.workspace"


def test_a_word_that_may_be_a_path_is_no_credential_also_where_nothing_is_known_of_it() -> None:
    assert known("frobnicate a").decision == "allow"
    assert known("frobnicate .env").rule == "fs.secret"
    assert known("frobnicate a", fact("a", "read", real=".env")).rule == "fs.secret"
    assert known("frobnicate a", fact("a", "read", credential=True)).rule == "fs.secret"
    assert known("frobnicate a", fact("a", "read", real=None)).decision == "allow"
    assert known("frobnicate .git/config").decision == "allow"
    assert known("frobnicate 'id_r*'").decision == "allow"
    assert known("git log main").decision == "allow"


@pytest.mark.parametrize("command", ["ln -s docs/x", "ln docs/x", "install docs/x", "touch -r docs/x", "dd if=docs/x"])
@pytest.mark.parametrize("more", [{}, {"real": "manual/x", "named": "docs/x"}])
def test_what_changes_files_that_it_does_not_name_is_judged_by_what_it_does(command: str, more: dict[str, str]) -> None:
    """Wherever the files lead that it reads."""
    assert known(command, fact("docs/x", "read", **more), mode="plan").decision == "deny"
    assert known(command, fact("docs/x", "read", **more), mode="ask").rule == "exec.write"


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({"real": "plain", "named": ".config/gh/hosts.yml"}, "fs.secret"),
        ({"real": ".git/config", "named": ".config/gh/hosts.yml"}, "fs.secret"),
        ({"real": ".env", "named": "plain"}, "fs.secret"),
        ({"real": "plain", "named": "other"}, "exec.read-only"),
    ],
)
def test_a_link_on_the_way_is_judged_by_both_names(more: dict[str, str], rule: str) -> None:
    path = ".config/x/../gh/hosts.yml"
    assert known(f"cat {path}", fact(path, "read", **more)).rule == rule
    assert known(f"frobnicate < {path}", fact(path, "read", **more)).rule == rule.replace("read-only", "unknown")


def test_what_is_no_file_may_be_read_without_end_so_it_asks() -> None:
    for mode, expected in (("plan", "confirm"), ("full", "confirm")):
        found = known("cat pipe", fact("pipe", "read", kind="other", real="pipe", named="x"), mode=mode)
        assert (found.decision, found.rule) == (expected, "fs.special")
    assert known("cat pipe", fact("pipe", "read", kind="other")).rule == "fs.special"
    assert known("cat pipe", fact("pipe", "read", kind="other", real=None)).rule == "fs.outside"
    assert known("rm pipe", fact("pipe", "delete", kind="other")).rule == "fs.delete"


def test_a_root_that_may_only_be_read_is_not_written_to_by_a_command_either() -> None:
    path = "/data/x"
    assert known(f"touch {path}", fact(path, "write", writable=False), mode="full").rule == "fs.read-only"
    assert known(f"cat {path}", fact(path, "read", writable=False), mode="plan").decision == "allow"


def test_what_steers_a_repository_of_any_name_asks_before_a_command_changes_it() -> None:
    assert known("touch x/config", fact("x/config", "write", repository=True)).rule == "fs.protected"


NO_DOCS = (Rule(id="no-docs", verdict="deny", pattern="docs/**", tool="*"),)


@pytest.mark.parametrize(
    ("command", "path", "rule"),
    [
        ("cat docs/x", fact("docs/x", "read"), "no-docs"),
        ("touch docs/x", fact("docs/x", "write", kind="missing"), "no-docs"),
        ("cat x", fact("x", "read", real="docs/x", named="x"), "no-docs"),
        ("cat docs/x", fact("docs/x", "read", real="manual/x", named="docs/x"), "no-docs"),
        ("cat x", fact("x", "read", real="docs/x"), "no-docs"),
        ("ls > docs/x", fact("docs/x", "write", kind="missing"), "no-docs"),
        ("cat docs/*.md", fact("docs", "read", kind="directory"), "no-docs"),
        ("frobnicate docs/x", fact("docs/x", "read"), "no-docs"),
        ("frobnicate docs/x", fact("docs/x", "read", kind="missing"), "exec.unknown"),
        ("frobnicate docs/x", fact("other", "read"), "exec.unknown"),
        ("cat x", fact("x", "read"), "exec.read-only"),
        ("cat x", fact("x", "read", real=None), "fs.outside"),
    ],
)
def test_a_rule_for_every_tool_is_about_the_paths_of_commands_by_every_name(
    command: str, path: PathFact, rule: str
) -> None:
    assert known(command, path, rules=NO_DOCS).rule == rule


def test_a_rule_that_allows_a_path_says_nothing_of_a_command() -> None:
    rules = (Rule(id="src", verdict="allow", pattern="src/**", tool="*"),)
    assert known("cat src/a", fact("src/a", "read"), rules=rules).rule == "exec.read-only"
    assert known("touch src/a", fact("src/a", "write"), mode="ask", rules=rules).rule == "fs.write"
    assert known("frobnicate src/a", fact("src/a", "read"), mode="ask", rules=rules).rule == "exec.unknown"


@pytest.mark.parametrize(
    ("command", "path", "rule"),
    [
        ("rm -rf /data", fact("/data", "delete", root=True), "deny.workspace"),
        ("chmod 755 /data", fact("/data", "write", root=True), "deny.workspace"),
        ("touch /data", fact("/data", "write", root=True), "fs.write"),
        ("rm /data/*", fact("/data/.", "delete", real="/data", root=True), "fs.delete"),
        ("rm /tmp/*", fact("/tmp/.", "delete", real=None, root=True), "deny.workspace"),
        ("rm /tmp/x", fact("/tmp/x", "delete", real=None), "fs.temporary"),
    ],
)
def test_no_root_goes_as_a_whole(command: str, path: PathFact, rule: str) -> None:
    assert known(command, path).rule == rule


def test_what_is_known_of_the_folders_says_where_a_command_runs() -> None:
    facts = Facts(
        paths=(fact("a", "read", kind="directory"), fact("../x", "read", real=None), fact("a/../x", "read", real="x")),
        command=CommandFact(text="cd a; cat ../x", there=("a",)),
    )
    assert decide(EXEC, None, facts, PolicyConfig("plan")).decision == "allow"
    unknown = Facts(paths=facts.paths, command=CommandFact(text="cd a; cat ../x"))
    assert decide(EXEC, None, unknown, PolicyConfig("plan")).rule == "fs.outside"


def test_a_root_that_is_only_read_is_not_given_away() -> None:
    facts = (fact("/r", "read", real=".", named="z"), fact("a", "write"))
    assert known("chmod --reference=/r a", *facts).decision == "allow"
