"""Commands in layers: what they changed is kept as a whole or dropped as a whole, and the result says which."""

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import Handrail
from handrail.protocol.events import ChangeEvent, ToolCallUpdate
from handrail.protocol.events import Warning as Warned
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import Limits, Sandbox
from in_time import cut_short
from meeting import Meeting, meeting

Make = Callable[..., Handrail]
ASKING = msgspec.convert({"ask": {"empty_preview": "ask"}}, Settings)
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")


def run(rail: Handrail, command: str, **more: Any) -> ToolResult[Any]:
    return rail.call("exec", {"command": command, **more})


def code(result: ToolResult[Any]) -> str | None:
    return result.error.code if result.error else None


def kept(rail: Handrail, command: str, answer: str = "once") -> ToolResult[Any]:
    """The result of a command that was tried and answered."""
    request = run(rail, command).error.details
    assert request["preview"]["kind"] == "run"
    return rail.answer(request["id"], answer).results[0]


def layers(state: Path) -> list[Path]:
    """What is left of layers, once those are removed that are being removed."""
    for thread in threading.enumerate():
        if thread.name == "handrail-layers":
            thread.join()
    return [path for folder in state.glob("layers*") for path in folder.rglob("upper-*")]


@pytest.fixture
def place() -> Iterator[Meeting]:
    with meeting() as found:
        yield found


# What a result says


@pytest.mark.parametrize("mode", ["auto", "full"])
def test_a_command_may_replace_a_file_by_a_folder_of_its_name(rail: Make, workspace: Path, mode: str) -> None:
    (workspace / "build").write_text("old\n")
    one = rail(mode=mode)
    done = run(one, "rm build && mkdir build && echo hi > build/x")
    assert done.error is None, done.error
    assert (workspace / "build" / "x").read_text() == "hi\n"
    one.undo()
    assert (workspace / "build").read_text() == "old\n"


def test_writing_to_another_name_of_what_steers_tools_asks(rail: Make, workspace: Path) -> None:
    (workspace / ".vscode").mkdir()
    (workspace / ".vscode" / "tasks.json").write_text("good\n")
    os.link(workspace / ".vscode" / "tasks.json", workspace / "x")
    (workspace / "go").write_text("echo evil >> x\n")
    asked: list[str] = []
    one = rail(mode="auto", on_permission=lambda request: asked.append(request.reason) or "deny")
    assert not run(one, "bash go").ok
    assert ".vscode/tasks.json" in asked[0]
    assert (workspace / "x").read_text() == "good\n"


@pytest.mark.parametrize(
    ("before", "script", "asks"),
    [
        ("mkdir -p x/objects x/refs; echo 1 > x/config", "echo ref: refs/heads/main > x/HEAD", "x/HEAD"),
        ("mkdir x; echo 1 > x/config", "mkdir x/objects x/refs; echo ref: refs/heads/main > x/HEAD", "x/HEAD"),
        ("mkdir -p x/objects; echo 1 > x/config; echo ref: a > x/HEAD", "mkdir x/refs", "x/refs"),
        ("git init -q --bare x", "echo evil > x/hooks/post-update", "x/hooks/post-update"),
        ("git init -q --bare x", "git -C x config core.fsmonitor evil", "x/config"),
        ("git init -q --bare $'\\xff'", "echo evil > $'\\xff/hooks/update'", "hooks/update"),
        ("git init -q --bare x", "git -C x symbolic-ref HEAD refs/heads/other", ""),
        ("mkdir -p x/config x/objects", "echo 1 > x/config/a; mkdir x/refs", ""),
        ("git init -q .; mkdir -p .git/refs/remotes/o; echo a > .git/refs/remotes/o/HEAD",
         "echo b > .git/refs/remotes/o/config", ""),
    ],
)  # fmt: skip
def test_what_steers_a_repository_asks_also_where_it_was_made_bit_by_bit_under_another_name(
    rail: Make, workspace: Path, before: str, script: str, asks: str
) -> None:
    subprocess.run(["bash", "-ec", before], cwd=workspace, check=True)
    (workspace / "go").write_text(f"{script}\n")
    asked: list[str] = []
    one = rail(mode="auto", on_permission=lambda request: asked.append(request.reason) or "deny")
    assert run(one, "bash go").ok is not bool(asks)
    assert len(asked) == bool(asks)
    assert all("changes files that control tools, hooks or builds" in reason and asks in reason for reason in asked)


