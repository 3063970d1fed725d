"""Calls in `ask` that no person is asked about: their preview or a grant answers."""

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import Done, Handrail, PermissionRequest, ToolCall
from handrail.policy.config import Rule
from handrail.protocol.events import ToolCallPermissionGranted
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.merge import LoadedSettings
from handrail.store.audit import decode_record

Make = Callable[..., Handrail]


def git(workspace: Path, *words: str) -> str:
    run = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
    return subprocess.run(run, cwd=workspace, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(workspace: Path) -> Path:
    git(workspace, "init", "-qb", "main")
    git(workspace, "config", "user.name", "A")
    git(workspace, "config", "user.email", "a@example.org")
    (workspace / "a").write_text("a\n")
    git(workspace, "add", "-A")
    git(workspace, "commit", "-qm", "first")
    return workspace


def command(text: str) -> ToolCall:
    call_id = f"call-{abs(hash(text))}"
    return ToolCall(
        tool_call_id=call_id, name="exec", args={"command": text}, trace_id=call_id, timestamp=datetime.now(UTC)
    )


def is_asked(result: ToolResult[Any]) -> bool:
    return result.error is not None and result.error.code == "PERMISSION_REQUIRED"


def request_of(rail: Handrail, result: ToolResult[Any]) -> PermissionRequest:
    return next(one for one in rail.waiting() if one.tool_call_id == result.tool_call_id)


def grant(rail: Handrail, result: ToolResult[Any], kind: Any) -> None:
    """Answers a request so that similar calls need none."""
    outcome = rail.answer(request_of(rail, result).id, kind)
    assert isinstance(outcome, Done)
    assert outcome.results[0].ok, outcome.results[0].summary


# Previews that changed nothing


def test_a_command_that_changed_nothing_is_kept_without_a_person(rail: Make, workspace: Path) -> None:
    (workspace / "x.py").write_text("print(6 * 7)")
    one = rail(mode="ask")
    result = one.exec("python3 x.py")
    assert (result.ok, result.meta.answered_by, result.meta.undo) == (True, "preview", None)
    assert "42" in result.content
    assert one.waiting() == ()
    assert [path.name for path in workspace.iterdir()] == ["x.py"]


def test_a_server_that_the_command_starts_and_ends_needs_no_person(rail: Make) -> None:
    serve = "python3 -u -m http.server 8765 2>&1 >log &"
    command = f"cd /tmp; {serve} until curl -so page http://localhost:8765/; do :; done; kill %1; echo served"
    result = rail(mode="ask").exec(command)
    assert (result.ok, result.meta.answered_by) == (True, "preview"), result.content
    assert "served" in result.content


def test_journal_and_audit_say_that_the_preview_answered_and_what_policy_decided(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    result = one.exec("python3 -c 'print(1)'")
    [granted] = [event for event in one.events() if isinstance(event, ToolCallPermissionGranted)]
    assert (granted.tool_call_id, granted.answer.by) == (result.tool_call_id, "preview")
    [line] = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    found = decode_record(line)
    assert found is not None
    record = found[0]
    assert (record.decision, record.rule, record.answered_by) == ("confirm", "exec.interpreter", "preview")


def test_the_setting_brings_the_prompt_back(rail: Make) -> None:
    settings = msgspec.convert({"ask": {"empty_preview": "ask"}}, Settings)
    assert is_asked(rail(mode="ask", settings=settings).exec("python3 -c 'print(1)'"))


@pytest.mark.parametrize(
    "command",
    [
        "echo x > new",
        "mkdir folder",
        "chmod 600 a",
        "ln -s a link",
        "python3 -c 'import os; os.utime(\"a\", (1, 1))' && echo b > a",
        "git commit -q --allow-empty -m x",
        "git config x.y z",
        "python3 -m http.server 8000 &",
        "sleep 60 & echo started",
        "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 1)'",
        "curl -s http://example.org",
        "python3 -c 'import os; os.kill(os.getpid(), 9)'; exit 3 > b",
    ],
)
def test_a_command_with_an_effect_asks(rail: Make, repository: Path, command: str) -> None:
    assert is_asked(rail(mode="ask").exec(command)), repository


def test_a_command_that_runs_out_of_time_asks(rail: Make) -> None:
    assert is_asked(rail(mode="ask").exec("python3 -c 'while True: pass'", timeout_ms=1_000))


def test_a_rule_of_a_person_asks(rail: Make) -> None:
    rule = Rule(id="mine", verdict="confirm", tool="exec", pattern="python3", layer="user")
    settings = LoadedSettings(settings=Settings(), sources={}, rules=(rule,))
    assert is_asked(rail(mode="ask", settings=settings).exec("python3 -c 'print(1)'"))


def test_a_tracked_credential_asks(rail: Make, repository: Path) -> None:
    (repository / ".env").write_text("TOKEN=hunter2\n")
    git(repository, "add", "-f", ".env")
    git(repository, "commit", "-qm", "oops")
    result = rail(mode="ask").exec("python3 -c 'print(1)'")
    assert is_asked(result)


def test_an_untracked_credential_is_hidden_and_needs_no_person(rail: Make, repository: Path) -> None:
    (repository / ".env").write_text("TOKEN=hunter2\n")
    (repository / "notes").hardlink_to(repository / ".env")
    (repository / "more").symlink_to(".env")
    script = (
        "for n in ('.e' + 'nv', 'notes', 'more'):\n    try: print(open(n).read())\n    except OSError as e: print(e)"
    )
    (repository / "look.py").write_text(script)
    result = rail(mode="ask").exec("python3 look.py")
    assert "hunter2" not in str(result)


def test_no_one_answers_in_plan_mode_or_unattended(rail: Make) -> None:
    for options in ({"mode": "plan"}, {"mode": "ask", "unattended": True}):
        result = rail(**options).exec("python3 -c 'print(1)'")
        assert result.error is not None
        assert result.meta.answered_by is None


def test_a_batch_runs_if_no_call_of_it_needs_a_person(rail: Make) -> None:
    one = rail(mode="ask")
    outcome = one.batch([command(f"python3 -c 'print({number})'") for number in range(3)])
    assert isinstance(outcome, Done)
    assert [result.meta.answered_by for result in outcome.results] == ["preview"] * 3


def test_a_kept_preview_waits_with_its_batch_for_the_others(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    parked = one.batch([command("python3 -c 'print(1)'"), command("echo x > new")])
    assert not isinstance(parked, Done)
    [request] = parked.requests
    outcome = one.answer(request.id, "once")
    assert isinstance(outcome, Done)
    assert [result.meta.answered_by for result in outcome.results] == ["preview", None]
    assert (workspace / "new").read_text() == "x\n"


# Caches


def test_the_cache_of_a_test_runner_is_kept_and_can_be_undone(rail: Make, workspace: Path) -> None:
    (workspace / "test_x.py").write_text("def test_x():\n    pass\n")
    one = rail(mode="ask")
    result = one.exec("python3 -m pytest -q")
    assert (result.ok, result.meta.answered_by) == (True, "preview")
    assert (workspace / ".pytest_cache").is_dir()
    assert not (workspace / "__pycache__").exists()
    assert one.undo().ok
    assert not (workspace / ".pytest_cache").exists()


def test_a_test_runner_that_leaves_more_than_its_cache_asks(rail: Make, workspace: Path) -> None:
    (workspace / "test_x.py").write_text("def test_x():\n    open('made', 'w').close()\n")
    assert is_asked(rail(mode="ask").exec("python3 -m pytest -q; python3 -m unittest -q test_x; echo > made"))


# Plain edits


def test_plain_edits_are_allowed_for_the_session_by_one_answer(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", session="s")
    grant(one, one.write("a.txt", "one\n"), "edits")
    assert one.write("b.txt", "two\n").ok
    assert one.edit("b.txt", "two", "three").ok
    result = one.exec("sed -i s/three/four/ b.txt && echo x > c.txt")
    assert (result.ok, result.meta.answered_by) == (True, "grant")
    assert (workspace / "b.txt").read_text() == "four\n"
    assert one.exec("cat b.txt").ok
    assert is_asked(rail(mode="ask").write("d.txt", "x")), "another session asks"
    [given] = one.grants()
    one.revoke(given.id)
    assert is_asked(one.write("d.txt", "x"))


@pytest.mark.parametrize(
    "command",
    [
        "rm a",
        "mv a b",
        "chmod +x a",
        "ln -s a link",
        "echo x > .git/hooks/post-commit",
        "echo '[core]' > .git/config",
        "mkdir .github && mkdir .github/workflows && echo x > .github/workflows/ci.yml && chmod +x a",
        "git commit -q --allow-empty -m x",
        "git push",
        "for i in $(seq 300); do echo $i > f$i; done",
        "printf '#!/bin/sh' > run && chmod +x run",
        "echo x > .envrc",
        "sleep 60 & echo started",
        "sleep 60 & echo x > made",
    ],
)
def test_the_grant_for_edits_covers_nothing_else(rail: Make, repository: Path, command: str) -> None:
    one = rail(mode="ask")
    grant(one, one.write("a.txt", "one\n"), "edits")
    before = sorted(path.name for path in repository.iterdir())
    result = one.exec(command)
    assert result.error is not None, result.summary
    assert sorted(path.name for path in repository.iterdir()) == before


@pytest.mark.parametrize("path", [".git/hooks/pre-commit", ".env", "../outside", ".vscode/tasks.json"])
def test_the_grant_for_edits_covers_no_protected_file(rail: Make, repository: Path, path: str) -> None:
    one = rail(mode="ask")
    grant(one, one.write("a.txt", "one\n"), "edits")
    result = one.write(path, "x")
    assert result.error is not None, result.summary
    assert not (repository / path).exists()


# Local git


def test_one_grant_covers_everyday_git(rail: Make, repository: Path) -> None:
    one = rail(mode="ask", session="s")
    (repository / "a").write_text("b\n")
    result = one.exec("git add a")
    assert request_of(one, result).grants == ("git in this repository",)
    grant(one, result, "session")
    for command in (
        "git commit -qm second",
        "git checkout -qb other",
        "git commit -q --allow-empty -m \"$(cat <<'EOF'\nThird & last\nEOF\n)\"",
        "git switch -q main",
        "git merge -q --no-edit other",
        "git tag v1",
    ):
        assert one.exec(command).ok, command
    assert git(repository, "log", "--format=%s").splitlines()[0] == "Third & last"


@pytest.mark.parametrize(
    "command",
    [
        "git reset --hard HEAD",
        "git clean -fd",
        "git push origin main",
        "git branch -D side",
        "git branch -f side HEAD",
        "git checkout -B side",
        "git tag -d old",
        "git stash drop",
        "git config core.hooksPath hooks",
        "git commit --amend -m y",
        "git -c core.hooksPath=x commit -m y",
        "git update-ref -d refs/heads/side",
        "git rebase --exec 'touch x' --autostash HEAD~1",
    ],
)
def test_the_grant_for_local_git_covers_nothing_that_loses_or_runs_something(
    rail: Make, repository: Path, command: str
) -> None:
    git(repository, "branch", "side")
    git(repository, "tag", "old")
    (repository / "a").write_text("stashed\n")
    git(repository, "stash")
    git(repository, "commit", "-qm", "second", "--allow-empty")
    (repository / "untracked").write_text("u\n")
    one = rail(mode="ask")
    (repository / "a").write_text("b\n")
    grant(one, one.exec("git add a"), "session")
    before = git(repository, "for-each-ref")
    result = one.exec(command)
    assert result.error is not None, result.summary
    assert git(repository, "for-each-ref") == before
    assert (repository / "untracked").exists()
