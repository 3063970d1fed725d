"""The preview of a command: the request shows its effect, and an approval commits exactly that."""

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, Parked, PermissionRequest, ToolCall
from handrail.policy.config import Rule
from handrail.protocol.changes import Preview, PreviewRun
from handrail.protocol.decisions import CommandFact
from handrail.protocol.results import ToolResult
from handrail.runtime.preview import find_preview_obstacle
from handrail.settings import Settings
from handrail.settings.merge import LoadedSettings
from handrail.settings.model import Sandbox
from in_time import cut_short

Make = Callable[..., Handrail]


def asked(rail: Handrail, command: str, **args: Any) -> PermissionRequest:
    """What is asked before a command runs."""
    result = rail.call("exec", {"command": command, **args})
    assert result.error is not None, result.content
    assert result.error.code == "PERMISSION_REQUIRED", result.summary
    return next(request for request in rail.waiting() if request.tool_call_id == result.tool_call_id)


def preview_of(request: PermissionRequest) -> Preview:
    assert request.preview is not None
    return request.preview


def tried_of(request: PermissionRequest) -> PreviewRun:
    tried = preview_of(request).tried
    assert tried is not None, preview_of(request).text
    return tried


def answered(rail: Handrail, request: PermissionRequest, kind: Any, **more: Any) -> ToolResult[Any]:
    outcome = rail.answer(request.id, kind, **more)
    assert isinstance(outcome, Done)
    return outcome.results[0]


def trials(tmp_path: Path) -> list[str]:
    """The trials that wait in the state folder, whatever their workspace."""
    return sorted(path.name for path in (tmp_path / "state").glob("workspaces/*/.changes/trials/*"))


# What is tried, and what is not


@pytest.mark.parametrize("mode", ["ask", "auto"])
def test_a_yes_keeps_nothing_that_a_rule_has_come_to_forbid_meanwhile(rail: Make, workspace: Path, mode: str) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / "go").write_text("echo 1 > .vscode/a; echo 1 > b")
    with rail(mode=mode, session="s") as first:
        asked(first, "bash go")
    rule = Rule(id="mine", verdict="deny", tool="*", pattern="b", layer="user")
    later = rail(mode=mode, session="s", settings=LoadedSettings(settings=Settings(), sources={}, rules=(rule,)))
    [request] = later.waiting()
    result = answered(later, request, "once")
    assert result.error is not None
    assert (result.error.code, "mine" in result.error.message) == ("POLICY_DENIED", True)
    assert list((workspace / ".vscode").iterdir()) == []
    assert not (workspace / "b").exists()


