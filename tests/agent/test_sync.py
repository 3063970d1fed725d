"""Agent for programs without an event loop."""

import asyncio
import os
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from checked_events import check_events

from handrail import Agent, Handrail, UsageError
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import End, Error, ToolCallRunning
from handrail.settings import Settings

WRITE = ("write", {"path": "b.txt", "content": "x\n"})
SLEEPS = f"sleep 986.{os.getpid():08}"
"""No other run has a command of this name."""


@pytest.fixture
def opened(tmp_path: Path, workspace: Path) -> Any:
    def make(**options: Any) -> Handrail:
        return Handrail(workspace, state_dir=tmp_path / "state", session="talk", settings=Settings(), **options)

    yield make
    with make() as rail:
        check_events(rail)


def test_a_few_lines_are_enough(opened: Any, workspace: Path) -> None:
    with opened(mode="auto") as rail:
        turn = Agent(rail, ScriptedModel([ScriptedReply(calls=(WRITE,)), ScriptedReply(text="Done.")])).run_sync(
            "Write it."
        )
        assert (turn.reason, turn.text, turn.files_changed) == ("done", "Done.", ("b.txt",))
        assert rail.read("b.txt").ok  # it is still open: whoever opened it closes it


def test_calls_run_in_the_programs_own_thread_and_ask_as_they_would_by_hand(opened: Any) -> None:
    asked: list[threading.Thread] = []

    def answer(_: Any) -> str:
        asked.append(threading.current_thread())
        return "once"

    with opened(mode="ask", on_permission=answer) as rail:
        turn = Agent(rail, ScriptedModel([ScriptedReply(calls=(WRITE,)), ScriptedReply(text="Done.")])).run_sync(
            "Write it."
        )
    assert turn.files_changed == ("b.txt",)
    assert asked == [threading.main_thread()]


@pytest.mark.parametrize("line", [ScriptedReply(calls=(("exec", {"command": SLEEPS}),)), ScriptedReply(calls=(WRITE,))])
def test_ctrl_c_ends_the_turn_and_then_the_program(opened: Any, line: ScriptedReply) -> None:
    with opened(mode="full") as rail:
        rail.subscribe(lambda event: isinstance(event, ToolCallRunning) and os.kill(os.getpid(), signal.SIGINT))
        agent = Agent(rail, ScriptedModel([line, ScriptedReply(text="Done.")]))
        with pytest.raises(KeyboardInterrupt):
            agent.run_sync("go")
        assert [event.reason for event in rail.events() if isinstance(event, End)] == ["cancelled"]
        assert agent.run_sync("and now").text == "Done."
    assert not subprocess.run(["pgrep", "-f", SLEEPS], capture_output=True, check=False).stdout


def test_a_second_ctrl_c_in_the_middle_of_the_first_ends_it_too(opened: Any) -> None:
    interrupts = [KeyboardInterrupt()]

    class Impatient(Agent):
        def cancel(self) -> bool:
            if interrupts:
                raise interrupts.pop()
            return super().cancel()

    with opened(mode="full") as rail:
        rail.subscribe(lambda event: isinstance(event, ToolCallRunning) and os.kill(os.getpid(), signal.SIGINT))
        agent = Impatient(rail, ScriptedModel([ScriptedReply(calls=(WRITE,)), ScriptedReply(text="Done.")]))
        with pytest.raises(KeyboardInterrupt):
            agent.run_sync("go")
        assert [event.reason for event in rail.events() if isinstance(event, End)] == ["cancelled"]
        assert agent.run_sync("and now").text == "Done."


def test_a_program_that_exits_when_it_is_asked_exits(opened: Any, workspace: Path) -> None:
    def leave(_: Any) -> str:
        raise SystemExit(7)

    with opened(mode="ask", on_permission=leave) as rail:
        with pytest.raises(SystemExit):
            Agent(rail, ScriptedModel([ScriptedReply(calls=(WRITE,)), ScriptedReply(text="Done.")])).run_sync(
                "Write it."
            )
        assert [event.reason for event in rail.events() if isinstance(event, End)] == ["cancelled"]
        assert not rail.waiting()
    assert not (workspace / "b.txt").exists()


def test_connections_end_with_the_event_loop_that_they_belong_to(opened: Any) -> None:
    connections: list[Any] = []

    class Connected(ScriptedModel):
        def stream(self, request: Any) -> Any:
            connections.append(asyncio.get_running_loop())
            return super().stream(request)

        async def close(self) -> None:
            connections.remove(asyncio.get_running_loop())

    model = Connected([ScriptedReply(text="One."), ScriptedReply(text="Two.")])
    with opened() as rail:
        agent = Agent(rail, model)
        assert [agent.run_sync("go").text, agent.run_sync("go on").text] == ["One.", "Two."]
    assert connections == []


def test_what_is_no_model_is_refused_at_once(opened: Any) -> None:
    with opened() as rail, pytest.raises(UsageError, match="a model is a name"):
        Agent(rail, 7)  # type: ignore[arg-type]


def test_a_failure_reaches_the_caller(opened: Any) -> None:
    class Broken:
        name, window = "test:broken", 1_000_000

        async def stream(self, request: Any) -> Any:
            raise ZeroDivisionError
            yield

        async def close(self) -> None:
            pass

    with opened() as rail:
        with pytest.raises(ZeroDivisionError):
            Agent(rail, Broken()).run_sync("go")
        (error,) = (event for event in rail.events() if isinstance(event, Error))
        assert (error.code, error.retryable) == ("INTERNAL", False)
        assert Agent(rail, ScriptedModel([ScriptedReply(text="Done.")])).run_sync("again").text == "Done."
