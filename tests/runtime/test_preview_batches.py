"""Previews of one batch build on each other, and are committed in their order, or not at all."""

import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from handrail import Done, Handrail, Parked, PermissionRequest, ToolCall
from handrail.protocol.changes import Preview
from handrail.protocol.results import ToolResult
from handrail.settings import Settings
from handrail.settings.model import Bulk, Tools

Make = Callable[..., Handrail]


def call(call_id: str, name: str, **args: Any) -> ToolCall:
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def commands(*texts: str) -> list[ToolCall]:
    return [call(f"c{number}", "exec", command=text) for number, text in enumerate(texts)]


def parked(outcome: Done | Parked) -> tuple[PermissionRequest, ...]:
    assert isinstance(outcome, Parked)
    return outcome.requests


def previews(requests: tuple[PermissionRequest, ...]) -> list[Preview]:
    found = [request.preview for request in requests]
    assert None not in found
    return [one for one in found if one is not None]


def answer_all(rail: Handrail, requests: tuple[PermissionRequest, ...], *kinds: Any) -> tuple[ToolResult[Any], ...]:
    outcome: Done | Parked | None = None
    for request, kind in zip(requests, kinds, strict=True):
        outcome = rail.answer(request, kind)
    assert isinstance(outcome, Done)
    return outcome.results


def code(result: ToolResult[Any]) -> str | None:
    return result.error.code if result.error else None


def test_a_command_is_tried_on_top_of_those_before_it(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(mode="ask")
    requests = parked(one.batch(commands("echo two >> a.txt", "echo three >> a.txt; cat a.txt", "tac a.txt | tee b")))
    shown = previews(requests)
    assert [preview.output for preview in shown] == ["", "one\ntwo\nthree\n", "three\ntwo\none\n"]
    assert "+two" not in shown[1].text
    assert "+three" in shown[1].text
    assert [one.outdated(request) for request in requests] == [(), (), ()]
    assert (workspace / "a.txt").read_text() == "one\n"
    results = answer_all(one, requests, "once", "once", "once")
    assert [code(result) for result in results] == [None, None, None]
    assert (workspace / "a.txt").read_text() == "one\ntwo\nthree\n"
    assert (workspace / "b").read_text() == "three\ntwo\none\n"
    for _ in range(3):
        assert one.undo().ok
    assert (workspace / "a.txt").read_text() == "one\n"
    assert not (workspace / "b").exists()


TREE = {"keep": "k", "gone": "g", "folder/inner": "i", "folder/other": "o", "swap": "s", "deep/er/x": "x"}


@pytest.mark.parametrize(
    "first",
    [
        "rm gone; rm -r folder",
        "rm -r folder; mkdir folder; echo new > folder/new",
        "mkdir n; echo in > n/in; rm swap; mv n swap",
        "rm -r folder; echo file > folder",
        "mv folder moved",
        "ln -s keep link; chmod 700 keep; chmod 711 deep",
        "mkdir -p new/er; echo y > new/er/y; chmod 750 new",
        "echo more >> deep/er/x; rm deep/er/x; rmdir deep/er",
        "ln keep hard; echo more >> hard",
    ],
)
def test_what_is_laid_below_a_trial_is_what_the_trial_before_it_left(rail: Make, workspace: Path, first: str) -> None:
    for name, text in TREE.items():
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(text)
    look = "find . -printf '%P %y %m %l\\n' | sort; find . -type f | sort | xargs md5sum"
    one = rail(mode="ask")
    requests = parked(one.batch(commands(first, f"{look}; touch made")))
    assert [code(result) for result in answer_all(one, requests, "once", "once")] == [None, None]
    (workspace / "made").unlink()
    now = subprocess.run(look, shell=True, cwd=workspace, capture_output=True, text=True, check=True)
    assert previews(requests)[1].output == now.stdout


@pytest.mark.parametrize("first", ["deny", "output"])
def test_a_command_that_was_tried_on_what_is_not_kept_is_not_kept_either(
    rail: Make, workspace: Path, first: str
) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch(commands("echo one > a", "cat a; touch b")))
    assert isinstance(one.answer(requests[0], first), Parked)  # type: ignore[arg-type]
    assert one.outdated(requests[1]) == ("what an earlier call of its batch would change",)
    outcome = one.answer(requests[1], "once")
    assert isinstance(outcome, Done)
    assert code(outcome.results[1]) == "CONFLICT"
    assert "This preview includes the change of an earlier call of its batch, and" in outcome.results[1].content
    assert list(workspace.iterdir()) == []


