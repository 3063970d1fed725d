"""handrail run."""

import os
import shlex
import signal
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Lock
from types import FrameType
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from handrail.agent.loop import Agent, ask_in_turn
from handrail.agent.turn import Turn, TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.cli.commands.run_setup import (
    build_no_model_error,
    choose_session,
    enable_companion_tools,
    find_last_event,
    read_prompt,
    resolve_model,
    resolve_session,
    warm_up,
)
from handrail.cli.commands.run_summary import Tally, get_turn_exit_code, render_ending
from handrail.cli.commands.run_view import Glyphs, RunView, build_glyphs
from handrail.cli.context import find_server_sources, load_settings, resolve_workspace
from handrail.cli.exits import INTERRUPTED, CommandFailed
from handrail.cli.output import print_json, print_note, warn
from handrail.models.model import Model
from handrail.protocol.calls import Done, Parked
from handrail.protocol.events import End, Error, Event
from handrail.protocol.messages import AssistantMessage, CallPart
from handrail.protocol.permissions import ApproverReply, PermissionRequest, Question
from handrail.protocol.records import ProcessRecord
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.settings import LoadedSettings
from handrail.terminal.approver import TerminalApprover
from handrail.terminal.question import RequestHooks

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from handrail.cli.files import OutFile


# § [cli.running.person] Asks the person at the terminal while a turn runs.


class RunApprover:
    """Asks in the thread of the event loop, which has nothing to do before there is an answer."""

    def __init__(self, rail: AsyncHandrail, view: RunView, *, plain: bool, interrupted: Callable[[], None]) -> None:
        hooks = RequestHooks(rail.rail.is_pending, rail.rail.outdated, rail.rail.retry)
        self._terminal = TerminalApprover(hooks, plain=plain)
        self._rail, self._view, self._interrupted = rail, view, interrupted

    async def ask(self, subject: PermissionRequest | Question, number: int, total: int) -> ApproverReply:
        self._view.end()
        try:
            with _interruptible():
                if isinstance(subject, Question):
                    return ApproverReply(subject, self._terminal.ask_question(subject))
                return self._terminal.ask(subject, number, total)
        except KeyboardInterrupt:
            self._view.print_line("Left waiting. Your files are untouched. handrail approvals lists it.")
            self._interrupted()
            return ApproverReply(self._reload(subject))

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        if isinstance(reply.subject, Question) and outcome is None:
            self._view.print_line("Somebody else replied before you.")
        self._terminal.report(reply, outcome)

    def _reload(self, subject: PermissionRequest | Question) -> PermissionRequest | Question:
        """The request as it is now: the person may have retried it in the prompt that was interrupted."""
        pending = self._rail.rail.waiting() if isinstance(subject, PermissionRequest) else ()
        return next((request for request in pending if request.tool_call_id == subject.tool_call_id), subject)


@contextmanager
def _interruptible() -> Generator[None]:
    """Lets SIGINT and SIGTERM end the prompt, which restores the terminal first."""

    def leave(_: int, __: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, leave) for number in (signal.SIGINT, signal.SIGTERM)}
    wakes = signal.set_wakeup_fd(-1)  # otherwise the event loop would handle the signal too, afterwards
    try:
        yield
    finally:
        signal.set_wakeup_fd(wakes)
        for number, handler in before.items():
            signal.signal(number, handler)


# § [cli.running.turn] One turn of a model at work, from the shell: it is watched, it can be interrupted, and its
# § session stays.


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
    from handrail.terminal.replying import spell_out  # noqa: PLC0415  mostly nothing is asked

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


# § [cli.run] run: one task for a model, from the shell.


def run(options: Namespace, model: Model | None = None) -> int:
    """Does what the prompt says, or goes on where the session is. `model`: in the place of the one that is named."""
    if options.park and options.unattended:
        raise CommandFailed(
            "--park leaves what asks waiting, --unattended refuses it: use one of them. Nothing was run."
        )
    prompt = read_prompt(options)
    if prompt is None and not (options.last or options.resume or options.fork or options.session):
        told = "give a prompt, or - to read it from stdin; -c goes on with the last session"
        raise CommandFailed(f"{told}. Nothing was run. Example: handrail run 'fix the failing test'")
    workspace = resolve_workspace(_quietly(options))
    loaded = enable_companion_tools(_loaded(options, workspace), workspace)
    form = build_glyphs(options)
    out = _out_file(options, workspace)
    task = _task(options, prompt, workspace, loaded, model)
    if not options.json:
        _say_where(task, options, form)
    view, lines = RunView(options, form, task.model.name), _Lines()
    played = run_turn(task, options, view, lines.show if options.json else view.show)
    code = _end(played, task, options, form, out)
    if failure := view.failure or lines.failure:
        raise failure
    return code


def _loaded(options: Namespace, workspace: str) -> LoadedSettings:
    flags = {"model": options.model, "agent.calls": options.max_calls, "agent.tokens": options.max_tokens}
    return load_settings(options, options.mode, workspace, flags=flags)


def _task(
    options: Namespace, prompt: str | None, workspace: str, loaded: LoadedSettings, model: Model | None = None
) -> RunConfig:
    session = choose_session(options, workspace)
    model = model or _model(options, workspace, session, loaded)
    if options.fork is not None:
        from handrail.cli.commands.run_setup import fork  # noqa: PLC0415  few fork

        session = fork(resolve_session(options.fork, workspace), session, workspace, loaded)
    asks = not options.park and not options.unattended and _can_ask(options)
    unattended = not asks and not options.park
    return RunConfig(
        prompt=prompt,
        workspace=workspace,
        session=session,
        model=model,
        loaded=loaded,
        unattended=unattended,
        asks=asks,
        after=find_last_event(session, workspace),
    )