def test_a_command_that_asks_is_tried_and_nothing_is_changed(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    request = asked(rail(mode="ask"), "echo two >> a.txt; echo said")
    tried = tried_of(request)
    assert (preview_of(request).kind, tried.exit_code, tried.ending, tried.files) == ("run", 0, "exit", 1)
    assert "+two" in preview_of(request).text
    assert preview_of(request).output == "said\n"
    assert request.answers == ("once", "edits", "output", "deny")
    assert request.bound_files == ()
    assert (workspace / "a.txt").read_text() == "one\n"
    assert trials(tmp_path) == [tried.sealed]


@pytest.mark.parametrize(
    ("command", "args", "reason"),
    [
        ("curl http://example.org", {}, "needs the network (curl http://example.org)"),
        ("touch a && curl http://example.org", {}, "needs the network (curl http://example.org)"),
        ("bash -c 'curl http://example.org'", {}, "needs the network (bash -c 'curl http://example.org')"),
        ("touch a", {"background": True}, "it runs in the background"),
        ("touch a", {"yieldMs": 100}, "it may continue in the background (yieldMs)"),
    ],
)
def test_a_command_that_cannot_be_tried_says_why(rail: Make, command: str, args: dict[str, Any], reason: str) -> None:
    request = asked(rail(mode="ask"), command, **args)
    assert preview_of(request) == Preview(kind="none", text=reason)
    assert "output" not in request.answers


def test_what_needs_a_host_is_named_by_the_part_that_does(rail: Make, workspace: Path) -> None:
    os.makedirs(workspace / ".git")
    (workspace / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (workspace / ".git" / "config").write_text('[remote "origin"]\n\turl = https://example.org/x.git\n')
    request = asked(rail(mode="ask"), "touch a && git push origin main")
    assert preview_of(request).text == "needs the network (git push origin main)"


def test_where_the_setting_says_never_nothing_is_tried(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask", settings=Settings(preview="never"))
    request = asked(one, "touch a")
    assert preview_of(request) == Preview(kind="none", text="the setting preview is never")
    assert [basis.path for basis in request.bound_files] == ["a"]
    assert answered(one, request, "once").ok
    assert (workspace / "a").exists()


def test_where_no_layer_can_lie_the_question_says_why(rail: Make) -> None:
    one = rail(mode="ask", settings=Settings(sandbox=Sandbox(tier=2)))
    assert preview_of(asked(one, "touch a")).text.startswith("no overlay here: ")


def test_why_a_command_is_not_tried_is_a_pure_question() -> None:
    fact = CommandFact(text="make", tier=3)
    assert find_preview_obstacle(fact, mode="ask", tries=True) is None
    assert find_preview_obstacle(fact, mode="plan", tries=True) == "plan mode tries nothing"
    assert find_preview_obstacle(fact, mode="ask", tries=False) == "the setting preview is never"


def test_a_trial_that_cannot_be_made_is_no_failure_of_the_call(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    assert one.exec("ls").ok
    (trials_of,) = (tmp_path / "state").glob("workspaces/*/.changes")
    (trials_of / "trials").write_text("no folder")
    request = asked(one, "touch a")
    assert preview_of(request).kind == "none"
    assert preview_of(request).text.startswith("its preview failed: ")
    (trials_of / "trials").unlink()
    assert answered(one, request, "once").ok
    assert (workspace / "a").exists()


def test_what_was_stopped_in_its_trial_cannot_be_kept(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")

    def try_for(milliseconds: int) -> PermissionRequest:
        for earlier in one.waiting():
            answered(one, earlier, "deny")
        return asked(one, "touch a; echo begun; sleep 60", timeoutMs=milliseconds)

    request, _ = cut_short(try_for, 300, lambda request: preview_of(request).output)
    assert (tried_of(request).ending, tried_of(request).exit_code) == ("timeout", None)
    assert request.answers == ("output", "deny")
    result = answered(one, request, "output")
    assert "begun" in result.content
    assert not (workspace / "a").exists()
    assert trials(tmp_path) == []


# What is answered


def test_a_yes_keeps_what_was_seen_and_runs_nothing_again(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    request = asked(one, "mktemp -u | tee made")
    result = answered(one, request, "once")
    assert result.ok
    assert (workspace / "made").read_text() == preview_of(request).output
    assert result.artifacts.files_changed == ("made",)
    assert result.meta.undo is not None
    assert trials(tmp_path) == []
    assert one.undo().ok
    assert not (workspace / "made").exists()


def test_output_only_gives_the_output_and_drops_the_changes(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    result = answered(one, asked(one, "touch made; echo printed"), "output")
    assert result.ok
    assert "printed" in result.content
    assert result.artifacts.files_changed == ()
    assert result.meta.undo is None
    assert not (workspace / "made").exists()
    assert one.changes() == []
    assert trials(tmp_path) == []


def test_a_no_drops_the_trial(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask")
    result = answered(one, asked(one, "touch made"), "deny", reason="not now")
    assert result.error is not None
    assert (result.error.code, "not now" in result.content) == ("PERMISSION_DENIED", True)
    assert not (workspace / "made").exists()
    assert trials(tmp_path) == []


def test_a_no_drops_the_trial_at_once_also_while_others_of_its_batch_wait(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    outcome = one.batch([call("a", "exec", command="touch made"), call("b", "write", path="b", content="x")])
    assert isinstance(outcome, Parked)
    assert len(trials(tmp_path)) == 1
    assert isinstance(one.answer(outcome.requests[0].id, "deny"), Parked)
    assert trials(tmp_path) == []


def call(call_id: str, name: str, **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def test_a_yes_for_the_session_keeps_the_result_and_grants_the_class(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    assert answered(one, asked(one, "mkdir made"), "session").ok
    assert (workspace / "made").is_dir()
    assert [grant.command for grant in one.grants()] == ["mkdir"]
    assert one.exec("mkdir other").ok


def test_a_trial_waits_for_whoever_comes_back_to_its_session(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask", session="s")
    request = asked(one, "touch made")
    one.end_session()
    assert trials(tmp_path) == [tried_of(request).sealed]
    assert answered(rail(mode="ask", session="s"), request, "once").ok
    assert (workspace / "made").exists()


def test_who_is_cancelled_while_a_command_is_tried_is_asked_nothing(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    one.subscribe(lambda _: None)
    one.cancel()
    result = one.exec("touch made")
    assert result.error is not None
    assert result.error.code == "CANCELLED"
    assert one.waiting() == ()
    assert trials(tmp_path) == []


def test_calls_that_were_parked_by_somebody_else_meanwhile_leave_no_trial(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask", session="s")
    two = rail(mode="ask", session="s")
    parked = one.batch([call("c", "exec", command="touch made")])
    again = two.batch([call("c", "exec", command="touch made")])
    assert parked == again
    assert len(trials(tmp_path)) == 1


# What the result is judged by


def test_what_a_trial_changed_that_no_yes_can_allow_is_refused_before_anybody_is_asked(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "gen.py").write_text("open('.env', 'w').write('TOKEN=1')\n")
    one = rail(mode="ask")
    result = one.exec("python3 gen.py")
    assert result.error is not None
    assert (result.error.code, result.error.details["rule"]) == ("POLICY_DENIED", "fs.secret")
    assert "forbids what it would change" in result.content
    assert one.waiting() == ()
    assert trials(tmp_path) == []
    assert not (workspace / ".env").exists()


def test_what_of_a_result_asks_by_itself_is_told_beside_the_command(rail: Make, workspace: Path) -> None:
    (workspace / ".github").mkdir()
    (workspace / "gen.py").write_text("open('.github/ci.yml', 'w').write('x')\n")
    request = asked(rail(mode="ask"), "python3 gen.py")
    assert [(part.subject, part.rule) for part in request.parts] == [
        *(("python3 gen.py", "exec.interpreter"), (".github/ci.yml", "fs.protected")),
    ]
    assert request.rule == "exec.interpreter"


def test_a_call_whose_trial_is_refused_does_not_hold_up_its_batch(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / "gen.py").write_text("open('.env', 'w').write('TOKEN=1')\n")
    one = rail(mode="ask")
    outcome = one.batch([call("a", "exec", command="python3 gen.py"), call("b", "exec", command="touch made")])
    assert isinstance(outcome, Parked)
    assert [request.tool_call_id for request in outcome.requests] == ["b"]
    assert len(trials(tmp_path)) == 1
    done = one.answer(outcome.requests[0], "once")
    assert isinstance(done, Done)
    assert [result.error.code if result.error else None for result in done.results] == ["POLICY_DENIED", None]
    assert (workspace / "made").exists()
    assert not (workspace / ".env").exists()


def test_a_new_repository_is_nothing_to_tell_beside_the_command(rail: Make) -> None:
    request = asked(rail(mode="ask"), "git init -q . && touch a")
    assert {part.rule for part in request.parts if part.subject not in {"git init -q .", "touch a"}} == set()


@pytest.mark.parametrize(
    ("name", "told"), [("user.email", set[str]()), ("core.fsmonitor", {"fs.config"})], ids=["harmless", "steers"]
)
def test_a_setting_of_git_is_told_beside_the_command_only_where_it_steers(
    rail: Make, workspace: Path, name: str, told: set[str]
) -> None:
    subprocess.run(["git", "init", "-q", workspace], check=True)
    (workspace / "set.py").write_text(f"import os; os.system('git config {name} x')\n")
    request = asked(rail(mode="ask"), "python3 set.py")
    assert {part.rule for part in request.parts if part.subject != "python3 set.py"} == told
