"""Who waits for whom: writes of a session one at a time, a file for one session at a time, reads for nobody."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from handrail import Context, Handrail, Output, Tool, tool
from handrail.runtime.locks import ROOT, Locks, SessionQueue
from handrail.tools.tool import Touches

Make = Callable[..., Handrail]


class Gate:
    """A tool that stops inside until it is let go, and the paths it declares."""

    def __init__(self, *writes: str) -> None:
        self.inside, self.open = threading.Event(), threading.Event()
        plain = tool(lambda: "x", name="gate", description="Stops inside.")
        self.tool = Tool(plain.spec, self._run, lambda _: Touches(writes=writes))

    def _run(self, *_: Any) -> Output:
        self.inside.set()
        assert self.open.wait(60)
        return Output(summary="done", content="done", data=None)


def code(result: Any) -> str | None:
    return result.error.code if result.error else None


def locks_of(tmp_path: Path) -> list[str]:
    return [name for name in os.listdir(tmp_path / "state" / "locks") if not name.startswith(ROOT)]


def test_writes_of_one_session_run_one_at_a_time(rail: Make) -> None:
    running, most = 0, 0

    @tool
    def busy() -> str:
        """Looks how many run beside it."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        os.sched_yield()
        running -= 1
        return "done"

    objects = [rail(mode="full", session="s", tools=[busy]) for _ in range(2)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda number: objects[number % 2].call("busy", {}).ok, range(80)))
    assert all(results)
    assert most == 1


def test_reads_never_wait(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("text\n")
    gate = Gate("a.txt")
    one, other = rail(mode="full", session="s", tools=[gate.tool]), rail(mode="full", session="t")
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.call, "gate", {})
        assert gate.inside.wait(60)
        assert one.read("a.txt").content == "text\n"
        assert one.ls().ok
        assert other.read("a.txt").ok
        assert not first.done()
        gate.open.set()
        assert first.result().ok


def test_a_file_that_another_session_holds_is_a_conflict_after_a_bounded_wait(
    rail: Make, workspace: Path, tmp_path: Path
) -> None:
    gate = Gate("a.txt")
    one, other = rail(mode="full", session="s", tools=[gate.tool]), rail(mode="full", session="t")
    other._session.lock_seconds = 0.05
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.call, "gate", {})
        assert gate.inside.wait(60)
        refused = other.write("a.txt", "x")
        assert code(refused) == "CONFLICT"
        assert "another session" in refused.summary
        assert not (workspace / "a.txt").exists()
        assert other.write("b.txt", "x").ok
        gate.open.set()
        assert first.result().ok
    assert other.write("a.txt", "x").ok
    assert locks_of(tmp_path) == []


def test_a_write_waits_for_the_file_and_then_runs(rail: Make, workspace: Path) -> None:
    gate = Gate("a.txt")
    one, other = rail(mode="full", session="s", tools=[gate.tool]), rail(mode="full", session="t")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(one.call, "gate", {})
        assert gate.inside.wait(60)
        second = pool.submit(other.write, "a.txt", "x")
        assert not second.done()
        gate.open.set()
        assert first.result().ok
        assert second.result().ok


@pytest.mark.parametrize("spelling", ["a.txt", "./a.txt", "folder/../a.txt", "link", "ABSOLUTE"])
def test_a_file_is_one_file_however_it_is_spelled(rail: Make, workspace: Path, spelling: str) -> None:
    (workspace / "folder").mkdir()
    (workspace / "a.txt").write_text("old")
    (workspace / "link").symlink_to("a.txt")
    gate = Gate(spelling.replace("ABSOLUTE", str(workspace / "a.txt")))
    one, other = rail(mode="full", session="s", tools=[gate.tool]), rail(mode="full", session="t")
    other._session.lock_seconds = 0.02
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.call, "gate", {})
        assert gate.inside.wait(60)
        assert code(other.write("a.txt", "x")) == "CONFLICT"
        gate.open.set()
        first.result()


def test_a_file_with_two_names_is_one_file(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("old")
    os.link(workspace / "a.txt", workspace / "b.txt")
    gate = Gate("a.txt")
    holder, other = rail(mode="full", session="one", tools=[gate.tool]), rail(mode="full", session="two")
    other._session.lock_seconds = 0.05
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(holder.call, "gate", {})
        assert gate.inside.wait(60)
        assert code(other.write("b.txt", "new")) == "CONFLICT"
        gate.open.set()
        assert held.result().ok
    assert other.write("b.txt", "new").ok


def test_sessions_of_two_workspaces_that_share_a_file_share_its_lock(rail: Make, workspace: Path) -> None:
    (workspace / "inner").mkdir()
    gate = Gate("inner/a.txt")
    one = rail(mode="full", session="s", tools=[gate.tool])
    other = rail(mode="full", session="t", workspace=workspace / "inner")
    other._session.lock_seconds = 0.02
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.call, "gate", {})
        assert gate.inside.wait(60)
        assert code(other.write("a.txt", "x")) == "CONFLICT"
        gate.open.set()
        first.result()


