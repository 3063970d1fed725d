"""Retrying a pending command, as it is or edited: the request keeps its id and shows the new preview."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from handrail import Answer, AsyncHandrail, Done, Handrail, PermissionRequest, ToolError, UsageError
from handrail.changes.overlay import commit
from handrail.protocol.events import ToolCallPermissionRequired
from handrail.protocol.results import ToolResult
from handrail.runtime import permission_request
from handrail.runtime.results import redact_arguments
from handrail.settings import Settings
from handrail.store.audit import decode_record

Make = Callable[..., Handrail]


def asked(rail: Handrail, command: str, **args: Any) -> PermissionRequest:
    result = rail.call("exec", {"command": command, **args})
    assert result.error is not None, result.content
    assert result.error.code == "PERMISSION_REQUIRED", result.summary
    return next(request for request in rail.waiting() if request.tool_call_id == result.tool_call_id)


def output_of(request: PermissionRequest) -> str:
    assert request.preview is not None
    return request.preview.output


def answered(rail: Handrail, request: PermissionRequest, kind: Any) -> ToolResult[Any]:
    outcome = rail.answer(request, kind)
    assert isinstance(outcome, Done)
    return outcome.results[0]


def trials(tmp_path: Path) -> int:
    return len(list((tmp_path / "state").glob("workspaces/*/.changes/trials/*")))


# Out of date


def test_a_preview_is_out_of_date_when_a_file_that_it_changes_was_changed(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(mode="ask")
    request = asked(one, "echo two >> a.txt")
    assert one.outdated(request) == ()
    (workspace / "a.txt").write_text("mine\n")
    assert one.outdated(request) == ("a.txt",)
    result = answered(one, request, "once")
    assert result.error is not None
    assert result.error.code == "CONFLICT"
    assert result.error.message == "The preview was out of date: a.txt changed. Nothing was kept. Call again."
    assert (workspace / "a.txt").read_text() == "mine\n"


def test_a_diff_of_a_file_tool_is_out_of_date_too(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(mode="ask")
    one.write("a.txt", "two\n")
    [request] = one.waiting()
    assert one.outdated(request) == ()
    (workspace / "a.txt").write_text("mine\n")
    assert one.outdated(request) == ("a.txt",)


def test_output_only_may_be_taken_of_a_preview_that_is_out_of_date(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(mode="ask")
    request = asked(one, "tee -a a.txt <<< two")
    (workspace / "a.txt").write_text("mine\n")
    result = answered(one, request, "output")
    assert result.ok
    assert "two" in result.content
    assert (workspace / "a.txt").read_text() == "mine\n"


def test_a_script_that_was_changed_after_it_was_tried_does_not_matter_to_its_result(
    rail: Make, workspace: Path
) -> None:
    (workspace / "gen.sh").write_text("echo seen > made\n")
    one = rail(mode="ask")
    request = asked(one, "bash gen.sh")
    (workspace / "gen.sh").write_text("echo other > made\n")
    assert one.outdated(request) == ()
    assert answered(one, request, "once").ok
    assert (workspace / "made").read_text() == "seen\n"


# Again


def test_a_command_is_tried_again_over_what_is_there_now(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(mode="ask")
    request = asked(one, "tee -a a.txt <<< two")
    (workspace / "a.txt").write_text("mine\n")
    anew = one.retry(request.id)
    assert (anew.id, anew.revision, anew.edited) == (request.id, 1, False)
    assert one.waiting() == (anew,)
    assert one.outdated(anew) == ()
    assert trials(tmp_path) == 1
    assert answered(one, anew, "once").ok
    assert (workspace / "a.txt").read_text() == "mine\ntwo\n"
    assert trials(tmp_path) == 0


def test_a_yes_to_what_was_shown_before_is_no_yes_to_what_is_shown_now(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch one")
    anew = one.retry(request.id, "touch two")
    for stale in (request, request.id):
        with pytest.raises(UsageError, match="has a newer preview"):
            one.answer(stale, "once")
    with pytest.raises(UsageError, match="revision=1"):
        one.answer(request.id, Answer(kind="output", revision=0))
    assert one.waiting() == (anew,)
    assert isinstance(one.answer(request.id, Answer(kind="once", revision=1)), Done)
    assert sorted(path.name for path in workspace.iterdir()) == ["two"]


def test_a_no_is_to_whatever_is_shown(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch one")
    one.retry(request.id)
    assert isinstance(one.answer(request.id, "deny"), Done)
    assert trials(tmp_path) == 0


def test_listeners_hear_of_the_question_as_it_is_now(rail: Make) -> None:
    one = rail(mode="ask")
    heard: list[Any] = []
    one.subscribe(heard.append)
    request = asked(one, "touch one")
    anew = one.retry(request.id, "touch two")
    put = [event.permission_request for event in heard if isinstance(event, ToolCallPermissionRequired)]
    assert put == [request, anew]


# For a new call


@pytest.mark.parametrize("change", ["write", "delete", "rename", "new"])
def test_a_preview_is_made_again_if_anything_in_the_workspace_changed(rail: Make, workspace: Path, change: str) -> None:
    (workspace / "src" / "deep").mkdir(parents=True)
    file = workspace / "src" / "deep" / "a.py"
    file.write_text("one\n")
    one = rail(mode="ask")
    request = asked(one, "sh -c 'cat src/*/a.py; echo x > made'")
    assert one.refresh(request.id) == request
    if change == "write":
        before = file.stat()
        file.write_text("two\n")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif change == "delete":
        file.unlink()
    elif change == "rename":
        (workspace / "src").rename(workspace / "other")
    else:
        (workspace / "src" / "b.py").touch()
    anew = one.refresh(request.id)
    assert one.waiting() == (anew,)
    assert output_of(anew) == output_of(asked(one, "sh -c 'cat src/*/a.py; echo x > made'"))
    assert one.refresh(anew.id) == anew


def test_a_yes_that_names_a_request_is_none_to_the_preview_that_took_its_place(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "gen.sh").write_text("echo one > made\n")
    one = rail(mode="ask")
    request = asked(one, "sh gen.sh")
    (workspace / "gen.sh").write_text("echo two > made\n")
    anew = one.refresh(request.id)
    for old in (request, request.id):
        with pytest.raises(UsageError, match="no permission request"):
            one.answer(old, "once")
    assert trials(tmp_path) == 1
    assert (anew.tool_call_id, anew.revision) == (request.tool_call_id, 0)
    assert answered(one, anew, "once").ok
    assert (workspace / "made").read_text() == "two\n"


def test_a_preview_is_made_again_after_a_change_set(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch made")
    rail(mode="auto").write("a.txt", "one\n")
    assert one.refresh(request.id) != request


def test_a_preview_that_is_not_certain_to_be_fresh_is_made_again(rail: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch made")
    with monkeypatch.context() as patch:
        patch.setattr(permission_request, "FRESH_FOR", timedelta(0))
        old = one.refresh(request.id)
    assert old != request
    with monkeypatch.context() as patch:
        patch.setattr(commit, "_MAX_LOOK_SECONDS", -1.0)
        anew = one.refresh(old.id)
    assert anew != old
    assert one.refresh(anew.id) == anew


def test_only_a_request_that_waits_is_refreshed(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch made")
    one.answer(request, "deny")
    with pytest.raises(UsageError, match="was answered already"):
        one.refresh(request.id)


# Edited

# Edited


def test_the_command_that_a_person_wrote_is_the_one_that_is_kept_and_the_model_is_told(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    one = rail(mode="ask")
    request = asked(one, "tee made <<< theirs")
    anew = one.retry(request.id, "tee made <<< mine")
    assert (anew.command, anew.edited, output_of(anew)) == ("tee made <<< mine", True, "mine\n")
    result = answered(one, anew, "once")
    assert result.ok
    assert result.content.startswith("A person changed the command to: tee made <<< mine\n")
    assert result.artifacts.commands_run == ("tee made <<< mine",)
    assert (workspace / "made").read_text() == "mine\n"
    assert [change.summary for change in one.changes()] == ["tee made <<< mine"]
    lines = (tmp_path / "state" / "audit.jsonl").read_bytes().splitlines(keepends=True)
    found = decode_record(lines[-1])
    assert found is not None
    assert found[0].args == redact_arguments({"command": "tee made <<< mine"}, ("cwd",))


def test_who_writes_the_first_command_again_has_changed_nothing(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch one")
    assert one.retry(request.id, "touch two").edited
    again = one.retry(request.id, "touch one")
    assert (again.edited, again.revision) == (False, 2)
    assert "changed the command" not in answered(one, again, "once").content


def test_a_command_that_policy_refuses_changes_nothing_about_the_question(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch one")
    for refused, code in (("rm -rf /", "POLICY_DENIED"), ("cat /etc/shadow", "OUTSIDE_WORKSPACE"), ("  ", None)):
        with pytest.raises(ToolError) as raised:
            one.retry(request.id, refused)
        assert raised.value.code == (code or "INVALID_ARGUMENT")
    assert one.waiting() == (request,)
    assert trials(tmp_path) == 1


def test_a_command_that_would_run_unasked_still_waits_for_who_wrote_it(rail: Make) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch one")
    anew = one.retry(request.id, "ls -a")
    assert one.waiting() == (anew,)
    assert answered(one, anew, "once").ok


def test_a_command_that_was_changed_into_one_that_cannot_be_tried_says_so(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    request = asked(one, "touch one")
    anew = one.retry(request.id, "curl http://example.org")
    assert anew.preview is not None
    assert (anew.preview.kind, anew.hosts) == ("none", ("example.org:80",))
    assert "output" not in anew.answers
    assert trials(tmp_path) == 0


def test_only_a_command_that_waits_can_be_tried_again(rail: Make) -> None:
    one = rail(mode="ask")
    one.write("a.txt", "x")
    with pytest.raises(UsageError, match="is not about a command, so it has no preview"):
        one.retry(one.waiting()[0].id)
    request = asked(one, "touch one")
    answered(one, request, "once")
    with pytest.raises(UsageError, match="was answered already"):
        one.retry(request.id)
    with pytest.raises(UsageError, match="has no permission request"):
        one.retry("ask_nothing")


# Several at once


def attempt(work: Callable[[], object]) -> object:
    try:
        return work()
    except UsageError as error:
        return error


def test_of_several_who_try_it_again_at_once_one_wins_and_the_others_leave_nothing(rail: Make, tmp_path: Path) -> None:
    rails = [rail(mode="ask", session="s") for _ in range(4)]
    request = asked(rails[0], "touch one")

    work = [partial(one.retry, request.id, f"touch by-{number}") for number, one in enumerate(rails)]
    with ThreadPoolExecutor(4) as pool:
        came = list(pool.map(attempt, work))
    won = [one for one in came if isinstance(one, PermissionRequest)]
    assert won
    assert rails[0].waiting() == (max(won, key=lambda one: one.revision),)
    assert all("meanwhile" in str(one) for one in came if isinstance(one, UsageError))
    assert trials(tmp_path) == 1


def test_an_answer_and_a_retry_at_once_leave_one_truth(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one, two = rail(mode="ask", session="s"), rail(mode="ask", session="s")
    for number in range(8):
        request = asked(one, f"touch first-{number}")
        with ThreadPoolExecutor(2) as pool:
            retried = pool.submit(attempt, partial(two.retry, request.id, f"touch second-{number}"))
            said = pool.submit(attempt, partial(one.answer, request, "once"))
        assert isinstance(said.result(), Done) != isinstance(retried.result(), PermissionRequest)
        for left in one.waiting():
            assert isinstance(one.answer(left, "once"), Done)
        names = {path.name for path in workspace.iterdir()}
        assert (f"first-{number}" in names) != (f"second-{number}" in names)
    assert trials(tmp_path) == 0


ANSWERS = """
import sys
from handrail import Handrail
from handrail.settings import Settings
with Handrail(sys.argv[1], mode="ask", state_dir=sys.argv[2], session="s", settings=Settings()) as rail:
    [request] = rail.waiting()
    if len(sys.argv) > 3:
        request = rail.retry(request.id, sys.argv[3])
        print(request.preview.output, end="")
    else:
        print(rail.answer(request, "once").results[0].content, end="")
