"""Decisions: the table of modes cell by cell, the strictest part, unattended sessions."""

import itertools
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.policy.verdict import TABLE, PartKind, judge_by_mode
from handrail.protocol.decisions import MODES, Decision, Facts, Mode, PathFact
from handrail.protocol.tool_spec import Arguments, ToolSpec

STRICTNESS = {"allow": 0, "confirm": 1, "deny": 2}


def tool(*permissions: str, **more: object) -> ToolSpec:
    fields = {"name": "t", "title": "T", "description": "", "arguments": Arguments, "data": Arguments, **more}
    return ToolSpec(permissions=permissions, **fields)  # type: ignore[arg-type]


def path(access: str, name: str = "a.txt", **more: object) -> PathFact:
    return PathFact(path=name, access=access, kind="file", **{"real": name, **more})  # type: ignore[arg-type]


def decision(mode: str, *paths: PathFact, spec: ToolSpec | None = None, unattended: bool = False) -> Decision:
    return decide(spec or tool("fs.read"), None, Facts(paths=paths), PolicyConfig(mode, unattended))  # type: ignore[arg-type]


def apply_mode(kind: PartKind, mode: Mode, *, undo: bool) -> tuple[str, str]:
    part = judge_by_mode("", "", kind, mode, undo=undo).part
    return part.decision, part.reason


#                 plan     ask        auto        full
CELLS = {
    "proven":    ("allow", "allow",   "allow",    "allow"),
    "unproven":  ("deny",  "confirm", "undoable", "allow"),
    "write":     ("deny",  "confirm", "undoable", "allow"),
    "delete":    ("deny",  "confirm", "undoable", "allow"),
    "bulk":      ("deny",  "confirm", "confirm",  "allow"),
    "protected": ("deny",  "confirm", "confirm",  "allow"),
    "outside":   ("deny",  "deny",    "deny",     "deny"),
    "network":   ("deny",  "confirm", "confirm",  "allow"),
    "process":   ("deny",  "confirm", "confirm",  "allow"),
    "foreign":   ("deny",  "confirm", "confirm",  "allow"),
}  # fmt: skip


@pytest.mark.parametrize(("subject", "mode"), list(itertools.product(CELLS, MODES)))
def test_each_cell_of_the_table(subject: str, mode: str) -> None:
    cell = CELLS[subject][MODES.index(mode)]
    assert TABLE[subject][mode] == cell
    for undo in (False, True):
        expected = ("allow" if undo else "confirm") if cell == "undoable" else cell
        verdict, reason = apply_mode(subject, mode, undo=undo)
        assert (verdict, bool(reason)) == (expected, True)


def test_the_table_has_no_other_cell_and_a_reason_for_every_no() -> None:
    assert TABLE.keys() == CELLS.keys()
    refusals = [
        (subject, mode) for subject, row in TABLE.items() for mode, cell in row.items() if cell in {"confirm", "deny"}
    ]
    reasons = [apply_mode(subject, mode, undo=False)[1] for subject, mode in refusals]
    assert [reason for reason in reasons if reason == "it only reads" or reason.endswith(" mode allows it")] == []


@pytest.mark.parametrize("subject", TABLE)
def test_a_later_mode_is_never_stricter(subject: str) -> None:
    for undo in (False, True):
        strict = [STRICTNESS[apply_mode(subject, mode, undo=undo)[0]] for mode in MODES]
        assert strict == sorted(strict, reverse=True)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("fact", "subject"),
    [
        (path("read"), "proven"),
        (path("read", ".git/config"), "proven"),
        (path("write"), "write"),
        (path("write", ".git/config"), "protected"),
        (path("write", "notes", real=".git/hooks/x", named="notes"), "protected"),
        (path("write", "notes", real="elsewhere/config", named=".git/config"), "protected"),
        (path("delete"), "delete"),
        (path("delete", ".github/x"), "protected"),
    ],
)
def test_a_path_is_judged_by_what_is_done_and_to_which_name(mode: str, fact: PathFact, subject: str) -> None:
    found = decision(mode, fact)
    assert found.decision == apply_mode(subject, mode, undo=True)[0]
    assert (found.rule, found.subject) == ("fs.read" if subject == "proven" else f"fs.{subject}", fact.path)
    assert found.code == ("POLICY_DENIED" if found.decision == "deny" else None)
    assert found.reason


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("access", ["read", "write", "delete"])
@pytest.mark.parametrize(
    ("fact", "rule", "code"),
    [
        ({"real": None}, "fs.outside", "OUTSIDE_WORKSPACE"),
        ({"real": ".env"}, "fs.secret", "POLICY_DENIED"),
        ({"real": "plain", "named": ".ssh/x"}, "fs.secret", "POLICY_DENIED"),
        ({"real": "/extra/.aws/x"}, "fs.secret", "POLICY_DENIED"),
        ({"writable": False}, "fs.read-only", "POLICY_DENIED"),
    ],
)
def test_no_mode_lifts_a_built_in_refusal(
    mode: str, access: str, fact: dict[str, object], rule: str, code: str
) -> None:
    found = decision(mode, path(access, **fact))
    if rule == "fs.read-only" and access == "read":
        assert found.decision == "allow"
    else:
        assert (found.decision, found.rule, found.code) == ("deny", rule, code)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("permission", "subject"),
    [
        ("fs.read", "proven"),
        ("fs.write", "write"),
        ("fs.delete", "delete"),
        ("git.write", "write"),
        ("proc.exec", "unproven"),
        ("net.connect", "network"),
    ],
)
def test_a_tool_without_paths_is_judged_by_its_permissions(mode: str, permission: str, subject: str) -> None:
    found = decision(mode, spec=tool(permission))
    assert (found.decision, found.rule) == (apply_mode(subject, mode, undo=True)[0], f"tool.{permission}")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("more", "row", "undo"),
    [
        ({"auto_execute": True}, "proven", False),
        ({}, "unproven", True),
        ({"side_effects": ("files",)}, "unproven", False),
        ({"side_effects": ("files",), "auto_execute": True}, "unproven", False),
    ],
)
def test_a_custom_tool_runs_unasked_only_where_it_has_no_effects(
    mode: str, more: dict[str, object], row: str, undo: bool
) -> None:
    assert decision(mode, spec=tool(category="custom", **more)).decision == apply_mode(row, mode, undo=undo)[0]


