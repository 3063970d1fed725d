"""After close() every method says so, whatever happened on the way there."""

import asyncio
import inspect
import os
import signal
import sqlite3
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from other_server import OtherServer

from handrail import AsyncHandrail, Context, Handrail, StoreError, UsageError, tool
from handrail.protocol.events import Mode
from handrail.settings import Settings

Make = Callable[..., Handrail]

ENDINGS = {"close", "end_session"}
"""They can be repeated."""
ARGUMENTS: dict[str, Any] = {
    "args": {}, "calls": [], "edits": [], "folders": (), "line": 1, "mode": "plan", "listener": print, "work": print,
}  # fmt: skip


def public_methods(kind: type) -> dict[str, Callable[..., Any]]:
    """By their names; properties only say what a session is."""
    found = {name: getattr(kind, name) for name in dir(kind) if not name.startswith("_")}
    return {name: value for name, value in found.items() if inspect.isfunction(value) and name not in ENDINGS}


def arguments_of(method: Callable[..., Any]) -> dict[str, Any]:
    """Something for each parameter that needs it."""
    needed = [one for one in inspect.signature(method).parameters.values() if one.default is one.empty]
    return {one.name: ARGUMENTS.get(one.name, "x") for one in needed if one.name != "self"}


def complaint(use: Callable[[], object]) -> str:
    """What a method says that is of no use any more."""
    try:
        return f"nothing, and returned {use()!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"


CLOSED = "UsageError: this Handrail is closed"


def test_every_method_of_a_closed_handrail_says_that_it_is_closed(rail: Make) -> None:
    one = rail()
    one.close()
    said = {
        name: complaint(partial(getattr(one, name), **arguments_of(method)))
        for name, method in public_methods(Handrail).items()
    }
    assert len(said) > 50
    assert {name: words for name, words in said.items() if words != CLOSED} == {}


def test_every_method_of_a_closed_async_handrail_says_that_it_is_closed(workspace: Path, tmp_path: Path) -> None:
    async def awaited(rail: AsyncHandrail, name: str) -> None:
        method = getattr(Handrail, name, None) or getattr(AsyncHandrail, name)
        outcome = getattr(rail, name)(**arguments_of(method))
        if inspect.isawaitable(outcome):
            await outcome

    rail = AsyncHandrail(workspace, state_dir=tmp_path / "state", settings=Settings())
    asyncio.run(rail.close())
    names = public_methods(AsyncHandrail).keys() - {"working_in"}  # which only says where others run
    said = {name: complaint(lambda name=name: asyncio.run(awaited(rail, name))) for name in names}
    assert len(said) > 50
    assert {name: words for name, words in said.items() if words != CLOSED} == {}


def test_what_was_taken_of_it_before_says_so_too(rail: Make) -> None:
    one = rail()
    one.write("a.txt", "x")
    events, conversation = one.events(), one.conversation
    next(events)
    one.close()
    uses: list[Callable[[], object]] = [
        lambda: next(events), lambda: one.conversation, lambda: one.deferred_calls, conversation.messages,
        conversation.last_turn_event, conversation.last_prompt, conversation.new_call_id, conversation.active_skills,
        conversation.instructions, conversation.tell, lambda: conversation.add(()),
        lambda: conversation.begin_turn("t"),
    ]  # fmt: skip
    for use in uses:
        with pytest.raises(UsageError, match="this Handrail is closed"):
            use()


def test_a_call_that_close_waits_for_can_be_cancelled(rail: Make) -> None:
    inside = threading.Event()

    @tool(read_only=True, auto_execute=True)
    def wait(context: Context) -> str:
        """Wait until it is cancelled."""
        inside.set()
        while not context.cancelled():
            inside.wait(0.01)
        return "ended"

    one = rail(tools=[wait])
    call, closing = threading.Thread(target=one.call, args=("wait", {})), threading.Thread(target=one.close)
    call.start()
    assert inside.wait(30)
    closing.start()
    while not one._closed:
        pass
    one.cancel()
    closing.join(30)
    assert not closing.is_alive()
    call.join()


def test_a_mode_whose_event_cannot_be_stored_does_not_come_into_force(rail: Make, tmp_path: Path) -> None:
    one = rail(mode="ask")
    [journal] = (tmp_path / "state").rglob("journal.db")
    with sqlite3.connect(journal) as other:
        other.execute("ALTER TABLE event RENAME TO lost")
    with pytest.raises(StoreError):
        one.set_mode("full")
    assert one.mode == "ask"
    with sqlite3.connect(journal) as other:
        other.execute("ALTER TABLE lost RENAME TO event")


def test_who_hears_of_a_mode_finds_it_in_force(rail: Make) -> None:
    one = rail(mode="ask")
    heard: list[str] = []
    one.subscribe(lambda _: heard.append(one.mode), kinds=(Mode,))
    one.set_mode("plan")
    assert heard == ["plan"]


class Interrupted(OtherServer):
    """A server at whose end the person presses Ctrl-C."""

    def close(self) -> None:
        """Interrupts whoever waits for it."""
        os.kill(os.getpid(), signal.SIGINT)


def test_an_interrupt_while_it_closes_leaves_nothing_open(rail: Make, tmp_path: Path) -> None:
    one = rail(sources=[Interrupted("other")])
    one.write("a.txt", "x")
    with pytest.raises(KeyboardInterrupt):
        one.close()
    assert [path for path in open_files() if path.startswith(str(tmp_path))] == []


def test_a_session_that_cannot_be_opened_leaves_nothing_open(rail: Make, tmp_path: Path) -> None:
    @tool
    def twice(context: Context) -> str:
        """Is given twice."""
        return ""

    with pytest.raises(UsageError, match="twice"):
        rail(tools=[twice, twice])
    assert [path for path in open_files() if path.startswith(str(tmp_path))] == []
    assert not list(tmp_path.rglob("*.runner"))


def open_files() -> list[str]:
    """The paths of all descriptors of this process."""
    found: list[str] = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except FileNotFoundError:  # the listing's own
            continue
    return found
