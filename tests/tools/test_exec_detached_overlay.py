"""Commands that go on after their calls, in their layers: what they changed is judged and kept when they end."""

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from background import SECONDS, asked, ended, record_when

from handrail import Handrail
from handrail.kernel.files import lock_folder
from handrail.process.sessions.store import read_record
from handrail.protocol.events import ChangeEvent, ToolCallUpdate
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import Bulk, Limits

Make = Callable[..., Handrail]
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")
HOOK = "python3 -c \"import os; os.makedirs('.g' + 'it/hooks'); open('.g' + 'it/hooks/pre-commit', 'w').write('x')\""


@pytest.fixture
def auto(rail: Make) -> Handrail:
    return rail(mode="auto")


def handed_over(rail: Handrail, command: str) -> str:
    """The id of a command that waits for a line before it goes on."""
    result = rail.exec(f"{command}; read", yield_ms=0)
    assert result.ok, result.error
    assert result.data is not None
    assert result.data.session_id is not None
    return result.data.session_id


def gone_on(rail: Handrail, process: str) -> ProcessRecord:
    """What is known of one that got its line, and came to its end."""
    asked(rail, "write", process, data="\n")
    return record_when(rail, process, lambda record: record.changed is not None)


def no_layer_is_left(tmp_path: Path) -> bool:
    """They are removed while the result goes out."""
    until = time.monotonic() + SECONDS
    while left := list((tmp_path / "state" / "layers").glob("*")):
        assert time.monotonic() < until, left
    return True


def test_what_ends_in_time_is_kept_like_any_other(auto: Handrail, workspace: Path, tmp_path: Path) -> None:
    result = auto.exec("echo x > made; echo said", yield_ms=60_000)
    assert result.ok, result.error
    assert (result.meta.undo, result.artifacts.files_changed) == (1, ("made",))
    assert result.meta.sandbox is not None
    assert (result.meta.sandbox.tier, result.meta.sandbox.undo) == (3, "layer")
    assert (workspace / "made").read_text() == "x\n"
    assert auto.processes() == ()
    assert no_layer_is_left(tmp_path)


def test_what_goes_on_changes_nothing_until_it_ends(auto: Handrail, workspace: Path, tmp_path: Path) -> None:
    process = handed_over(auto, "echo x > made")
    assert not (workspace / "made").exists()
    record = gone_on(auto, process)
    assert record.changed == "changed 1 file; undo 1"
    assert (workspace / "made").read_text() == "x\n"
    assert "changed 1 file; undo 1" in asked(auto, "poll", process).content
    assert [event.change.number for event in auto.events() if isinstance(event, ChangeEvent)] == [1]
    assert no_layer_is_left(tmp_path)
    assert auto.undo().ok
    assert not (workspace / "made").exists()


def test_the_result_says_where_its_changes_are(auto: Handrail) -> None:
    result = auto.exec("sleep 1000", yield_ms=0)
    assert "; its changes stay in its overlay, invisible to others, until it ends" in result.content
    assert result.meta.sandbox is not None
    assert result.meta.sandbox.undo == "layer"


def test_what_was_stopped_is_dropped(auto: Handrail, workspace: Path, tmp_path: Path) -> None:
    process = handed_over(auto, "echo x > made")
    asked(auto, "kill", process)
    assert "dropped" in asked(auto, "poll", process).content
    assert not (workspace / "made").exists()
    assert no_layer_is_left(tmp_path)
    assert auto.changes() == []


def test_what_loses_its_keeper_while_its_call_waits_is_dropped_and_that_is_said(
    auto: Handrail, workspace: Path, tmp_path: Path
) -> None:
    begun = threading.Event()
    auto.subscribe(lambda event: begun.set() if isinstance(event, ToolCallUpdate) else None)
    results: list[ToolResult[Any]] = []
    command = "echo x > made; echo said; sleep 1000"
    call = threading.Thread(target=lambda: results.append(auto.exec(command, yield_ms=600_000)))
    call.start()
    assert begun.wait(SECONDS)
    [folder] = tmp_path.glob("state/**/processes/p-*")
    record = read_record(str(folder))
    assert record is not None
    os.kill(record.keeper.number, signal.SIGKILL)
    call.join(SECONDS)
    assert results[0].error is not None
    assert (results[0].error.code, "they were dropped with its overlay" in results[0].content) == ("INTERRUPTED", True)
    assert not (workspace / "made").exists()
    assert no_layer_is_left(tmp_path)


def test_what_is_removed_takes_its_layer_along(auto: Handrail, workspace: Path, tmp_path: Path) -> None:
    process = handed_over(auto, "echo x > made")
    asked(auto, "remove", process)
    assert not (workspace / "made").exists()
    assert no_layer_is_left(tmp_path)


def test_what_needs_a_yes_waits_for_it(auto: Handrail, workspace: Path) -> None:
    process = handed_over(auto, HOOK)
    assert "wait for approval" in (gone_on(auto, process).changed or "")
    hook = workspace / ".git" / "hooks" / "pre-commit"
    assert not hook.exists()
    [request] = auto.waiting()
    assert request.rule == "fs.protected"
    assert request.answers == ("once", "output", "deny")
    assert auto.answer(request.id, "once").results[0].ok
    assert hook.read_text() == "x"