def test_a_result_says_what_was_changed_and_how_to_take_it_back(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    (workspace / "b.txt").write_text("two\n")
    one = rail()
    result = run(one, "echo done; echo more >> a.txt; rm b.txt; touch c.txt; mkdir d")
    assert result.content == (
        "done\n[exit code 0; changed 3 files (1 deleted); undo 1]\n"
        "  deleted b.txt -1\n  modified a.txt +1\n  created c.txt\n"
    )
    assert result.summary == "exit code 0; changed 3 files (1 deleted); undo 1"
    assert (result.meta.undo, result.data.output) == (1, "done\n")
    assert sorted(result.artifacts.files_changed) == ["a.txt", "b.txt", "c.txt"]
    changes = [event.change for event in one.events() if isinstance(event, ChangeEvent)]
    assert [change.path for change in changes[0].changes if change.kind == "folder"] == ["d"]
    assert one.undo().ok
    assert sorted(path.name for path in workspace.iterdir()) == ["a.txt", "b.txt"]


def test_a_command_that_changes_nothing_says_no_more_than_without_a_layer(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    command = "touch a.txt; cat a.txt; echo x > /tmp/x; echo a > b; rm b"
    layered, plain = run(rail(), command), run(rail(mode="full", settings=Settings(sandbox=Sandbox(tier=2))), command)
    assert (layered.content, layered.summary, layered.meta.undo) == ("one\n", "exit code 0", None)
    assert plain.content.startswith("one\n")


def test_a_command_that_fails_keeps_what_it_changed_and_says_so(rail: Make, workspace: Path) -> None:
    result = run(rail(), "echo a > made; exit 3")
    assert result.content == "[exit code 3; changed 1 file; undo 1]\n  created made +1\n"
    assert (workspace / "made").exists()


def test_of_very_many_files_the_first_are_named(rail: Make) -> None:
    lines = run(rail(), "for n in $(seq 100 149); do echo x > f$n; done").content.splitlines()
    assert lines[0] == "[exit code 0; changed 50 files; undo 1]"
    assert lines[1] == "  created f100 +1"
    assert lines[-1] == "  … and 30 more files"
    assert len(lines) == 22


def test_what_git_keeps_for_itself_is_one_thing(rail: Make, workspace: Path) -> None:
    subprocess.run(["git", "init", "-q", workspace], check=True)
    (workspace / "a").write_text("a\n")
    result = run(rail(), "git add a && git -c user.name=A -c user.email=a@b commit -qm first")
    assert result.summary == "exit code 0; changed .git; undo 1"
    assert result.content.splitlines()[1].startswith("  .git: ")
    hook = run(rail(mode="full"), "echo x > .git/hooks/pre-commit")
    assert "  created .git/hooks/pre-commit +1\n" in hook.content


def test_a_program_that_fails_only_in_a_layer_is_told_why(rail: Make, workspace: Path) -> None:
    (workspace / "folder").mkdir()
    (workspace / "folder" / "a").touch()
    result = run(rail(), 'python3 -c \'import os; os.rename("folder", "other")\'')
    assert result.data.exit_code == 1
    assert "Move it with `mv`" in result.content
    assert run(rail(), "mv folder other").data.exit_code == 0
    assert (workspace / "other" / "a").exists()


def test_what_cannot_be_kept_is_a_warning(rail: Make, workspace: Path) -> None:
    result = run(rail(), "mkfifo pipe; echo a > made")
    assert result.ok
    assert any("pipe" in warning for warning in result.warnings)
    assert sorted(path.name for path in workspace.iterdir()) == ["made"]


# Stopped


@pytest.mark.parametrize(
    ("command", "time", "limits", "expected"),
    [
        ("echo half > made; echo said; sleep 60", 300, Limits(), "TIMEOUT"),
        (
            "echo half > made; echo said; for n in $(seq 30); do sleep 60 & done; wait",
            60_000,
            Limits(processes=12),
            "LIMIT_EXCEEDED",
        ),
    ],
)
def test_what_a_stopped_command_had_changed_is_dropped(
    rail: Make, workspace: Path, tmp_path: Path, command: str, time: int, limits: Limits, expected: str
) -> None:
    one = rail(mode="full", settings=Settings(limits=limits))
    result, _ = cut_short(lambda time: run(one, command, timeoutMs=time), time, lambda result: result.data.output)
    assert code(result) == expected
    assert "Its changes were dropped." in result.content
    assert "said\n" in result.data.output
    assert (result.meta.undo, result.artifacts.files_changed) == (None, ())
    assert list(workspace.iterdir()) == []
    assert layers(tmp_path / "state") == []


def test_what_a_cancelled_command_had_changed_is_dropped(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="full")
    one.subscribe(lambda event: one.cancel() if isinstance(event, ToolCallUpdate) else None)
    result = run(one, "echo half > made; while :; do echo said; read -t 0.05 <> <(:); done")
    assert code(result) == "CANCELLED"
    assert "Its changes were dropped." in result.content
    assert list(workspace.iterdir()) == []
    assert layers(tmp_path / "state") == []


def test_an_interrupt_leaves_no_layer_no_process_and_no_change(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="full", session="s")
    mark = f"54322.{os.getpid()}"

    def interrupt(event: object) -> None:
        if isinstance(event, ToolCallUpdate):
            signal.raise_signal(signal.SIGINT)

    one.subscribe(interrupt)
    with pytest.raises(KeyboardInterrupt):
        run(one, f"echo half > made; sleep {mark} & while :; do echo said; read -t 0.05 <> <(:); done")
    assert [event.result.error.message for event in one.events() if hasattr(event, "result")] == [
        "The call was interrupted. Nothing was changed."
    ]
    assert list(workspace.iterdir()) == []
    assert layers(tmp_path / "state") == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout.decode()
    assert f"sleep {mark}" not in running


# Kept trials


@pytest.mark.parametrize(
    "command",
    [
        "echo a > made; echo done",
        "echo a > made; exit 4",
        "echo a > made; printf 'a\\033[1mb\\rc\\xff\\n'",
        "echo a > made; seq 1 60000",
        "echo a > made; seq 1 900000",
    ],
    ids=["plain", "failing", "raw bytes", "much", "more than memory holds"],
)
def test_a_trial_that_is_kept_answers_what_a_run_would_have(rail: Make, workspace: Path, command: str) -> None:
    full, asking = rail(mode="full"), rail(mode="ask")
    direct = run(full, command)
    (workspace / "made").unlink()
    later = kept(asking, command)

    def told(result: ToolResult[Any], by: Handrail) -> list[object]:
        undo = f"undo {result.meta.undo}"
        content = result.content.replace(undo, "undo N").replace(result.tool_call_id, "ID")
        data = (result.data.output.replace(result.tool_call_id, "ID"), result.data.exit_code, result.data.meaning)
        meta = (result.meta.truncated, bool(result.meta.output), bool(result.meta.raw), result.meta.characters)
        whole = by.raw_output(result.tool_call_id) if result.meta.output or result.meta.raw else b""
        return [result.ok, content, data, meta, whole, result.meta.sandbox, result.artifacts, result.warnings]

    assert told(later, asking) == told(direct, full)
    assert (workspace / "made").read_text() == "a\n"


def test_the_time_that_a_kept_command_took_is_that_of_its_trial(rail: Make) -> None:
    one = rail(mode="ask")
    request = run(one, "echo a > made").error.details
    result = one.answer(request["id"], "once").results[0]
    assert result.data.duration_ms == request["preview"]["tried"]["durationMs"]


def test_only_the_output_is_told_as_such(rail: Make, workspace: Path) -> None:
    result = kept(rail(mode="ask"), "echo said; echo a > made", "output")
    assert result.content == "said\n[exit code 0; its changes were dropped: only its output was approved]\n"
    assert (result.ok, result.meta.undo, result.artifacts.files_changed) == (True, None, ())
    assert list(workspace.iterdir()) == []
    assert kept(rail(mode="ask", settings=ASKING), "true | bash -c 'echo said'", "output").content == "said\n"


def test_a_kept_trial_whose_files_others_changed_says_what_it_printed_and_overwrites_nothing(
    rail: Make, workspace: Path
) -> None:
    (workspace / "a").write_text("mine\n")
    one = rail(mode="ask")
    request = run(one, "echo said; echo theirs > a").error.details
    (workspace / "a").write_text("mine again\n")
    result = one.answer(request["id"], "once").results[0]
    assert code(result) == "CONFLICT"
    assert result.data.output == "said\n"
    assert "Nothing was kept" in result.content
    assert (workspace / "a").read_text() == "mine again\n"


# Judged


def test_credentials_that_a_command_wrote_are_dropped_with_all_that_it_changed(rail: Make, workspace: Path) -> None:
    (workspace / "gen.sh").write_text("echo TOKEN=1 > .env; echo a > made; echo said\n")
    one = rail()
    result = run(one, "bash gen.sh")
    assert code(result) == "POLICY_DENIED"
    assert result.error is not None
    assert result.error.message.startswith("Rule fs.secret forbids what it changed: ")
    assert result.content.startswith("said\n[exit code 0; its changes were dropped]\n[Rule fs.secret forbids")
    assert (result.data.output, result.summary) == ("said\n", "exit code 0; its changes were dropped")
    assert sorted(path.name for path in workspace.iterdir()) == ["gen.sh"]
    assert [event.code for event in one.events() if isinstance(event, Warned)] == ["POLICY_DENIED"]


def test_deletions_are_unasked_in_auto_since_undo_covers_them(rail: Make, workspace: Path) -> None:
    for number in range(20):
        (workspace / f"f{number}").touch()
    one = rail()
    assert run(one, "bash -c 'rm f*'").ok
    assert list(workspace.iterdir()) == []
    assert one.undo().ok
    assert len(list(workspace.iterdir())) == 20


# The network, and others at work


@needs_curl
def test_what_was_sent_to_a_host_is_said_not_to_be_covered(rail: Make, workspace: Path, place: Meeting) -> None:
    one = rail(mode="full", settings=place.settings())
    result = run(one, f"echo a > made; {place.called}")
    assert result.data.output == "met\n"
    sandbox = result.meta.sandbox
    assert (sandbox.tier, sandbox.net, sandbox.undo) == (3, "listed", "layer")
    assert sandbox.not_covered == (f"what was sent to {place.address}",)
    assert run(one, "echo b > made").meta.sandbox.not_covered == ()
    assert one.undo().ok
    assert (workspace / "made").read_text() == "a\n"


@needs_curl
def test_what_others_change_while_a_command_runs_is_not_overwritten(
    rail: Make, workspace: Path, place: Meeting
) -> None:
    (workspace / "a").write_text("before\n")
    place.then = lambda: (workspace / "a").write_text("somebody's\n")
    result = run(rail(mode="full", settings=place.settings()), f"cat a; echo mine >> a; touch b; {place.called}")
    assert code(result) == "CONFLICT"
    assert "a was changed by another program while the command ran. Nothing was kept." in result.content
    assert result.data.output == "before\nmet\n"
    assert (workspace / "a").read_text() == "somebody's\n"
    assert sorted(path.name for path in workspace.iterdir()) == ["a"]


@needs_curl
def test_where_there_is_no_room_to_keep_it_nothing_is_changed_and_what_it_printed_is_told(
    rail: Make, workspace: Path, tmp_path: Path, place: Meeting
) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    state = tmp_path / "small"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", state], check=True)
    try:
        one = rail(mode="full", settings=place.settings(), state_dir=state)
        assert run(one, "echo warm > warm").ok
        (workspace / "large").write_bytes(os.urandom(3_000_000))
        place.then = lambda: fill(state / "filling")
        result = run(one, f"rm large; {place.called}")
        (state / "filling").unlink()
        assert code(result) == "NO_SPACE"
        assert "Nothing was changed." in result.content
        assert result.data.output == "met\n"
        assert sorted(path.name for path in workspace.iterdir()) == ["large", "warm"]
        assert run(one, "rm large").ok
        one.close()
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


@needs_curl
@pytest.mark.parametrize("again", [False, True])
def test_where_the_workspace_is_moved_meanwhile_nothing_is_kept(
    rail: Make, workspace: Path, place: Meeting, again: bool
) -> None:
    (workspace / "a").write_text("a\n")
    one = rail(mode="full", settings=place.settings())
    moved = workspace.with_name("moved")

    def move() -> None:
        workspace.rename(moved)
        if again:
            shutil.copytree(moved, workspace)

    place.then = move
    result = run(one, f"echo b >> a; {place.called}")
    assert code(result) == "CONFLICT", result.content
    assert "was moved or removed" in result.content
    assert "Nothing of the command was kept." in result.content
    assert (moved / "a").read_text() == "a\n"


def test_a_command_that_fills_the_disk_of_its_layer_has_a_result(rail: Make, workspace: Path, tmp_path: Path) -> None:
    """What it wrote is thrown away before the result is written down, which has no room else."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk takes root")
    state = tmp_path / "small"
    state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "none", state], check=True)
    try:
        one = rail(state_dir=state)
        for number in range(3):
            result = run(one, "for i in $(seq 1000); do head -c 8000 /dev/zero > f$i || exit; done 2>/dev/null")
            assert code(result) == "NO_SPACE", number
            assert str(state) not in result.content
            assert list(workspace.iterdir()) == []
        assert run(one, "echo next > made").ok
        one.close()
    finally:
        subprocess.run(["umount", "--lazy", state], check=True)


def fill(path: Path) -> None:
    """Leaves a little room, for what is written down about the call."""
    with path.open("wb") as file:
        for _ in range(64):
            try:
                file.write(b"x" * 1_000_000)
                file.flush()
            except OSError:
                break
        file.truncate(max(0, os.fstat(file.fileno()).st_size - 400_000))