"""


def test_what_one_process_parked_another_edits_and_a_third_keeps(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="ask", session="s")
    asked(one, "tee made <<< theirs")
    one.close()
    place = [str(workspace), str(tmp_path / "state")]
    command = [sys.executable, "-c", ANSWERS, *place]
    shown = subprocess.run([*command, "tee made <<< mine"], capture_output=True, text=True, check=False)
    assert (shown.stdout, shown.stderr) == ("mine\n", "")
    kept = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "changed the command to: tee made <<< mine" in kept.stdout, kept.stderr
    assert (workspace / "made").read_text() == "mine\n"


# Who asks


def test_whoever_is_asked_may_have_it_tried_again_and_is_asked_about_that(rail: Make, workspace: Path) -> None:
    shown: list[tuple[int, str]] = []

    def ask(request: PermissionRequest) -> str:
        shown.append((request.revision, output_of(request)))
        if request.revision == 0:
            one.retry(request.id, "tee made <<< mine")
        return "once"

    one = rail(mode="ask", on_permission=ask)
    result = one.exec("tee made <<< theirs")
    assert result.ok
    assert shown == [(0, "theirs\n"), (1, "mine\n")]
    assert (workspace / "made").read_text() == "mine\n"


def test_what_asks_only_after_it_has_run_can_be_tried_again_too(rail: Make, workspace: Path, tmp_path: Path) -> None:
    (workspace / ".github").mkdir()
    (workspace / "gen.py").write_text("open('.github/ci.yml', 'w').write('one')\n")
    one = rail(mode="auto")
    result = one.exec("python3 gen.py")
    assert result.error is not None
    assert result.error.code == "PERMISSION_REQUIRED"
    (workspace / "gen.py").write_text("open('.github/ci.yml', 'w').write('two')\n")
    anew = one.retry(one.waiting()[0].id)
    assert "+two" in (anew.preview.text if anew.preview else "")
    assert trials(tmp_path) == 1
    assert answered(one, anew, "once").ok
    assert (workspace / ".github" / "ci.yml").read_text() == "two"
    assert trials(tmp_path) == 0


def test_the_same_in_a_loop_of_asyncio(tmp_path: Path, workspace: Path) -> None:
    async def story() -> str:
        options: dict[str, Any] = {"mode": "ask", "state_dir": tmp_path / "state", "settings": Settings()}
        async with AsyncHandrail(workspace, **options, on_permission=lambda _: None) as one:
            await one.exec("tee made <<< theirs")
            [request] = await one.waiting()
            anew = await one.retry(request.id, "tee made <<< mine")
            assert await one.outdated(anew) == ()
            await one.answer(anew, "once")
            return (workspace / "made").read_text()

    assert asyncio.run(story()) == "mine\n"


# Cut off


@pytest.mark.parametrize("place", ["to_permission_preview", "build_request", "replace_request"])
def test_a_trial_that_an_interrupt_kept_from_being_shown_is_dropped(rail: Make, tmp_path: Path, place: str) -> None:
    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == ("call", place):
            raise KeyboardInterrupt

    one = rail(mode="ask")
    request = asked(one, "echo x > made; echo said")
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            one.retry(request.id)
    finally:
        sys.setprofile(None)
    assert trials(tmp_path) == 1
    assert answered(one, request, "once").ok


@pytest.mark.parametrize(
    ("place", "changes"), [("flush_audit", [1]), ("build_exec_output", [1]), ("_apply_answer", [])]
)
def test_a_trial_goes_with_the_result_that_an_interrupt_came_upon(
    rail: Make, tmp_path: Path, place: str, changes: list[int]
) -> None:
    def interrupt(frame: FrameType, event: str, _: object) -> None:
        if (event, frame.f_code.co_name) == ("call", place):
            raise KeyboardInterrupt

    one = rail(mode="ask")
    request = asked(one, "echo x > made; echo said")
    sys.setprofile(interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            one.answer(request, "once")
    finally:
        sys.setprofile(None)
    assert trials(tmp_path) == 0
    assert [change.number for change in one.changes()] == changes


def test_a_trial_goes_with_the_result_that_a_killed_process_did_not_write(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask", session="named")
    request = asked(one, "echo x > made; echo said")
    child = os.fork()
    if not child:

        def die(frame: FrameType, event: str, _: object) -> None:
            if (event, frame.f_code.co_name) == ("call", "build_exec_output"):
                os.kill(os.getpid(), signal.SIGKILL)

        other = rail(mode="ask", session="named")
        sys.setprofile(die)
        other.answer(request, "once")
    os.waitpid(child, 0)
    assert trials(tmp_path) == 1
    another = rail(mode="ask", session="named")
    assert [change.number for change in another.changes()] == [1]
    assert trials(tmp_path) == 0
