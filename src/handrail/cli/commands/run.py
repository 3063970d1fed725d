"""`handrail run`: one turn of a model, from the shell."""

import asyncio
import os
import shlex
import signal
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from threading import Lock
from types import SimpleNamespace
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.agent.loop import Agent, ask_in_turn
from handrail.agent.turn import Turn
from handrail.async_api import AsyncHandrail
from handrail.cli.commands.run_setup import RunConfig, build_turn_limits, find_last_model, prepare_run
from handrail.cli.commands.run_view import RunView
from handrail.cli.context import add_dialect_option, find_server_sources, resolve_workspace
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, WAITING, CommandFailed
from handrail.cli.files import OutFile
from handrail.cli.format import choose_event_renderer
from handrail.cli.output import print_error, print_json, print_note, warn
from handrail.cli.parser import (
    Command,
    add_json_option,
    add_plain_option,
    add_session_options,
)
from handrail.cli.permission import LEFT_WAITING, describe_answer_commands, render_request_text
from handrail.cli.usage import parse_nonempty_text, parse_number
from handrail.models.base import Model
from handrail.protocol.calls import Done, Parked
from handrail.protocol.events import End, Error, Event, ToolCallStart
from handrail.protocol.permissions import ApproverReply, PermissionRequest, Question
from handrail.protocol.records import ProcessRecord
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.terminal.error_text import describe_turn_failure
from handrail.terminal.glyphs import Glyphs, build_glyphs
from handrail.terminal.keyboard import raise_on_signal
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover, reload_subject
from handrail.terminal.question_prompt import spell_out
from handrail.terminal.screen import format_folder
from handrail.terminal.turn_summary import Tally, render_ending

_LEFT = b"error: interrupted. The session is kept.\nnext: handrail run -c\n"

_EXITS = {"done": OK, "cancelled": INTERRUPTED, "limit": LIMIT, "parked": WAITING, "question": WAITING}
_ERRORS = {
    "UNAVAILABLE": INFRASTRUCTURE,
    "NOT_FOUND": INFRASTRUCTURE,
    "SANDBOX_UNAVAILABLE": INFRASTRUCTURE,
    "LIMIT_EXCEEDED": LIMIT,
    "CANCELLED": INTERRUPTED,
}


class RunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that is over, or waits for a person."""

    turn: Turn
    tally: Tally
    seconds: float
    processes: tuple[ProcessRecord, ...]
    interrupted: bool


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "prompt",
        metavar="PROMPT",
        nargs="?",
        help="the task; - reads it from stdin; other piped input is added to it",
    )
    add_session_options(parser, type=parse_nonempty_text)
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("--unattended", action="store_true", help="deny requests for approval (as with CI set)")
    whom.add_argument("--park", action="store_true", help="leave requests waiting, and exit 3")
    parser.add_argument("-o", dest="out", metavar="FILE", help="write the last answer to this file")
    parser.add_argument("--max-calls", metavar="N", type=parse_number(1), help="tool calls of the turn, at most")
    parser.add_argument("--max-tokens", metavar="N", type=parse_number(1), help="tokens of the turn, at most")
    add_dialect_option(parser)
    add_plain_option(parser)
    add_json_option(parser, "print one event a line, end or error last; never asks")


def run(options: SimpleNamespace, model: Model | None = None) -> int:
    """Runs a turn. `model`: instead of the one in the options."""
    if options.park and options.unattended:
        raise CommandFailed("--park and --unattended exclude each other. Nothing was run.")
    workspace = resolve_workspace(options, quiet=True)  # the header names it
    out = None if options.out is None else OutFile(options.out, workspace)
    config = prepare_run(options, workspace, model)
    glyphs = build_glyphs(options)
    if not options.json:
        _print_header(config, options, glyphs)
    view, printer = RunView(options, glyphs, config.model.name), _EventPrinter(config)
    outcome = asyncio.run(_run_turn(config, options, view, printer.show if options.json else view.show))
    code = _finish(outcome, config, options, glyphs, out)
    if failure := view.failure or printer.failure:
        raise failure
    return code


COMMANDS = {
    "run": Command(
        run,
        add_arguments,
        ("handrail run 'fix the failing test'", "handrail run 'review this' --json < changes.diff"),
        {
            OK: "done",
            FAILED: "the model failed, or there is no such session",
            WAITING: "a request or question waits for you; the session is stored",
            INFRASTRUCTURE: "the provider, the sandbox or the state folder is unusable; the session is stored",
            LIMIT: "a limit ended the turn; the session is stored",
            INTERRUPTED: "interrupted; the session is stored",
        },
    ),
}


def _print_header(config: RunConfig, options: SimpleNamespace, glyphs: Glyphs) -> None:
    session = [f"session {config.session}"] if options.verbose else []
    mode = config.loaded.settings.mode
    print_note(glyphs.between.join([format_folder(config.workspace), mode, to_one_line(config.model.name), *session]))
    if config.unattended and mode in {"ask", "auto"}:
        why = _explain_unattended(options)
        print_note(f"No approvals here ({why}): requests are denied. --park lets them wait.")


def _explain_unattended(options: SimpleNamespace) -> str:
    if options.unattended:
        return "--unattended"
    if os.environ.get("CI"):
        return "CI is set"
    return "no terminal" if sys.stdout is None or sys.stdout.isatty() else "stdout is not a terminal"


def _finish(
    outcome: RunOutcome, config: RunConfig, options: SimpleNamespace, glyphs: Glyphs, out: OutFile | None
) -> int:
    """Prints how the turn ended. Returns the exit code."""
    waits = outcome.turn.reason in {"parked", "question"}
    if config.prompt is None and not outcome.tally.events and not waits:
        problem = f"nothing to resume: the last turn is over ({outcome.turn.reason}). Nothing was run."
        raise CommandFailed(problem, then=f"handrail run --resume {config.session} 'PROMPT'")
    if outcome.interrupted and waits:
        outcome = replace(outcome, turn=replace(outcome.turn, reason="cancelled"))
    if out is not None and outcome.turn.reason == "done":
        out.write(f"{outcome.turn.text.rstrip()}\n".encode())
    if not options.json:
        print_ending(outcome, config, options, glyphs)
    return get_turn_exit_code(outcome.turn)


# The end


def get_turn_exit_code(turn: Turn) -> int:
    return _EXITS[turn.reason] if turn.reason != "error" else _ERRORS.get(turn.code or "", FAILED)


def print_ending(outcome: RunOutcome, config: RunConfig, options: SimpleNamespace, glyphs: Glyphs) -> None:
    """Prints the summary of a turn, and the next command."""
    turn = outcome.turn
    here = f" --workspace {shlex.quote(options.workspace)}" if options.workspace else ""
    again = f"handrail run -c{here}{_render_model_option(config, options, turn)}"
    if turn.reason == "error":
        print_error(describe_turn_failure(turn.message or turn.code or "it failed"), again)
    if turn.reason != "error" or outcome.tally.calls:
        for line in render_ending(turn.reason, outcome.tally, outcome.seconds, outcome.processes, glyphs, here=here):
            print_note(line)
    if turn.reason in {"cancelled", "limit"}:
        then = f"{again}{'' if turn.requests or turn.questions else ' PROMPT'}"
        print_error(describe_turn_failure(turn.message or "interrupted"), then)
    elif turn.reason in {"parked", "question"}:
        _print_waiting(turn, f"handrail run --resume {config.session}{here}")
    elif options.out is not None and turn.reason != "done":
        warn(f"{options.out} was not written.")


def _print_waiting(turn: Turn, resume: str) -> None:
    """Prints pending requests and questions, and the commands that answer them."""
    for request in turn.requests:
        print_note(render_request_text(request).rstrip())
        warn(describe_answer_commands(request))
    for question in turn.questions:
        warn(f"? {to_one_line(question.question)}")
        for number, option in enumerate(question.options, 1):
            warn(f"{number:>3}  {to_one_line(option)}")
        warn(f"To reply: {resume} {'NUMBER-OR-TEXT' if question.options else 'TEXT'}")
    if turn.requests:
        warn(f"Then go on: {resume}")


def _render_model_option(config: RunConfig, options: SimpleNamespace, turn: Turn) -> str:
    """The option that the next run needs, if no model has answered in the session yet."""
    if turn.reason == "error" and turn.code == "NOT_FOUND":
        return " --model PROVIDER:ANOTHER"
    if not options.model or find_last_model(config.session, config.workspace) == config.model.name:
        return ""
    return f" --model {shlex.quote(options.model)}"


class _EventPrinter:
    """Prints each event as a line of JSON, up to the end of the turn."""

    def __init__(self, config: RunConfig) -> None:
        """The dialect may have its own form of events."""
        self._render = choose_event_renderer(config.loaded.settings.dialect, config.workspace)
        self._over = False
        self.failure: CommandFailed | None = None
        """Why it cannot print any more."""

    def show(self, event: Event) -> None:
        if self._over:
            return
        self._over = isinstance(event, End | Error)
        try:
            for message in self._render(event):
                print_json(encode(message))
        except CommandFailed as failure:  # a listener must not raise, and the turn can go on
            self.failure = failure


# The turn


async def _run_turn(
    config: RunConfig, options: SimpleNamespace, view: RunView, show: Callable[[Event], None]
) -> RunOutcome:
    rail = AsyncHandrail(
        config.workspace,
        session=config.session,
        settings=config.loaded,
        unattended=config.unattended,
        on_permission=None,
        sources=find_server_sources(options, config.loaded, config.workspace),
    )
    async with rail:
        tally, interrupt = Tally(), RunInterrupt(view)
        listener = _DedupedListener(tally.add, show)
        approver = RunApprover(rail, view, plain=options.plain, interrupted=interrupt.note)
        agent = Agent(
            rail,
            config.model,
            limits=build_turn_limits(config.loaded),
            person=partial(ask_in_turn, rail, approver=approver) if config.asks else None,
            on_piece=view.show_model_activity,
        )
        for event in _list_earlier_events(rail, config.after):
            tally.preload(event)
            if isinstance(event, ToolCallStart):
                view.remember(event.tool_call_id, event.args)
        interrupt.listen(asyncio.get_running_loop(), agent.cancel)
        for call in rail.conversation.open_calls() if config.after else ():
            view.remember(call.tool_call_id, call.args)
        unsubscribe = rail.subscribe(listener.tell)
        rail.subscribe_to_previews(view.show_preview)
        for event in rail.events(config.after):
            if isinstance(event, Event):
                listener.tell(event)
        begun = time.monotonic()
        try:
            turn = await (agent.go_on() if config.prompt is None else agent.run(await _read_reply(rail, config.prompt)))
        finally:
            unsubscribe()
            view.end()
            await config.model.close()
        if not tally.ended and (mark := rail.conversation.last_turn_event()) is not None:
            show(mark)  # the turn waits, as it did before
        return RunOutcome(
            turn=turn,
            tally=tally,
            seconds=time.monotonic() - begun,
            processes=await rail.processes(),
            interrupted=interrupt.noted,
        )


def _list_earlier_events(rail: AsyncHandrail, last: int) -> Iterator[Event]:
    """The events of the unfinished turn from before this process."""
    begun = rail.conversation.last_prompt() if last else 0
    for event in rail.events(begun - 1) if begun else ():
        if event.seq > last:
            return
        if isinstance(event, Event):
            yield event


async def _read_reply(rail: AsyncHandrail, prompt: str) -> str:
    """The prompt. If a question waits, a number in it means an option of the question."""
    questions = await rail.waiting_questions()
    return spell_out(questions[0], prompt) if questions else prompt


class _DedupedListener:
    """Delivers each event once, from the journal or live."""

    def __init__(self, *listeners: Callable[[Event], None]) -> None:
        self._listeners = listeners
        self._delivered: set[int] = set()
        self._lock = Lock()

    def tell(self, event: Event) -> None:
        with self._lock:
            if event.seq in self._delivered:
                return
            self._delivered.add(event.seq)
            for listener in self._listeners:
                listener(event)


# The person at the terminal


class RunApprover:
    """Asks in the thread of the event loop, which has nothing to do before there is an answer."""

    def __init__(
        self, rail: AsyncHandrail, view: RunView, *, plain: bool, interrupted: Callable[[], None] | None = None
    ) -> None:
        """`interrupted` is told about Ctrl-C. Without it, Ctrl-C ends the command."""
        hooks = RequestHooks(rail.rail.is_pending, rail.rail.outdated, rail.rail.retry)
        self._terminal = TerminalApprover(hooks, plain=plain, shows_results=view.shows_results)
        self._rail, self._view, self._interrupted = rail, view, interrupted

    async def ask(self, subject: PermissionRequest | Question, number: int, total: int) -> ApproverReply:
        try:
            with self._view.lend(), raise_on_signal():
                if isinstance(subject, Question):
                    return ApproverReply(subject, self._terminal.ask_question(subject))
                return self._terminal.ask(subject, number, total)
        except KeyboardInterrupt:
            if self._interrupted is None:
                raise
            self._interrupted()
            self._view.print_line(LEFT_WAITING)
            return ApproverReply(reload_subject(subject, self._rail.rail.waiting()))

    def report(self, reply: ApproverReply, outcome: Done | Parked | None) -> None:
        if isinstance(reply.subject, Question) and outcome is None:
            self._view.print_line("Somebody else replied before you.")
        with self._view.above():
            self._terminal.report(reply, outcome)


class RunInterrupt:
    """Stops the turn at the first SIGINT or SIGTERM, and ends the process at the second."""

    def __init__(self, view: RunView) -> None:
        self._view = view
        self.noted = False

    def note(self) -> None:
        self.noted = True

    def listen(self, loop: asyncio.AbstractEventLoop, cancel: Callable[[], Any]) -> None:
        def interrupted() -> None:
            if self.noted:
                with suppress(OSError):
                    os.write(2, self._view.erasure + _LEFT)  # takes no lock, since a hanging thread may hold it
                os._exit(INTERRUPTED)  # the journal has everything
            self.noted = True
            self._view.print_line("Stopping … Ctrl-C again leaves at once.")
            cancel()

        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupted)
