"""One turn of a model at work, from the shell: it is watched, it can be interrupted, and its session stays."""

import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.agent.loop import Agent, ask_in_turn
from handrail.agent.turn import Turn, TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.cli.exits import INTERRUPTED
from handrail.cli.preferences import find_server_sources
from handrail.cli.running.person import RunApprover
from handrail.cli.running.tally import Tally
from handrail.cli.running.view import RunView
from handrail.models.base import Model
from handrail.protocol.events import Event
from handrail.protocol.messages import AssistantMessage, CallPart
from handrail.protocol.records import ProcessRecord
from handrail.settings import LoadedSettings

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done, where, by whom, and who may be asked."""

    prompt: str | None
    """None: go on with what is there."""
    workspace: str
    session: str
    model: Model
    loaded: LoadedSettings
    unattended: bool
    asks: bool
    """Whether the person at this terminal is asked."""
    after: int
    """The last event that the session had before: what was made up for when it was opened belongs to this turn."""


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it."""

    turn: Turn
    tally: Tally
    seconds: float
    processes: tuple[ProcessRecord, ...]
    interrupted: bool


def run_turn(task: RunConfig, options: Namespace, view: RunView, show: Callable[[Event], None]) -> RunOutcome:
    """Plays the turn to its end; `show` gets every event as it comes."""
    import asyncio  # noqa: PLC0415  help and wrong usage need no loop

    return asyncio.run(_play(task, options, view, show))


async def _play(task: RunConfig, options: Namespace, view: RunView, show: Callable[[Event], None]) -> RunOutcome:
    import asyncio  # noqa: PLC0415  as above

    rail = AsyncHandrail(
        task.workspace,
        session=task.session,
        settings=task.loaded,
        unattended=task.unattended,
        on_permission=None,
        sources=find_server_sources(options, task.loaded, task.workspace),
    )
    async with rail:
        tally, stopping = Tally(), RunInterrupt(view)
        once = _DedupedListener(tally.add, show)
        approver = RunApprover(rail, view, plain=options.plain, interrupted=stopping.note)
        agent = Agent(
            rail,
            task.model,
            limits=build_turn_limits(task.loaded),
            person=partial(ask_in_turn, rail, approver=approver) if task.asks else None,
            on_piece=view.show_model_activity,
        )
        for event in _before(rail, task.after):
            tally.preload(event)
            view.preload(event)
        stopping.listen(asyncio.get_running_loop(), agent.cancel)
        for call in _begun(rail) if task.after else ():
            view.remember(call.tool_call_id, call.args)
        unsubscribe = rail.subscribe(once.tell)
        for event in rail.events(task.after):
            if isinstance(event, Event):
                once.tell(event)
        begun = time.monotonic()
        try:
            turn = await (agent.go_on() if task.prompt is None else agent.run(await _meant(rail, task.prompt)))
        finally:
            unsubscribe()
            view.end()
            await task.model.close()
        if not tally.ended and (mark := rail.conversation.last_turn_event()) is not None:
            show(mark)  # it waits, as it did before
        processes = await rail.processes()
        return RunOutcome(
            turn=turn,
            tally=tally,
            seconds=time.monotonic() - begun,
            processes=processes,
            interrupted=stopping.noted,
        )


def _begun(rail: AsyncHandrail) -> tuple[CallPart, ...]:
    """The calls of the session's last message: what they come to may be told without their beginning."""
    said = rail.conversation.messages()
    last = said[-1].message if said else None
    parts = last.parts if isinstance(last, AssistantMessage) else ()
    return tuple(part for part in parts if isinstance(part, CallPart))


async def _meant(rail: AsyncHandrail, prompt: str) -> str:
    """What the person says. A question was shown with numbers, so that one of them may be the reply."""
    asked = await rail.waiting_questions()
    if not asked:
        return prompt
    from handrail.terminal.question_prompt import spell_out  # noqa: PLC0415  mostly nothing is asked

    return spell_out(asked[0], prompt)


def _before(rail: AsyncHandrail, last: int) -> Iterator[Event]:
    """What happened in the turn that may go on now, before this process."""
    begun = rail.conversation.last_prompt() if last else 0
    for event in rail.events(begun - 1) if begun else ():
        if event.seq > last:
            return
        if isinstance(event, Event):
            yield event


def build_turn_limits(loaded: LoadedSettings) -> TurnLimits:
    """What the settings say of a turn."""
    said = msgspec.structs.asdict(loaded.settings.agent)
    return TurnLimits(**{name: value for name, value in said.items() if name in TurnLimits.__struct_fields__})


class _DedupedListener:
    """Tells every event once, whether it was found in the journal or came just now."""

    def __init__(self, *listeners: Callable[[Event], None]) -> None:
        self._listeners = listeners
        self._told: set[int] = set()
        self._lock = Lock()

    def tell(self, event: Event) -> None:
        """Tells it, if nobody has."""
        with self._lock:
            if event.seq in self._told:
                return
            self._told.add(event.seq)
            for listener in self._listeners:
                listener(event)


_LEFT = b"handrail: interrupted. The session is saved. Next: handrail run -c\n"


class RunInterrupt:
    """Ctrl-C, and whoever ends the process: the first time the turn is stopped, the second time the process ends."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self.noted = False

    def note(self) -> None:
        """Somebody wants it to end."""
        self.noted = True

    def listen(self, loop: "AbstractEventLoop", cancel: Callable[[], Any]) -> None:
        """From now on."""

        def interrupted() -> None:
            if self.noted:
                with suppress(OSError):
                    os.write(2, _LEFT)  # past all locks, which what hangs may hold
                os._exit(INTERRUPTED)  # the journal has what was done
            self.noted = True
            self._view.print_line("Stopping … once more leaves at once.")
            cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupted)
