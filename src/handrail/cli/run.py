"""run: one task for a model, from the shell."""

import os
import shlex
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.agent.turn import Turn
from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_json, print_note, warn
from handrail.cli.place import resolve_workspace
from handrail.cli.preferences import load_settings
from handrail.cli.running.choosing import choose_session, find_last_event, resolve_session
from handrail.cli.running.companions import enable_companion_tools
from handrail.cli.running.ending import get_turn_exit_code, render_ending
from handrail.cli.running.form import Glyphs, build_glyphs
from handrail.cli.running.model import build_no_model_error, resolve_model, warm_up
from handrail.cli.running.prompt import read_prompt
from handrail.cli.running.turn import RunConfig, RunOutcome, run_turn
from handrail.cli.running.view import RunView
from handrail.models.base import Model
from handrail.protocol.events import End, Error, Event
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.settings import LoadedSettings

if TYPE_CHECKING:
    from handrail.cli.files import OutFile


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
        from handrail.cli.running.forking import fork  # noqa: PLC0415  few fork

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
    from handrail.cli.running.choosing import find_last_model  # noqa: PLC0415  only where nobody chose one

    return find_last_model(resolve_session(options.fork, workspace) if options.fork else session, workspace)


def _can_ask(options: Namespace) -> bool:
    from handrail.cli.asking import can_ask  # noqa: PLC0415  only where somebody may be asked

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
    from handrail.cli.running.choosing import find_last_model  # noqa: PLC0415  only where the turn was ended by something

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
        from handrail.cli.running.waiting import print_waiting  # noqa: PLC0415  only where something waits

        print_waiting(turn, f"handrail run --resume {task.session}{here}")
    elif options.out is not None and turn.reason != "done":
        warn(f"{options.out} was not written.")