def test_a_built_in_tool_without_permissions_is_harmless() -> None:
    assert decision("plan", spec=tool()).rule == "tool.harmless"


@pytest.mark.parametrize("mode", MODES)
def test_nobody_to_ask_means_no(mode: str) -> None:
    attended, alone = (decision(mode, path("write", ".git/config"), unattended=flag) for flag in (False, True))
    if attended.decision != "confirm":
        assert alone == attended
    else:
        assert (alone.decision, alone.code, alone.rule) == ("deny", "PERMISSION_DENIED", attended.rule)
        assert "no person is present to approve" in alone.reason


@pytest.mark.parametrize("mode", MODES)
def test_a_call_may_ask_for_less_than_its_tool_needs_and_gets_nothing(mode: str) -> None:
    spec, facts, rules = tool("fs.read", "net.connect"), Facts(), PolicyConfig(mode)  # type: ignore[arg-type]
    narrowed = decide(spec, ("fs.read",), facts, rules)
    assert (narrowed.decision, narrowed.rule, narrowed.code) == ("deny", "call.narrowed", "POLICY_DENIED")
    assert "net.connect" in narrowed.reason


def test_asking_for_more_gives_nothing_more() -> None:
    spec, everything = tool("fs.write"), ("fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write")
    facts = Facts(paths=(path("write", ".git/config"),))
    for mode in MODES:
        plain, asked = (decide(spec, requested, facts, PolicyConfig(mode)) for requested in (None, everything))
        assert asked.decision == plain.decision


names = st.sampled_from(["a.txt", ".env", ".git/config", "src/x", ".github/ci.yml"])
facts = st.builds(
    path,
    st.sampled_from(["read", "write", "delete"]),
    names,
    real=names | st.none(),
    named=names | st.none(),
    writable=st.booleans(),
)
permissions = st.sampled_from(["fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write"])
specs = st.builds(
    lambda wanted, effects, own, auto: tool(
        *wanted, side_effects=effects, category="custom" if own else "builtin", auto_execute=auto
    ),
    st.lists(permissions, max_size=3, unique=True),
    st.sampled_from([(), ("files",), ("network",)]),
    st.booleans(),
    st.booleans(),
)
calls = st.tuples(
    specs,
    st.none() | st.lists(permissions, unique=True).map(tuple),
    st.lists(facts, max_size=4).map(tuple),
    st.sampled_from(MODES),
    st.booleans(),
)


@given(calls)
def test_the_strictest_part_wins_and_every_part_can_be_seen(call: tuple) -> None:
    spec, requested, paths, mode, unattended = call
    found = decide(spec, requested, Facts(paths=paths), PolicyConfig(mode, unattended))
    strictest = max((STRICTNESS[part.decision] for part in found.parts), default=STRICTNESS[found.decision])
    if unattended and strictest == 1:
        strictest = 2
    assert STRICTNESS[found.decision] == strictest
    alone = [decide(spec, requested, Facts(paths=(fact,)), PolicyConfig(mode, unattended)) for fact in paths]
    assert STRICTNESS[found.decision] == max((STRICTNESS[one.decision] for one in alone), default=strictest)
    assert (found.code is not None) == (found.decision == "deny")
    assert found.rule
    assert found.reason


