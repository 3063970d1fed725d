"""Permissions that a call needs, and calls without one of them."""

from typing import Any

import pytest
from tests.policy.deciding import EXEC, facts_of

from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide, is_network_closed, list_permissions, list_possible_permissions
from handrail.protocol.decisions import CommandFact, Facts, PathFact, ProcessFact
from handrail.protocol.permissions import PERMISSIONS
from handrail.protocol.tool_spec import Arguments, Foreign, ToolSpec

WRITE = ToolSpec(
    name="write", title="", description="", arguments=Arguments, data=Arguments, permissions=("fs.write",)
)  # fmt: skip
FILES = "fs.write fs.delete git.write"
NEEDED = [
    ("ls", ""),
    ("cat a | sort", ""),
    ("git status", ""),
    ("git log --oneline", ""),
    ("cd src && ls 2>/dev/null", ""),
    ("touch nb", "fs.write"),
    ("tee", "fs.write"),
    ("echo x > a", "fs.write"),
    ("mkdir -p a/b && ls", "fs.write"),
    ("rm a", "fs.delete"),
    ("mv a b", "fs.write fs.delete"),
    ("rm -rf .git/hooks", "fs.delete git.write"),
    ("touch x/.GIT/config", "fs.write git.write"),
    ("make", ""),
    ("python3 x.py", ""),
    ("sed -i s/a/b/ a", "fs.write"),
    ("git commit -m x", "git.write"),
    ("git -C x commit", "git.write"),
    ("git push", "net.connect git.write"),
    ("curl https://example.org", "net.connect"),
    ("timeout 9 curl https://example.org", "net.connect"),
    ("bash -c 'rm a; curl https://example.org > b'", "fs.write fs.delete net.connect"),
    ("for f in a b; do rm $f; done", "fs.delete"),
    ("x=$(curl https://example.org) && git tag $x", "net.connect git.write"),
    ("npm --silent install", "net.connect"),
]


@pytest.mark.parametrize(("command", "needed"), NEEDED)
def test_a_command_needs_what_policy_reads_in_it(command: str, needed: str) -> None:
    assert list_permissions(EXEC, facts_of(command)) == ("proc.exec", *needed.split())


@pytest.mark.parametrize(("command", "needed"), NEEDED)
def test_denied_and_left_out_are_the_same_and_neither_asks(command: str, needed: str) -> None:
    """What is unproven may do anything to files; the network is shut to it."""
    facts = facts_of(command)
    proven = command.startswith(
        ("ls", "cat", "git status", "git log", "cd", "touch", "tee", "echo", "mkdir", "rm", "mv")
    )
    possible = {"proc.exec", *needed.split(), *(() if proven else FILES.split())}
    assert set(list_possible_permissions(EXEC, facts)) == possible
    for permission in PERMISSIONS:
        denied = decide(EXEC, None, facts, PolicyConfig("full", denied=(permission,)))
        narrow = tuple(one for one in PERMISSIONS if one != permission)
        narrowed = decide(EXEC, narrow, facts, PolicyConfig("full"))
        if permission in possible:
            assert (denied.decision, denied.rule, denied.code) == ("deny", "call.denied", "POLICY_DENIED")
            assert (narrowed.decision, narrowed.rule, narrowed.code) == ("deny", "call.narrowed", "POLICY_DENIED")
            assert permission in denied.reason
            assert permission in narrowed.reason
        else:
            assert (denied.decision, narrowed.decision) == ("allow", "allow")


def test_a_refusal_says_what_was_read_and_what_cannot_be_proven() -> None:
    def reason(command: str, *denied: Any) -> str:
        return decide(EXEC, None, facts_of(command), PolicyConfig("ask", denied=denied)).reason

    unproven = "; handrail cannot prove that the call does without"
    assert reason("rm a", "fs.delete") == "fs.delete is denied here"
    assert reason("curl https://a.org", "net.connect") == "net.connect is denied here"
    assert reason("make", "fs.write", "git.write") == f"fs.write and git.write are denied here{unproven}"
    narrowed = decide(EXEC, ("proc.exec", "fs.read"), facts_of("make"), PolicyConfig("full"))
    assert narrowed.reason == f"the call's requested_permissions leave out fs.write, fs.delete, git.write{unproven}"


