"""run: one task for a model, from the shell."""

import os
import shlex
import sys
from argparse import Namespace
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.agent.turn import Turn
from handrail.cli.exits import Stop
from handrail.cli.output import answer_json, note, one_line, warn
from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.cli.running.choosing import chosen_session, found_session, last_event_of
from handrail.cli.running.companions import with_companions
from handrail.cli.running.ending import ending_lines, exit_of
from handrail.cli.running.form import Form, form_of
from handrail.cli.running.model import model_for, no_model, warm_up
from handrail.cli.running.prompt import prompt_of
from handrail.cli.running.turn import Played, Task, play
from handrail.cli.running.view import View
from handrail.models.model import Model
from handrail.protocol.event import End, Error, Event
from handrail.protocol.wire import encode
from handrail.settings import Loaded

if TYPE_CHECKING:
    from handrail.cli.files import OutFile


def run(options: Namespace, model: Model | None = None) -> int:
    """Does what the prompt says, or goes on where the session is. `model`: in the place of the one that is named."""
    if options.park and options.unattended:
        raise Stop("--park leaves what asks waiting, --unattended refuses it: use one of them. Nothing was run.")
    prompt = prompt_of(options)
    if prompt is None and not (options.last or options.resume or options.fork or options.session):
        told = "give a prompt, or - to read it from stdin; -c goes on with the last session"
        raise Stop(f"{told}. Nothing was run. Example: handrail run 'fix the failing test'")
    workspace = workspace_of(_quietly(options))
    loaded = with_companions(_loaded(options, workspace), workspace)
    form = form_of(options)
    out = _out_file(options, workspace)
    task = _task(options, prompt, workspace, loaded, model)
    if not options.json:
        _say_where(task, options, form)
    view, lines = View(options, form, task.model.name), _Lines()
    played = play(task, options, view, lines.show if options.json else view.show)
    code = _end(played, task, options, form, out)
    if failure := view.failure or lines.failure:
        raise failure
    return code


def _loaded(options: Namespace, workspace: str) -> Loaded:
    flags = {"model": options.model, "agent.calls": options.max_calls, "agent.tokens": options.max_tokens}
    return loaded_for(options, options.mode, workspace, flags=flags)


def _task(options: Namespace, prompt: str | None, workspace: str, loaded: Loaded, model: Model | None = None) -> Task:
    session = chosen_session(options, workspace)
    model = model or _model(options, workspace, session, loaded)
    if options.fork is not None:
        from handrail.cli.running.forking import fork  # noqa: PLC0415  few fork

        session = fork(found_session(options.fork, workspace), session, workspace, loaded)
    asks = not options.park and not options.unattended and _can_ask(options)
    unattended = not asks and not options.park
    return Task(
        prompt=prompt,
        workspace=workspace,
        session=session,
        model=model,
        loaded=loaded,
        unattended=unattended,
        asks=asks,
        after=last_event_of(session, workspace),
    )


def _model(options: Namespace, workspace: str, session: str, loaded: Loaded) -> Model:
    name = loaded.settings.model or _last_model(options, workspace, session)
    if name is None:
        raise no_model()
    model = model_for(name, loaded.settings.agent.window)
    warm_up(name)
    return model


def _last_model(options: Namespace, workspace: str, session: str) -> str | None:
    """Whom the session talked to before, where it is an older one."""
    if not (options.last or options.resume or options.fork or options.session):
        return None
    from handrail.cli.running.choosing import model_of  # noqa: PLC0415  only where nobody chose one

    return model_of(found_session(options.fork, workspace) if options.fork else session, workspace)


def _can_ask(options: Namespace) -> bool:
    from handrail.cli.asking import can_ask  # noqa: PLC0415  only where somebody may be asked

    return can_ask(options)


def _quietly(options: Namespace) -> Namespace:
    """The folder is told together with the mode and the model."""
    return Namespace(workspace=options.workspace, json=True)