def _model(options: Namespace, workspace: str, session: str, loaded: LoadedSettings) -> Model:
    name = loaded.settings.model or _last_model(options, workspace, session)
    if name is None:
        raise build_no_model_error()
    model = resolve_model(name, loaded.settings.agent.window)
    warm_up(name)
    return model


def _last_model(options: Namespace, workspace: str, session: str) -> str | None:
    """Whom the session talked to before, where it is an older one."""
    if not (options.last or options.resume or options.fork or options.session):
        return None
    from handrail.cli.commands.run_setup import find_last_model  # noqa: PLC0415  only where nobody chose one

    return find_last_model(resolve_session(options.fork, workspace) if options.fork else session, workspace)


def _can_ask(options: Namespace) -> bool:
    from handrail.cli.permission import can_ask  # noqa: PLC0415  only where somebody may be asked

    return can_ask(options)


def _quietly(options: Namespace) -> Namespace:
    """The folder is told together with the mode and the model."""
    return Namespace(workspace=options.workspace, json=True)


def _say_where(task: RunConfig, options: Namespace, form: Glyphs) -> None:
    folder = os.path.abspath(task.workspace)
    home = os.path.expanduser("~")
    shown = f"~{folder.removeprefix(home)}" if home != "/" and folder.startswith(f"{home}/") else folder
    session = [f"session {task.session}"] if options.verbose else []
    mode = task.loaded.settings.mode
    print_note(form.between.join([to_one_line(shown), mode, to_one_line(task.model.name), *session]))
    if task.unattended and mode in {"ask", "auto"}:
        print_note(
            f"Nobody can be asked here ({_why_nobody(options)}): what would ask is refused. --park lets it wait."
        )


def _why_nobody(options: Namespace) -> str:
    if options.unattended:
        return "--unattended"
    if os.environ.get("CI"):
        return "CI is set"
    return "no terminal" if sys.stdout is None or sys.stdout.isatty() else "stdout is no terminal"


class _Lines:
    """Every event on a line of its own, up to the one that ends the turn."""

    def __init__(self) -> None:
        self._over = False
        self.failure: CommandFailed | None = None
        """Why nothing can be printed any more."""

    def show(self, event: Event) -> None:
        """Prints one event."""
        if self._over:
            return
        self._over = isinstance(event, End | Error)
        try:
            print_json(encode(event))
        except CommandFailed as stop:  # a listener must not raise, and the turn is not the worse for it
            self.failure = stop


def _out_file(options: Namespace, workspace: str) -> "OutFile | None":
    if options.out is None:
        return None
    from handrail.cli.files import OutFile  # noqa: PLC0415  few want a file

    return OutFile(options.out, workspace)


def _end(played: RunOutcome, task: RunConfig, options: Namespace, form: Glyphs, out: "OutFile | None") -> int:
    """Says how it ended; the exit code."""
    if task.prompt is None and not played.tally.events and played.turn.reason not in {"parked", "question"}:
        told = f"nothing to go on with: the last turn is over ({played.turn.reason}). Say what is next"
        raise CommandFailed(f"{told}: handrail run --resume {task.session} 'PROMPT'")
    if played.interrupted and played.turn.reason in {"parked", "question"}:
        played = replace(played, turn=replace(played.turn, reason="cancelled"))
    code = get_turn_exit_code(played.turn)
    if out is not None and played.turn.reason == "done":
        out.write(f"{played.turn.text.rstrip()}\n".encode())
    if not options.json:
        _say_end(played, task, options, form)
    return code


def _sentence(text: str) -> str:
    """What a provider said, with an end that something can follow."""
    line = to_one_line(text)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _model_for_next(task: RunConfig, options: Namespace, turn: Turn) -> str:
    """How the next run is told which model, where the session does not know it by itself: nobody has answered yet."""
    if turn.reason == "error" and turn.code == "NOT_FOUND":
        return " --model PROVIDER:ANOTHER"
    from handrail.cli.commands.run_setup import find_last_model  # noqa: PLC0415  only where the turn was ended by something

    if not options.model or find_last_model(task.session, task.workspace) == task.model.name:
        return ""
    return f" --model {shlex.quote(options.model)}"


def _say_end(played: RunOutcome, task: RunConfig, options: Namespace, form: Glyphs) -> None:
    turn = played.turn
    here = f" --workspace {shlex.quote(options.workspace)}" if options.workspace else ""
    kept = ""
    if turn.reason in {"error", "cancelled", "limit"}:
        kept = f"The session is kept: handrail run -c{here}{_model_for_next(task, options, turn)}"
    if turn.reason == "error":
        warn(f"{form.failed} {_sentence(turn.message or turn.code or 'it failed')} {kept}")
    if turn.reason != "error" or played.tally.calls:
        for line in render_ending(turn, played.tally, played.seconds, played.processes, form, here=here):
            print_note(line)
    if turn.reason in {"cancelled", "limit"}:
        why = f"{to_one_line(turn.message)} " if turn.message else ""
        warn(f"{why}{kept}{'' if turn.requests or turn.questions else ' PROMPT'}")
    elif turn.reason in {"parked", "question"}:
        from handrail.cli.commands.run_summary import print_waiting  # noqa: PLC0415  only where something waits

        print_waiting(turn, f"handrail run --resume {task.session}{here}")
    elif options.out is not None and turn.reason != "done":
        warn(f"{options.out} was not written.")