@given(calls)
def test_no_further_path_ever_makes_a_decision_milder(call: tuple) -> None:
    spec, requested, paths, mode, unattended = call
    for count in range(1, len(paths)):
        fewer, more = (
            decide(spec, requested, Facts(paths=paths[:end]), PolicyConfig(mode, unattended))
            for end in (count, count + 1)
        )
        assert STRICTNESS[more.decision] >= STRICTNESS[fewer.decision]


@given(calls)
def test_the_same_input_gives_the_same_answer_also_from_the_record(call: tuple) -> None:
    spec, requested, paths, mode, unattended = call
    recorded = msgspec.json.decode(msgspec.json.encode(Facts(paths=paths)), type=Facts)
    first = decide(spec, requested, Facts(paths=paths), PolicyConfig(mode, unattended))
    assert decide(spec, requested, recorded, PolicyConfig(mode, unattended)) == first


PURE = """
import sys
from handrail.policy import commands
from handrail.policy.network.needs import find_network_needs
from handrail.policy.config import Rule
from handrail.policy.parse import parse_command
from handrail.policy.programs.registry import build_registry
from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.protocol.decisions import MODES, CommandFact, Facts, PathFact, DisplayedCommand
from handrail.protocol.tool_spec import Arguments, ToolSpec
spec = ToolSpec(name="t", title="", description="", arguments=Arguments, data=Arguments, permissions=("fs.write",))
build_registry()  # imports the tables, which otherwise the first command of each kind does
COMMANDS = ("ls -la", "git log --oneline | head", "cd a && cat x", "rm -rf /", "python x", "cat .env", "jq . a",
            "sort -o a b", "sudo rm x", "bash -c 'ls > x'", "find . -name a", "curl http://127.0.0.1/",
            "echo $X", "ls *.py",
            "cp a b", "sed -n 1p a")
RULES = (Rule(id="a", verdict="deny", pattern="git push"), Rule(id="b", verdict="allow", pattern="docs/**", tool="t"))
import os, random, time
for name in ("time", "time_ns", "monotonic", "perf_counter"):
    setattr(time, name, None)
random.random = os.urandom = None
os.environ = None
heard = []
sys.addaudithook(lambda event, arguments: heard.append(event))
for mode in MODES:
    for unattended in (False, True):
        for name in ("a.txt", ".env", ".git/config", "gr\\u00fcn", "\\u017fsh"):
            facts = Facts(paths=(PathFact(path=name, access="write", kind="file", real=name),))
            decide(spec, None, facts, PolicyConfig(mode, unattended))
            decide(spec, ("fs.read",), Facts(), PolicyConfig(mode, unattended))
            decide(spec, None, facts, PolicyConfig(mode, unattended, RULES))
        for text in COMMANDS:
            seen = (DisplayedCommand(words=("rm", "-rf", "x")),)
            parsed = parse_command(text)
            uses = parsed.path_uses()
            paths = [PathFact(path=use.path, access=use.access, kind="file", real="a") for use in uses]
            command = CommandFact(text=text, hosts=find_network_needs(parsed).hosts, seen=seen)
            facts = Facts(paths=tuple(paths), command=command)
            decide(spec, None, facts, PolicyConfig(mode, unattended, RULES))
            decide(spec, None, facts, PolicyConfig(mode, unattended, RULES, denied=("net.connect",)))
print(sorted(set(heard) - {"object.__getattr__", "builtins.id"}))
"""


def test_deciding_touches_no_file_no_clock_no_network_and_no_chance() -> None:
    source = str(Path(sys.modules["handrail"].__file__ or "").parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", PURE], env={"PYTHONPATH": source}, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def test_a_path_does_not_speak_for_permissions_that_are_not_about_files() -> None:
    spec = ToolSpec(
        name="fetch",
        title="Fetch",
        description="x",
        arguments=Arguments,
        data=Arguments,
        permissions=("fs.read", "net.connect", "proc.exec"),
        category="custom",
        auto_execute=True,
    )
    facts = Facts(paths=(PathFact(path="a", access="read", kind="file", real="a"),))
    assert decide(spec, None, facts, PolicyConfig("plan")).decision == "deny"
    assert decide(spec, None, facts, PolicyConfig("ask")).decision == "confirm"


def test_an_equal_call_has_the_same_decision_and_another_rule_decides_anew() -> None:
    assert decision("ask", path("write")) is decision("ask", path("write"))
    verdicts = [decision(mode, path("write"), spec=tool("fs.write")).decision for mode in MODES]
    assert verdicts == ["deny", "confirm", "allow", "allow"]
    one, other = decision("ask", path("read")), decision("ask", path("read", ".env"))
    assert (one.decision, other.decision) == ("allow", "deny")