def test_what_it_printed_on_top_of_what_is_not_kept_can_be_had(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch(commands("echo one > a", "cat a; touch b")))
    results = answer_all(one, requests, "output", "output")
    assert [code(result) for result in results] == [None, None]
    assert "one" in results[1].content
    assert list(workspace.iterdir()) == []


def test_a_command_that_changes_nothing_does_not_hold_up_those_after_it(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch(commands("python3 -c 'print(1)'", "touch b")))
    results = answer_all(one, requests, "once")
    assert [code(result) for result in results] == [None, None]
    assert (workspace / "b").exists()


def test_an_earlier_one_that_was_tried_again_takes_those_on_top_of_it_along(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    first, second = parked(one.batch(commands("echo one > a", "cat a | tee b")))
    anew = one.retry(first.id, "echo two > a")
    assert one.outdated(second) == ("what an earlier call of its batch would change",)
    again = one.retry(second.id)
    assert again.preview is not None
    assert again.preview.output == "two\n"
    assert one.outdated(again) == ()
    results = answer_all(one, (anew, again), "once", "once")
    assert [code(result) for result in results] == [None, None]
    assert (workspace / "b").read_text() == "two\n"


def test_a_later_one_whose_earlier_one_was_tried_again_is_not_kept(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    first, second = parked(one.batch(commands("echo one > a", "cat a | tee b")))
    results = answer_all(one, (one.retry(first.id), second), "once", "once")
    assert [code(result) for result in results] == [None, "CONFLICT"]
    assert not (workspace / "b").exists()


def test_a_command_is_tried_on_top_of_what_file_tools_before_it_would_write(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "gone").write_text("x")
    (workspace / "a.txt").chmod(0o640)
    one = rail(mode="ask", settings=Settings(tools=Tools(enable=("delete", "apply_patch"))))
    patch = "*** Begin Patch\n*** Add File: new/er/p.txt\n+patched\n*** End Patch\n"
    calls = [
        call("w", "write", path="deep/er/b.txt", content="b\n"),
        call("e1", "edit", path="a.txt", oldText="one", newText="two"),
        call("d", "delete", path="gone"),
        call("p", "apply_patch", patch=patch),
        *commands("cat a.txt deep/er/b.txt new/er/p.txt; ls; stat -c %a a.txt deep; echo four >> a.txt"),
    ]
    requests = parked(one.batch(calls))
    assert previews(requests)[-1].output == "two\nb\npatched\na.txt\ndeep\nnew\n640\n755\n"
    assert [one.outdated(request) for request in requests] == [()] * 5
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "gone"]
    results = answer_all(one, requests, *["once"] * 5)
    assert [code(result) for result in results] == [None] * 5
    assert (workspace / "a.txt").read_text() == "two\nfour\n"


def test_a_command_is_tried_on_top_of_an_edit_of_what_an_edit_made_where_neither_asks(
    rail: Make, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail(mode="auto", settings=Settings(bulk=Bulk(deleted=0)))
    (workspace / "gone").write_text("x")
    edits = [call(old, "edit", path="a.txt", oldText=old, newText=new) for old, new in (("one", "two"), ("two", "six"))]
    requests = parked(one.batch([*edits, *commands("cat a.txt; rm gone")]))
    assert [preview.output for preview in previews(requests)] == ["six\n"]
    results = answer_all(one, requests, "once")
    assert [code(result) for result in results] == [None] * 3
    assert not (workspace / "gone").exists()


def test_a_file_tool_sees_files_and_folders_of_earlier_calls_of_its_batch(rail: Make, workspace: Path) -> None:
    one = rail(mode="auto", settings=Settings(bulk=Bulk(deleted=0)))
    (workspace / "gone").write_text("x")
    calls = [
        call("w", "write", path="new/a.txt", content="one\n"),
        call("e", "edit", path="new/a.txt", oldText="one", newText="two"),
        call("m", "write", path="new/er/c.txt", content=""),
        *commands("cat new/a.txt new/er/c.txt; find new | sort; rm gone"),
    ]
    requests = parked(one.batch(calls))
    assert [preview.output for preview in previews(requests)] == ["two\nnew\nnew/a.txt\nnew/er\nnew/er/c.txt\n"]
    assert [path.name for path in workspace.iterdir()] == ["gone"]


def test_a_command_that_was_tried_on_a_write_that_is_denied_is_not_kept(rail: Make, workspace: Path) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch([call("w", "write", path="a", content="x\n"), *commands("cat a | tee b")]))
    assert previews(requests)[1].output == "x\n"
    assert isinstance(one.answer(requests[0], "deny"), Parked)
    assert one.outdated(requests[1]) == ("what an earlier call of its batch would change",)
    outcome = one.answer(requests[1], "once")
    assert isinstance(outcome, Done)
    assert [code(result) for result in outcome.results] == ["PERMISSION_DENIED", "CONFLICT"]
    assert list(workspace.iterdir()) == []


def test_after_a_call_of_which_nobody_knows_what_it_changes_a_command_is_not_tried(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("")
    (workspace / "link").symlink_to("a")
    one = rail(mode="ask")
    requests = parked(one.batch([call("w", "write", path="link", content="x\n"), *commands("cat a | tee b")]))
    assert previews(requests)[1] == Preview(kind="none", text="an earlier call of this batch changes files first")
    results = answer_all(one, requests, "once", "once")
    assert [code(result) for result in results] == [None, None]
    assert (workspace / "b").read_text() == "x\n"


def test_what_others_write_to_a_file_that_an_earlier_write_is_to_change_makes_both_out_of_date(
    rail: Make, workspace: Path
) -> None:
    (workspace / "a").write_text("one\n")
    one = rail(mode="ask")
    requests = parked(one.batch([call("w", "write", path="a", content="x\n"), *commands("cat a | tee b")]))
    (workspace / "a").write_text("mine\n")
    assert [one.outdated(request) for request in requests] == [("a",), ("a",)]
    results = answer_all(one, requests, "once", "once")
    assert [code(result) for result in results] == ["CONFLICT", "CONFLICT"]
    assert (workspace / "a").read_text() == "mine\n"


def test_after_a_call_that_only_looks_a_command_is_tried(rail: Make) -> None:
    one = rail(mode="ask")
    requests = parked(one.batch([call("r", "ls", path="."), *commands("ls", "touch b")]))
    assert [preview.kind for preview in previews(requests)] == ["run"]


def test_a_file_that_another_program_changed_meanwhile_is_never_overwritten(rail: Make, workspace: Path) -> None:
    (workspace / "a").write_text("one\n")
    one = rail(mode="ask")
    first, second = parked(one.batch(commands("echo two >> a", "echo three >> a")))
    (workspace / "a").write_text("mine\n")
    assert one.outdated(first) == one.outdated(second) == ("a",)
    results = answer_all(one, (first, second), "once", "once")
    assert [code(result) for result in results] == ["CONFLICT", "CONFLICT"]
    assert (workspace / "a").read_text() == "mine\n"


def test_one_call_stages_and_the_next_commits(rail: Make, workspace: Path) -> None:
    for command in ("git init -q .", "git config user.email a@example.org", "git config user.name A"):
        subprocess.run(command, shell=True, cwd=workspace, check=True)
    (workspace / "a").write_text("one\n")
    one = rail(mode="ask")
    requests = parked(one.batch(commands("git add a", "git commit -qm first", "git log --format=%s | tee log")))
    assert previews(requests)[2].output == "first\n"
    results = answer_all(one, requests, "once", "once", "once")
    assert [code(result) for result in results] == [None, None, None]
    found = subprocess.run(
        "git fsck --strict && git status -s && git log --format=%s",
        shell=True,
        cwd=workspace,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == "?? log\nfirst\n"