def test_two_sessions_that_want_the_same_files_in_another_order_do_not_block_each_other(rail: Make) -> None:
    def both(*writes: str) -> Tool:
        plain = tool(lambda: "x", name="both", description="Holds two files.")
        return Tool(plain.spec, lambda *_: Output(summary="", content="", data=None), lambda _: Touches(writes=writes))

    one = rail(mode="full", session="s", tools=[both("a", "b")])
    other = rail(mode="full", session="t", tools=[both("b", "a")])
    with ThreadPoolExecutor(2) as pool:
        work = [pool.submit(lambda own=own: [own.call("both", {}).ok for _ in range(40)]) for own in (one, other)]
        assert all(all(done.result()) for done in work)


def test_a_session_busy_in_another_object_is_a_conflict_after_a_bounded_wait(rail: Make) -> None:
    gate = Gate()
    one, other = rail(mode="full", session="s", tools=[gate.tool]), rail(mode="full", session="s")
    other._session.queue_seconds = 0.05
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(one.call, "gate", {})
        assert gate.inside.wait(60)
        assert code(other.write("a.txt", "x")) == "CONFLICT"
        gate.open.set()
        assert first.result().ok
    assert other.write("a.txt", "x").ok


def test_a_tool_that_writes_through_its_own_session_is_refused_not_hung(rail: Make) -> None:
    inner: list[Any] = []

    @tool
    def outer() -> str:
        """Calls another tool."""
        inner.append(own.write("a.txt", "x"))
        inner.append(own.ls())
        return "done"

    own = rail(mode="full", tools=[outer])
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(own.call, "outer", {}).result(timeout=40).ok
    assert [code(result) for result in inner] == ["CONFLICT", None]
    assert own.write("a.txt", "x").ok


def test_whatever_a_call_comes_to_it_leaves_no_lock(rail: Make, tmp_path: Path, workspace: Path) -> None:
    @tool
    def fails(context: Context, kind: str) -> str:
        """Fails."""
        if kind == "defect":
            raise ValueError
        os.kill(os.getpid(), signal.SIGINT)
        while not context.cancelled():
            threading.Event().wait(0.01)
        return "x"

    one = rail(mode="full", tools=[fails])
    one.write("a.txt", "x")
    one.write(".", "x")
    one.call("fails", {"kind": "defect"})
    with pytest.raises(KeyboardInterrupt):
        one.call("fails", {"kind": "interrupt"})
    assert locks_of(tmp_path) == []
    assert one.write("a.txt", "y").ok


HOLDER = """
import sys, time
from handrail.runtime.locks import Locks
lock = Locks(sys.argv[1]).of("file:x")
assert lock.take(5)
sys.stdout.write("held\\n"); sys.stdout.flush()
time.sleep(60)
"""


def test_a_killed_holder_frees_its_lock(tmp_path: Path) -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    lock = Locks(str(tmp_path)).of("file:x")
    assert not lock.take(0.02)
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    assert lock.take(0)
    lock.release()
    assert os.listdir(tmp_path) == []


def test_a_wait_ends_when_it_is_cancelled(tmp_path: Path) -> None:
    locks = Locks(str(tmp_path))
    held, wanted = locks.of("a"), locks.of("a")
    assert held.take(0)
    started = time.monotonic()
    assert not wanted.take(600, lambda: True)
    assert time.monotonic() - started < 60
    assert locks.of("b").take(0)
    held.release()
    held.release()
    assert wanted.take(0)


def test_locks_of_many_threads_hold_one_at_a_time(tmp_path: Path) -> None:
    locks, inside, most = Locks(str(tmp_path)), 0, 0

    def work(_: int) -> None:
        nonlocal inside, most
        for _ in range(25):
            lock = locks.of("a")
            assert lock.take(60)
            inside += 1
            most = max(most, inside)
            os.sched_yield()
            inside -= 1
            lock.release()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    assert most == 1
    assert os.listdir(tmp_path) == []


def test_a_turn_can_be_left_by_whoever_does_not_have_it() -> None:
    turns = SessionQueue()
    turns.leave()
    turns.enter()
    assert turns.held_here
    other = threading.Thread(target=turns.leave)
    other.start()
    other.join()
    assert turns.held_here
    turns.leave()
    assert not turns.held_here
    taken = threading.Thread(target=turns.enter)
    taken.start()
    taken.join(40)
    assert not taken.is_alive()


def test_marks_of_what_was_seen_make_a_write_stale_only_if_the_bytes_differ(rail: Make, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    one = rail()
    assert one.read("a.txt").ok
    os.utime(workspace / "a.txt", (1, 1))
    assert one.write("a.txt", "two\n").ok
    (workspace / "a.txt").write_text("somebody else's\n")
    assert code(one.write("a.txt", "three\n")) == "STALE_FILE"
    (workspace / "a.txt").write_text("two\n")
    assert one.write("a.txt", "three\n").ok
    unread = one.write("a.txt", "four\n")
    assert not unread.meta.unread
    (workspace / "b.txt").write_text("never read\n")
    assert one.write("b.txt", "x").meta.unread
