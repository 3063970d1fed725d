"""AsyncHandrail: the same methods, in a pool of threads."""

import asyncio
import inspect
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from handrail import AsyncHandrail, Done, Handrail, UsageError
from handrail.settings import Settings


def test_the_async_face_has_the_same_tool_and_wire_methods() -> None:
    optional = ("multi_edit", "apply_patch", "delete")
    for name in (*optional, "read", "write", "edit", "find", "grep", "ls", "call", "batch", "answer", "waiting"):
        assert inspect.iscoroutinefunction(getattr(AsyncHandrail, name))
        assert getattr(AsyncHandrail, name).__doc__ == getattr(Handrail, name).__doc__


def test_many_reads_at_once_each_get_their_own_file(workspace: Path, tmp_path: Path) -> None:
    for number in range(40):
        (workspace / f"{number}.txt").write_text(str(number))

    async def read_all() -> list[str]:
        async with AsyncHandrail(workspace, state_dir=tmp_path / "state", settings=Settings(), threads=4) as rail:
            results = await asyncio.gather(*(rail.read(f"{number}.txt") for number in range(40)))
        return [result.content for result in results]

    assert asyncio.run(read_all()) == [str(number) for number in range(40)]


def test_a_parked_call_is_answered_and_runs(workspace: Path, tmp_path: Path) -> None:
    async def play() -> None:
        async with AsyncHandrail(workspace, mode="ask", state_dir=tmp_path / "state", settings=Settings()) as rail:
            first = await rail.write("a.txt", "hello")
            assert first.error is not None
            assert first.error.code == "PERMISSION_REQUIRED"
            (request,) = await rail.waiting()
            done = await rail.answer(request.id, "once")
            assert isinstance(done, Done)
            assert done.results[0].ok

    asyncio.run(play())
    assert (workspace / "a.txt").read_text() == "hello"


def test_the_loop_is_free_while_a_session_opens(workspace: Path, tmp_path: Path) -> None:
    let_go, waited = threading.Event(), []

    class Slow:
        def __fspath__(self) -> str:
            waited.append(let_go.wait(10))
            return str(workspace)

    async def play() -> None:
        opening = asyncio.create_task(AsyncHandrail.open(Slow(), state_dir=tmp_path / "state", settings=Settings()))
        await asyncio.sleep(0)
        let_go.set()
        async with await opening as rail:
            assert rail.workspace == str(workspace)

    asyncio.run(play())
    assert waited
    assert all(waited)


def test_a_session_whose_opening_is_cancelled_is_closed(workspace: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"session": "s", "state_dir": tmp_path / "state", "settings": Settings()}
    before = len(os.listdir("/proc/self/fd"))

    async def play() -> None:
        opening = asyncio.create_task(AsyncHandrail.open(workspace, **options))
        await asyncio.sleep(0)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening

    asyncio.run(play())
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_loop_is_free_while_a_call_waits(workspace: Path, tmp_path: Path) -> None:
    from handrail import Context, tool

    entered, go_on = asyncio.Event(), asyncio.Event()

    async def play() -> None:
        loop = asyncio.get_running_loop()

        @tool(read_only=True, auto_execute=True)
        def wait(context: Context) -> str:
            """Wait until told."""
            loop.call_soon_threadsafe(entered.set)
            asyncio.run_coroutine_threadsafe(go_on.wait(), loop).result(60)
            return "waited"

        async with AsyncHandrail(workspace, state_dir=tmp_path / "state", settings=Settings(), tools=[wait]) as rail:
            waiting = asyncio.create_task(rail.call("wait", {}))
            await asyncio.wait_for(entered.wait(), 60)
            assert (await rail.ls(".")).ok
            go_on.set()
            assert (await waiting).content == "waited"

    asyncio.run(play())


def test_what_waits_for_nothing_is_passed_on_as_it_is(workspace: Path, tmp_path: Path) -> None:
    async def play() -> None:
        async with AsyncHandrail(workspace, mode="ask", state_dir=tmp_path / "state", settings=Settings()) as rail:
            assert (rail.mode, rail.workspace) == ("ask", str(workspace))
            heard: list[str] = []
            stop = rail.subscribe(lambda event: heard.append(event.event_id))
            await rail.set_mode("plan")
            stop()
            assert rail.mode == "plan"
            assert heard == [f"{rail.session_id}:1"]
            assert len(list(rail.events())) == 1
            assert [spec.name for spec in rail.specs()] == [entry["name"] for entry in rail.anthropic_tools()]
            assert len(rail.openai_tools()) == len(rail.specs())
            rail.cancel()
            assert (await rail.ls(".")).error.code == "CANCELLED"  # type: ignore[union-attr]

    asyncio.run(play())


def test_it_has_every_public_name_of_the_other() -> None:
    public = {name for name in vars(Handrail) if not name.startswith("_")}
    assert public - set(vars(AsyncHandrail)) == set()


def test_options_for_a_session_that_is_open_already_are_refused(workspace: Path, tmp_path: Path) -> None:
    with Handrail(workspace, state_dir=tmp_path / "state", mode="ask") as rail:
        assert AsyncHandrail(rail).mode == "ask"
        with pytest.raises(UsageError, match="mode, session"):
            AsyncHandrail(rail, session="other", mode="plan")