def _say_where(task: Task, options: Namespace, form: Form) -> None:
    folder = os.path.abspath(task.workspace)
    home = os.path.expanduser("~")
    shown = f"~{folder.removeprefix(home)}" if home != "/" and folder.startswith(f"{home}/") else folder
    session = [f"session {task.session}"] if options.verbose else []
    mode = task.loaded.settings.mode
    note(form.between.join([one_line(shown), mode, one_line(task.model.name), *session]))
    if task.unattended and mode in {"ask", "auto"}:
        note(f"Nobody can be asked here ({_why_nobody(options)}): what would ask is refused. --park lets it wait.")


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
        self.failure: Stop | None = None
        """Why nothing can be printed any more."""

    def show(self, event: Event) -> None:
        """Prints one event."""
        if self._over:
            return
        self._over = isinstance(event, End | Error)
        try:
            answer_json(encode(event))
        except Stop as stop:  # a listener must not raise, and the turn is not the worse for it
            self.failure = stop


def _out_file(options: Namespace, workspace: str) -> "OutFile | None":
    if options.out is None:
        return None
    from handrail.cli.files import OutFile  # noqa: PLC0415  few want a file

    return OutFile(options.out, workspace)


def _end(played: Played, task: Task, options: Namespace, form: Form, out: "OutFile | None") -> int:
    """Says how it ended; the exit code."""
    if task.prompt is None and not played.tally.events and played.turn.reason not in {"parked", "question"}:
        told = f"nothing to go on with: the last turn is over ({played.turn.reason}). Say what is next"
        raise Stop(f"{told}: handrail run --resume {task.session} 'PROMPT'")
    if played.interrupted and played.turn.reason in {"parked", "question"}:
        played = replace(played, turn=replace(played.turn, reason="cancelled"))
    code = exit_of(played.turn)
    if out is not None and played.turn.reason == "done":
        out.write(f"{played.turn.text.rstrip()}\n".encode())
    if not options.json:
        _say_end(played, task, options, form)
    return code


def _sentence(text: str) -> str:
    """What a provider said, with an end that something can follow."""
    line = one_line(text)
    return line if line.endswith((".", "!", "?", "…")) else f"{line}."


def _model_for_next(task: Task, options: Namespace, turn: Turn) -> str:
    """How the next run is told which model, where the session does not know it by itself: nobody has answered yet."""
    if turn.reason == "error" and turn.code == "NOT_FOUND":
        return " --model PROVIDER:ANOTHER"
    from handrail.cli.running.choosing import model_of  # noqa: PLC0415  only where the turn was ended by something

    if not options.model or model_of(task.session, task.workspace) == task.model.name:
        return ""
    return f" --model {shlex.quote(options.model)}"


def _say_end(played: Played, task: Task, options: Namespace, form: Form) -> None:
    turn = played.turn
    here = f" --workspace {shlex.quote(options.workspace)}" if options.workspace else ""
    kept = ""
    if turn.reason in {"error", "cancelled", "limit"}:
        kept = f"The session is kept: handrail run -c{here}{_model_for_next(task, options, turn)}"
    if turn.reason == "error":
        warn(f"{form.failed} {_sentence(turn.message or turn.code or 'it failed')} {kept}")
    if turn.reason != "error" or played.tally.calls:
        for line in ending_lines(turn, played.tally, played.seconds, played.processes, form, here=here):
            note(line)
    if turn.reason in {"cancelled", "limit"}:
        why = f"{one_line(turn.message)} " if turn.message else ""
        warn(f"{why}{kept}{'' if turn.requests or turn.questions else ' PROMPT'}")
    elif turn.reason in {"parked", "question"}:
        from handrail.cli.running.waiting import print_waiting  # noqa: PLC0415  only where something waits

        print_waiting(turn, f"handrail run --resume {task.session}{here}")
    elif options.out is not None and turn.reason != "done":
        warn(f"{options.out} was not written.")
