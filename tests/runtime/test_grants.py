"""Answers that also count for later calls: what they cover, who sees them, and how they end."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import Done, Handrail, Parked, PermissionRequest, ToolCall, UsageError
from handrail.protocol.events import Notice, ToolCallPermissionGranted
from handrail.protocol.results import ToolResult
from handrail.settings import Settings

Make = Callable[..., Handrail]


@pytest.fixture
def rail(rail: Make) -> Make:
    """Opens Handrails that also ask about commands whose preview changed nothing."""
    return partial(rail, settings=msgspec.convert({"ask": {"empty_preview": "ask"}}, Settings))


def asked(rail: Handrail, command: str, **args: Any) -> PermissionRequest:
    """What is asked before a command runs."""
    result = rail.call("exec", {"command": command, **args})
    assert result.error is not None, result.content
    assert result.error.code == "PERMISSION_REQUIRED", result.summary
    return next(request for request in rail.waiting() if request.tool_call_id == result.tool_call_id)


def answered(rail: Handrail, request: PermissionRequest, kind: Any) -> ToolResult[Any]:
    outcome = rail.answer(request.id, kind)
    assert isinstance(outcome, Done)
    return outcome.results[0]


def asks(rail: Handrail, command: str) -> bool:
    result = rail.exec(command)
    return result.error is not None and result.error.code == "PERMISSION_REQUIRED"


# What may be granted


@pytest.mark.parametrize(
    ("command", "grants"),
    [
        ("cp a b", ("cp",)),
        ("mkdir x && cp a b", ("mkdir", "cp")),
        ("mkdir x && ls && mkdir y", ("mkdir",)),
        ("git commit -m '*'", ("git in this repository",)),
        ("git fetch --all", ()),
        ("git commit -m x && python x.py", ()),
        ("python -c 'print(1)'", ()),
        ("env cp a b", ()),
        ("./gen.sh", ()),
        ("cp a $x", ()),
        ("cp a b > c", ()),
        ("cp a .git/config", ()),
        ("git push", ()),
        ("curl http://example.org", ()),
    ],
)
def test_a_class_is_offered_where_every_part_that_asks_is_of_one(
    rail: Make, command: str, grants: tuple[str, ...]
) -> None:
    request = asked(rail(mode="ask"), command)
    assert request.grants == grants
    tried = ("output",) if request.preview is not None and request.preview.tried is not None else ()
    answers = [kind for kind in request.answers if kind != "edits"]
    assert answers == ["once", *(("session", "workspace") if grants else ()), *tried, "deny"]


def test_the_request_names_its_parts_and_what_a_yes_is_bound_to(rail: Make, workspace: Path) -> None:
    (workspace / "sub").mkdir()
    request = asked(rail(mode="ask"), "ls && cp a b", cwd="sub")
    assert [(part.subject, part.decision, part.grant) for part in request.parts] == [
        *(("ls", "allow", ""), ("cp a b", "confirm", "cp")),
    ]
    assert request.cwd == "sub"
    assert request.environment is not None
    assert len(request.environment) == 64
    assert asked(rail(mode="ask"), "cp a b").parts == ()


def test_a_file_tool_is_asked_about_once_each_time(rail: Make) -> None:
    one = rail(mode="ask")
    one.write("a.txt", "x")
    [request] = one.waiting()
    assert (request.answers, request.grants, request.environment) == (("once", "edits", "deny"), (), None)


def test_an_answer_that_is_not_offered_is_refused(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "python x.py")
    with pytest.raises(UsageError, match="not with 'session'"):
        one.answer(request.id, "session")
    with pytest.raises(UsageError, match="not with 'output'"):
        one.answer(asked(one, "curl http://example.org").id, "output")


def test_a_deletion_is_asked_about_each_time(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("a")
    (workspace / "b").write_text("b")
    one = rail(mode="ask")
    request = asked(one, "rm a")
    assert (request.answers, request.grants) == (("once", "output", "deny"), ())
    with pytest.raises(UsageError, match="not with 'workspace'"):
        one.answer(request.id, "workspace")
    assert answered(one, request, "once").error is None
    assert not (workspace / "a").exists()
    assert asks(one, "rm b")


# What a grant covers


def test_a_session_grant_ends_the_asking_in_its_session_alone(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", session="s")
    assert answered(one, asked(one, "mkdir a"), "session").ok
    assert one.exec("mkdir b").ok
    assert (workspace / "b").is_dir()
    with rail(mode="ask", session="s") as again:
        assert again.exec("mkdir c").ok
    assert asks(rail(mode="ask"), "mkdir d")


def test_a_workspace_grant_ends_it_in_every_session_of_the_workspace(rail: Make, tmp_path: Path) -> None:
    one, other = rail(mode="ask"), rail(mode="ask")
    assert asks(other, "mkdir a")
    assert answered(one, asked(one, "mkdir a"), "workspace").ok
    assert other.exec("mkdir b").ok
    (tmp_path / "elsewhere").mkdir()
    assert asks(rail(mode="ask", workspace=tmp_path / "elsewhere"), "mkdir a")


def test_a_once_answer_ends_it_for_one_call(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "mkdir a")
    assert answered(one, request, "once").ok
    with pytest.raises(UsageError, match="answered already"):
        one.answer(request.id, "once")
    assert asks(one, "mkdir a")
    assert one.grants() == ()


@pytest.mark.parametrize(
    "command",
    [
        *("git commit -m x && x", "x; git commit -m x", "git commit -m x | x", "git commit -m x > y"),
        *("git commit -m $(x)", "git push", "git commit-tree x", "git -c a=b commit -m x", "env git commit"),
        *("sh -c 'git commit'", "./git commit"),
    ],
)
def test_a_grant_for_one_command_covers_no_other(rail: Make, command: str) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "git commit -m y"), "session")
    assert asks(one, command)
    assert not asks(one, "git commit -m x && git status")


def test_nothing_in_a_class_is_a_wildcard(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "ruff '*'")
    assert request.grants == ("ruff",)
    answered(one, request, "session")
    assert asks(one, "ruff format")
    assert asks(one, "other")
    assert asks(one, "git commit -m '*'")


def test_a_grant_lifts_neither_a_mode_nor_a_builtin_refusal(rail: Make) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "cp a b"), "session")
    assert one.exec("cp a /dev/sda").error.code == "POLICY_DENIED"  # type: ignore[union-attr]
    assert asks(one, "cp a .git/config")
    one.set_mode("plan")
    assert one.exec("cp a b").error.code == "POLICY_DENIED"  # type: ignore[union-attr]


def test_what_a_grant_let_run_names_it(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "mkdir a"), "session")
    [granted] = one.grants()
    one.exec("ls && mkdir b")
    audit = (tmp_path / "state" / "audit.jsonl").read_text().splitlines()
    assert f'"grant.{granted.id}"' in audit[-1]
    [event] = [event for event in one.events() if isinstance(event, ToolCallPermissionGranted)]
    assert (event.answer.kind, event.permission_request.grants) == ("session", ("mkdir",))


# Listed and revoked


def test_grants_are_listed_with_their_scope(rail: Make) -> None:
    one = rail(mode="ask", session="s")
    answered(one, asked(one, "mkdir a && cp a b"), "workspace")
    answered(one, asked(one, "touch x"), "session")
    found = one.grants()
    assert {(granted.command, granted.scope, granted.session_id) for granted in found} == {
        *(("mkdir", "workspace", "s"), ("cp", "workspace", "s"), ("touch", "session", "s")),
    }
    assert {granted.command for granted in rail(mode="ask").grants()} == {"mkdir", "cp"}


@pytest.mark.parametrize("kind", ["session", "workspace"])
def test_a_revoked_grant_counts_no_more_at_once_and_everywhere(rail: Make, kind: Any) -> None:
    one, other = rail(mode="ask", session="s"), rail(mode="ask", session="s")
    answered(one, asked(one, "mkdir a"), kind)
    assert other.exec("mkdir b").ok
    other.revoke(other.grants()[0].id)
    assert asks(one, "mkdir c")
    assert one.grants() == ()
    [notice] = [event for event in other.events() if isinstance(event, Notice)]
    assert "mkdir asks again" in notice.text


def test_what_is_no_grant_cannot_be_revoked(rail: Make) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "mkdir a"), "session")
    for wrong in ("g-000000000000", "", "../granted", one.grants()[0].id + ".revoked"):
        with pytest.raises(UsageError, match="there is no grant"):
            one.revoke(wrong)
    one.revoke(one.grants()[0].id)


def test_a_class_granted_twice_is_listed_once_and_revoked_whole(rail: Make) -> None:
    one = rail(mode="ask")
    first, second = asked(one, "mkdir a"), asked(one, "mkdir b")
    answered(one, first, "session")
    answered(one, second, "session")
    [granted] = one.grants()
    one.revoke(granted.id)
    assert one.grants() == ()
    assert asks(one, "mkdir c")


def test_what_was_revoked_may_be_granted_again(rail: Make) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "mkdir a"), "session")
    one.revoke(one.grants()[0].id)
    answered(one, asked(one, "mkdir b"), "session")
    assert one.exec("mkdir c").ok


def call(call_id: str, command: str) -> ToolCall:
    args = {"command": command}
    return ToolCall(tool_call_id=call_id, name="exec", args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def test_a_grant_revoked_while_the_batch_waits_does_not_count_when_it_runs(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "mkdir a"), "session")
    parked = one.batch([call("granted", "mkdir b"), call("asked", "touch c")])
    assert isinstance(parked, Parked)
    [request] = parked.requests
    assert request.tool_call_id == "asked"
    one.revoke(one.grants()[0].id)
    outcome = one.answer(request.id, "once")
    assert isinstance(outcome, Done)
    assert [result.error.code if result.error else None for result in outcome.results] == ["CONFLICT", None]
    assert not (workspace / "b").exists()
    assert (workspace / "c").exists()


REVOKER = """
import sys
from handrail import Handrail
from handrail.settings import Settings
workspace, state = sys.argv[1:]
with Handrail(workspace, mode="ask", state_dir=state, settings=Settings()) as rail:
    [granted] = rail.grants()
    rail.revoke(granted.id)
