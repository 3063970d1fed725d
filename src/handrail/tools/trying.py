"""Tries a command in a layer, before somebody is asked about it: what they see, and what waits for their answer."""

import contextlib
import errno
import os
import re
import sqlite3
from collections.abc import Generator
from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.changes.layered.diffing import with_diffs
from handrail.changes.layered.examining import examine
from handrail.changes.layered.laying import expecting, lay
from handrail.changes.layered.sealing import drop, seal, size_of
from handrail.changes.layered.trial import Examined, Trial
from handrail.changes.recorder import Recorder
from handrail.policy.confinement import Runnable, runnable
from handrail.policy.harm import by_harm, is_deletion, moved_away, order_by_harm
from handrail.process.census import bytes_below
from handrail.process.cleaning import cleaned
from handrail.protocol.error import StoreError, ToolError
from handrail.protocol.permission import ONLY_LOOKS, Preview, Tried
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.layer.layer import Layer
from handrail.sandbox.limits import MEGABYTE
from handrail.tools.commands import Commands
from handrail.tools.confirming import confined
from handrail.tools.contract import CommandContext
from handrail.tools.exec import ExecArguments
from handrail.tools.running import Confirm, Went, command_of, remove_printed, run_command, watch_disk, weaker_sandbox
from handrail.tools.sandbox_words import layered_sandbox_of
from handrail.workspace.root import check_places
from handrail.workspace.workspace import Workspace

_DROPPED = "Nothing of the command was kept."
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_FULL = os.strerror(errno.ENOSPC)
_MIXED = "it uses git, which tracks a credential here, and other programs of it could print that"
_SHOWN = 60_000
"""Characters of what a person is shown; the whole waits with the trial."""
_MOST_CHANGES = 200
_REPOSITORY = re.compile(r"((?:.*/)?)\.git/(?:index$|objects/)", re.DOTALL)
"""What git writes when it notes the contents of files; the folder that its repository is in."""


def preview_command(
    context: CommandContext, arguments: ExecArguments, commands: Commands, recorder: Recorder
) -> Preview:
    """Tries the command as one that nobody was asked about: it sees no credentials and reaches nobody."""
    fact = command_of(context)
    todo = runnable(fact.text, fact.cwd, fact.there)
    if todo.proven:
        return Preview(kind="none", text=ONLY_LOOKS)
    if not fact.layered or fact.hosts or fact.yields:
        return Preview(kind="none", text="needs the network" if fact.hosts else "no layer here")
    if todo.git == "among others" and commands.tracked_credentials(context.workspace.roots):
        return Preview(kind="none", text=_MIXED)

    def tried(confinement: Confinement, confirm: Confirm | None) -> Preview:
        return _previewed_in(context, todo, confinement, commands, recorder, confirm)

    return confined(context, todo, arguments.timeout_ms, commands, tried)


def _previewed_in(
    context: CommandContext,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    recorder: Recorder,
    confirm: Confirm | None,
) -> Preview:
    sealed = ""
    room, limit = recorder.history.room()
    try:
        with (
            laid_below(context, confinement, commands, recorder) as below,
            layer_over(context, confinement, commands, below) as layer,
        ):
            limited = watch_disk(context, confinement, layer, room)
            trial = try_command(context, todo, limited, commands, layer, confirm=confirm)
            if context.below:
                trial = expecting(trial, context.below)
            if trial.ran.ending in {"cancelled", "disk"}:
                remove_printed(trial.ran)
                if trial.ran.ending == "disk":
                    raise _too_much(room, limit)
                raise ToolError("CANCELLED", "The call was cancelled while it was tried. Nothing was changed.")
            sealed = sealed_trial(context, recorder, trial, layer)
            return previewed(trial, sealed)
    except BaseException:
        drop(recorder.history, sealed)  # nobody will know of it
        raise


@contextlib.contextmanager
def laid_below(
    context: CommandContext, confinement: Confinement, commands: Commands, recorder: Recorder
) -> Generator[tuple[Layer, ...]]:
    """What earlier calls of the batch would change, as a layer to lie on; none where they would change nothing."""
    if not context.below:
        yield ()
        return
    with layer_over(context, confinement, commands) as layer:
        lay(context.workspace, recorder.history, context.below, layer)
        yield (layer,)


@contextlib.contextmanager
def layer_over(
    context: CommandContext, confinement: Confinement, commands: Commands, below: tuple[Layer, ...] = ()
) -> Generator[Layer]:
    """A new layer over all that the command may change; it is gone afterwards, whatever happens."""
    _check_layer(context, commands)
    with commands.sandbox.new_layer(confinement.writable, below) as layer:
        yield layer


def _check_layer(context: CommandContext, commands: Commands) -> None:
    if commands.why_no_layer(context.workspace.roots) is not None:
        raise weaker_sandbox()


def try_command(
    context: CommandContext,
    todo: Runnable,
    confinement: Confinement,
    commands: Commands,
    layer: Layer,
    hosts: tuple[str, ...] = (),
    confirm: Confirm | None = None,
) -> Trial:
    """Runs it in the layer, and sees what it changed. Of one that was stopped nothing counts: half of a change is none
    that anybody wanted."""

    def confirm_both() -> None:
        if confirm is not None:
            confirm()
            _check_layer(context, commands)  # once more: of whom folders are is known by the latest look

    went = run_command(context, todo, confinement, commands, hosts=hosts, layer=layer, confirm=confirm and confirm_both)
    return trial_of(context, went, commands, layer)