def test_without_a_sandbox_nothing_shuts_the_network_to_an_unproven_command() -> None:
    def decision(command: str, tier: int) -> str:
        return decide(EXEC, None, facts_of(command, tier=tier), PolicyConfig("full", denied=("net.connect",))).decision

    assert [decision("make", tier) for tier in (0, 1, 2, 3)] == ["deny", "allow", "allow", "allow"]
    assert decision("ls", 0) == "confirm"


@pytest.mark.parametrize(
    ("fact", "possible"),
    [
        (ProcessFact(action="list"), ""),
        (ProcessFact(action="kill", command="bash"), ""),
        (ProcessFact(action="write", command="cat", looks=True), ""),
        (ProcessFact(action="write", command="bash"), FILES),
        (ProcessFact(action="write", command="bash", connected=True), f"{FILES} net.connect"),
    ],
)
def test_what_a_program_is_sent_may_make_it_do_anything(fact: ProcessFact, possible: str) -> None:
    assert list_possible_permissions(EXEC, Facts(process=fact)) == ("proc.exec", *possible.split())
    found = decide(EXEC, None, Facts(process=fact), PolicyConfig("full", denied=("fs.delete",)))
    refused = ("deny", "call.denied", "bash") if possible else ("allow", found.rule, found.subject)
    assert (found.decision, found.rule, found.subject) == refused


@pytest.mark.parametrize(
    ("paths", "needed"),
    [
        ((PathFact(path="a", access="write", kind="file", real="a"),), "fs.write"),
        ((PathFact(path=".git/HEAD", access="read", kind="file", real=".git/HEAD"),), "fs.write"),
        ((PathFact(path=".git/HEAD", access="write", kind="file", real=".git/HEAD"),), "fs.write git.write"),
        ((PathFact(path="a", access="write", kind="file", real="x/.Git/HEAD"),), "fs.write git.write"),
        ((PathFact(path="a", access="delete", kind="file", real="x", named=".git/x"),), "fs.write git.write"),
        ((PathFact(path="a", access="write", kind="file", real="a", repository=True),), "fs.write git.write"),
        ((), "fs.write"),
    ],
)
def test_a_file_tool_needs_what_it_declares_and_git_write_in_a_repository(paths: Any, needed: str) -> None:
    assert list_permissions(WRITE, Facts(paths=paths)) == list_possible_permissions(WRITE, Facts(paths=paths))
    assert list_permissions(WRITE, Facts(paths=paths)) == tuple(needed.split())


def test_a_tool_of_another_server_can_do_whatever_is_open_to_the_server() -> None:
    foreign = Foreign(
        name="x", input_schema={}, output_schema=None, fingerprint="", problems=lambda _: (), reach=("net.connect",)
    )  # fmt: skip
    spec = ToolSpec(
        name="mcp__a__x", title="", description="", arguments=Arguments, data=Arguments, category="mcp", server="a",
        foreign=foreign,
    )  # fmt: skip
    assert (list_permissions(spec, Facts()), list_possible_permissions(spec, Facts())) == ((), ("net.connect",))
    found = decide(spec, None, Facts(), PolicyConfig("full", denied=("net.connect",)))
    assert (found.decision, found.rule, found.subject) == ("deny", "call.denied", "x (a)")
    assert decide(spec, ("fs.read",), Facts(), PolicyConfig("full")).rule == "call.narrowed"
    assert decide(spec, ("net.connect",), Facts(), PolicyConfig("full", denied=("fs.read",))).decision == "allow"


@pytest.mark.parametrize(
    ("requested", "denied", "closed"),
    [
        (None, (), False),
        (None, ("fs.write",), False),
        (None, ("net.connect",), True),
        (("proc.exec", "net.connect"), (), False),
        (("proc.exec",), (), True),
        (("net.connect",), ("net.connect",), True),
    ],
)
def test_the_network_is_closed_by_a_denial_and_by_what_a_call_leaves_out(
    requested: Any, denied: Any, closed: bool
) -> None:
    assert is_network_closed(requested, PolicyConfig("full", denied=denied)) is closed


def test_a_command_that_nobody_could_look_into_needs_everything() -> None:
    fact = CommandFact(text="for x in", seen=None)
    assert list_possible_permissions(EXEC, Facts(command=fact)) == ("proc.exec", *FILES.split())