def test_what_others_changed_meanwhile_is_not_overwritten(auto: Handrail, workspace: Path) -> None:
    (workspace / "both").write_text("first\n")
    process = handed_over(auto, "echo mine >> both")
    (workspace / "both").write_text("theirs\n")
    assert "dropped" in (gone_on(auto, process).changed or "")
    assert (workspace / "both").read_text() == "theirs\n"


@pytest.fixture
def swept(auto: Handrail, tmp_path: Path) -> Generator[tuple[str, Callable[[], None]]]:
    """One that has ended while somebody looks at its layer, as whoever sweeps does; and what ends that look."""
    process = handed_over(auto, "echo x > made; read; echo said")
    [layer] = (tmp_path / "state" / "layers").glob("*")
    with contextlib.ExitStack() as looking:
        looking.callback(os.close, lock_folder(str(layer)))
        asked(auto, "write", process, data="\n\n")
        ended(auto, process)
        yield process, looking.close


def test_whoever_sweeps_just_when_it_ends_makes_it_wait_and_nothing_is_lost(swept, auto: Handrail) -> None:
    process, look_away = swept
    polled = asked(auto, "poll", process)
    assert (polled.data.output, polled.data.process.changed) == ("said\n", None)
    look_away()
    assert record_when(auto, process, lambda known: known.changed is not None).changed == "changed 1 file; undo 1"


def test_it_belongs_to_the_turn_of_its_call_and_to_no_later_one(swept, auto: Handrail, workspace: Path) -> None:
    process, look_away = swept
    assert auto.write("later", "y\n").ok
    look_away()
    record_when(auto, process, lambda known: known.changed is not None)
    assert auto.undo(turn=True).ok
    assert not (workspace / "made").exists()
    assert (workspace / "later").read_text() == "y\n"


def test_what_ends_when_its_workspace_is_gone_is_dropped(auto: Handrail, workspace: Path, tmp_path: Path) -> None:
    process = handed_over(auto, "echo x > made")
    workspace.rename(tmp_path / "moved")
    assert "was moved or removed" in (gone_on(auto, process).changed or "")
    assert asked(auto, "poll", process).ok
    assert asked(auto, "remove", process).ok
    assert list((tmp_path / "moved").iterdir()) == []
    assert no_layer_is_left(tmp_path)


def test_whoever_opens_the_session_next_keeps_what_ended_meanwhile(rail: Make, workspace: Path, tmp_path: Path) -> None:
    first = rail(mode="auto", session="named")
    process = handed_over(first, "echo x > made")
    first.close()
    second = rail(mode="auto", session="named")
    assert gone_on(second, process).changed == "changed 1 file; undo 1"
    assert (workspace / "made").read_text() == "x\n"
    assert no_layer_is_left(tmp_path)
    second.end_session()


def test_it_is_kept_once_whoever_is_killed_on_the_way(rail: Make, workspace: Path, tmp_path: Path) -> None:
    """Killed right after it was kept, and before that was noted."""
    child = os.fork()
    if not child:
        one = rail(mode="auto", session="named")
        process = handed_over(one, "echo x > made")
        sys.setprofile(lambda frame, event, _: _die() if (event, frame.f_code.co_name) == ("call", "settle") else None)
        asked(one, "write", process, data="\n")
        while True:
            asked(one, "poll", process)
    os.waitpid(child, 0)
    one = rail(mode="auto", session="named")
    [record] = one.processes()
    assert record_when(one, record.id, lambda known: known.changed is not None).changed == "changed 1 file; undo 1"
    assert (workspace / "made").read_text() == "x\n"
    assert [change.number for change in one.changes()] == [1]
    one.end_session()
    assert no_layer_is_left(tmp_path)


def test_a_layer_goes_also_where_who_settled_it_was_killed_before_that(rail: Make, tmp_path: Path) -> None:
    child = os.fork()
    if not child:
        one = rail(mode="auto", session="named")
        process = handed_over(one, "echo x > made")
        at = ("call", "remove_overlay")
        watch = lambda frame, event, _: _die() if (event, frame.f_code.co_name) == at else None  # noqa: E731
        sys.setprofile(watch)
        threading.setprofile(watch)
        asked(one, "write", process, data="\n")
        while True:
            asked(one, "poll", process)
    os.waitpid(child, 0)
    assert list((tmp_path / "state" / "layers").glob("*"))
    one = rail(mode="auto", session="named")
    assert one.processes()[0].changed == "changed 1 file; undo 1"
    assert no_layer_is_left(tmp_path)
    one.end_session()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


LITTLE = Settings(limits=Limits(preview="1 MB"), bulk=Bulk(bytes="100 KB"))


def test_what_goes_on_is_stopped_above_its_byte_limit(rail: Make, workspace: Path, tmp_path: Path) -> None:
    auto = rail(settings=LITTLE)
    process = handed_over(auto, "head -c 900K /dev/zero > a; cp a b")
    record = record_when(auto, process, lambda known: known.changed is not None)
    assert (record.state, record.reason) == ("ended", "disk")
    assert no_layer_is_left(tmp_path)
    assert list(workspace.iterdir()) == []


def test_what_is_too_large_to_wait_for_an_answer_is_dropped_when_it_ends(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    auto = rail(settings=LITTLE)
    record = gone_on(auto, handed_over(auto, "truncate -s 900K a b; truncate -s 800K b"))
    assert "limits.preview" in (record.changed or "")
    assert auto.waiting() == ()
    assert no_layer_is_left(tmp_path)
    assert list(workspace.iterdir()) == []