def trial_of(context: CommandContext, went: Went, commands: Commands, layer: Layer) -> Trial:
    """What came of one that ran in a layer."""
    ran, limits = went.ran, went.confinement.limits
    if ran.ending == "exit" and bytes_below(limits.uppers, limits.disk, whole=True) > limits.disk:
        ran = replace(ran, ending="disk", exit_code=None, limits=(*ran.limits, "disk"))
    try:
        examined = examined_in(context.workspace, layer) if ran.ending == "exit" else Examined(started=layer.started)
        _refuse_misled_git(context.workspace, examined, commands, went.confinement)
        return Trial(
            ran=ran,
            examined=examined,
            blocked=went.blocked,
            sandbox=layered_sandbox_of(went.confinement, commands, went.reached),
        )
    except BaseException:
        remove_printed(went.ran)
        raise


def examined_in(workspace: Workspace, layer: Layer) -> Examined:
    """What was changed there, as a person is shown it. CONFLICT where the workspace was moved away meanwhile: then
    there is nothing to compare it with."""
    try:
        examined = with_diffs(workspace, layer, examine(workspace, layer))
    except OSError:
        check_places(workspace.roots, _DROPPED)
        raise
    check_places(workspace.roots, _DROPPED)
    return examined


def _refuse_misled_git(workspace: Workspace, examined: Examined, commands: Commands, confinement: Confinement) -> None:
    """CONFLICT where git noted something in a repository that tracks what was hidden from it: an empty file in the
    place of a credential would be committed."""
    found = (_REPOSITORY.match(change.path) for change in examined.changes)
    repositories = {os.path.join(workspace.main.path, one[1]) for one in found if one is not None}
    if not repositories:
        return
    hidden = commands.tracked_credentials(workspace.roots).intersection(
        (*confinement.hidden_files, *confinement.hidden_folders)
    )
    if any(path.startswith(repository) for path in hidden for repository in repositories):
        message = (
            "The command ran git while a credential that git tracks was hidden from it, which git took for a change."
        )
        advice = "Nothing was kept. Call git in the command itself (`git status; …`): then the file is not hidden."
        raise ToolError("CONFLICT", f"{message} {advice}")


def sealed_trial(context: CommandContext, recorder: Recorder, trial: Trial, layer: Layer) -> str:
    """Puts the trial by until somebody answers; what it is found by. ToolError where there is no room for it."""
    try:
        check_room(recorder, trial.examined)
        return seal(context.workspace, recorder.history, trial, layer)
    except (OSError, StoreError, ToolError) as error:
        remove_printed(trial.ran)
        raise error if isinstance(error, ToolError) else not_put_by(error) from None


def check_room(recorder: Recorder, examined: Examined) -> None:
    """LIMIT_EXCEEDED where changes are too large to wait for an answer."""
    room, limit = recorder.history.room()
    if size_of(examined) > room:
        raise _too_much(room, limit)


def _too_much(room: int, limit: str) -> ToolError:
    message = f"It wrote more than the {room / MEGABYTE:,.1f} MB that {limit} leaves it before an approval."
    advice = "A person can raise the limit, or answer what waits (handrail approvals)."
    return ToolError("LIMIT_EXCEEDED", f"{message} Nothing was changed. {advice}", details={"limits": ["disk"]})


def not_put_by(error: OSError | StoreError) -> ToolError:
    """The refusal where what a command would change could not be stored."""
    cause = error if isinstance(error, OSError) else error.__cause__
    full = _is_full(cause)
    why = _FULL if full else cause.strerror if isinstance(cause, OSError) else str(error)
    message = f"What the command changed could not be stored ({why}), so it was dropped. Nothing was changed."
    return ToolError("NO_SPACE" if full else "IO_ERROR", f"{message} Try again when there is room.")


def _is_full(error: BaseException | None) -> bool:
    """Whether there is no room: for a file, or in a database."""
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def previewed(trial: Trial, sealed: str) -> Preview:
    """What a person is shown of a trial."""
    diffs = (trial.examined.diffs[number] for number in order_by_harm(trial.examined.changes))
    diff, printed = "".join(diffs), cleaned(trial.ran.output.head)
    return Preview(
        kind="run",
        text=diff[:_SHOWN],
        truncated=len(diff) > _SHOWN,
        output=printed[:_SHOWN],
        tried=_tried(trial, sealed, printed),
        time=datetime.fromtimestamp(trial.examined.started / 1e9, UTC),
    )


def _tried(trial: Trial, sealed: str, printed: str) -> Tried:
    examined, ran = trial.examined, trial.ran
    files = [change for change in examined.changes if change.kind != "folder"]
    return Tried(
        sealed=sealed,
        exit_code=ran.exit_code,
        duration_ms=round(ran.seconds * 1000, 3),
        ending=ran.ending,
        changes=by_harm(examined.changes)[:_MOST_CHANGES],
        files=len(files),
        deleted=sum(is_deletion(change, moved_away(examined.changes)) for change in files),
        added=sum(change.added or 0 for change in files),
        removed=sum(change.removed or 0 for change in files),
        lines=len(printed.splitlines()),
        last_line=printed.rstrip().rpartition("\n")[2][:200],
        blocked=trial.blocked,
        unkept=examined.unkept,
    )