"""


def test_another_process_lists_and_revokes_it(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    answered(one, asked(one, "mkdir a"), "workspace")
    assert one.exec("mkdir b").ok
    subprocess.run([sys.executable, "-c", REVOKER, workspace, tmp_path / "state"], check=True, timeout=60)
    assert one.grants() == ()
    assert asks(one, "mkdir c")


def test_a_grant_whose_file_is_damaged_is_none(rail: Make, tmp_path: Path) -> None:
    with rail(mode="ask", session="s") as one:
        answered(one, asked(one, "mkdir a"), "session")
        [granted] = one.grants()
    [file] = (tmp_path / "state").glob(f"workspaces/*/s/granted/{granted.id}")
    assert (os.stat(file).st_mode & 0o777, os.stat(file.parent).st_mode & 0o777) == (0o600, 0o700)
    file.write_bytes(file.read_bytes()[:-5])
    with rail(mode="ask", session="s") as one:
        assert one.grants() == ()
        assert asks(one, "mkdir b")


def test_a_yes_counts_also_where_the_grant_cannot_be_kept(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask", session="s")
    request = asked(one, "mkdir a")
    [folder] = (tmp_path / "state").glob("workspaces/*/s")
    (folder / "granted").write_text("a file where the folder would be")
    assert answered(one, request, "session").error is None
    assert (workspace / "a").is_dir()
    [notice] = [event for event in one.events() if isinstance(event, Notice)]
    assert "The approval covers this call, but later calls need approval again:" in notice.text
    assert asks(one, "mkdir b")
