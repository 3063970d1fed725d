"""Runs previews: a command in an overlay, before somebody is asked about it. What they see, and what waits for them."""

import contextlib
import errno
import os
import re
import sqlite3
from collections.abc import Generator
from datetime import UTC, datetime

from msgspec.structs import replace

from handrail.changes.layered.diffing import add_diffs
from handrail.changes.layered.examining import examine
from handrail.changes.layered.laying import restack, set_expected_changes
from handrail.changes.layered.sealing import count_preview_bytes, delete_preview, save_preview
from handrail.changes.layered.trial import CommandPreview, OverlayChanges
from handrail.changes.recorder import Recorder
from handrail.policy.changeset import collect_moved_paths, is_deletion, rank_by_harm, sort_by_harm
from handrail.policy.parse import ParsedCommand, parse_fact
from handrail.process.census import count_bytes_below
from handrail.process.cleaning import clean_output
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.permissions import ONLY_LOOKS, Preview, PreviewRun
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.layer.layer import Overlay
from handrail.sandbox.limits import MEGABYTE
from handrail.tools.commands import CommandEnvironment
from handrail.tools.confirming import run_with_speculative_sandbox
from handrail.tools.contract import CommandContext
from handrail.tools.exec_spec import ExecArguments
from handrail.tools.running import (
    Confirm,
    NetworkedRun,
    build_weaker_sandbox_error,
    remove_spill_files,
    require_command_fact,
    run_command,
    watch_disk,
)
from handrail.tools.sandbox_words import build_overlay_sandbox_used
from handrail.workspace.roots import check_roots
from handrail.workspace.workspace import Workspace

_DROPPED = "Nothing of the command was kept."
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
_FULL = os.strerror(errno.ENOSPC)
_MIXED = "it uses git, which tracks a credential here, and other programs of it could print that"
_MAX_SHOWN_CHARS = 60_000
"""Characters of what a person is shown; the whole is stored with the preview."""
_MAX_SHOWN_CHANGES = 200
_REPOSITORY = re.compile(r"((?:.*/)?)\.git/(?:index$|objects/)", re.DOTALL)
"""What git writes when it notes the contents of files; the folder that its repository is in."""


def preview_command(
    context: CommandContext, arguments: ExecArguments, commands: CommandEnvironment, recorder: Recorder
) -> Preview:
    """Tries the command as one that nobody was asked about: it sees no credentials and reaches nobody."""
    fact = require_command_fact(context)
    todo = parse_fact(fact)
    if todo.is_read_only:
        return Preview(kind="none", text=ONLY_LOOKS)
    if not fact.has_overlay or fact.hosts or fact.yields:
        return Preview(kind="none", text="needs the network" if fact.hosts else "no overlay here")
    if todo.git_use == "among others" and commands.tracked_credentials(context.workspace.roots):
        return Preview(kind="none", text=_MIXED)

    def tried(profile: SandboxProfile, confirm: Confirm | None) -> Preview:
        return _previewed_in(context, todo, profile, commands, recorder, confirm)

    return run_with_speculative_sandbox(context, todo, arguments.timeout_ms, commands, tried)


def _previewed_in(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    recorder: Recorder,
    confirm: Confirm | None,
) -> Preview:
    sealed = ""
    room, limit = recorder.history.preview_allowance()
    try:
        with (
            stack_earlier_changes(context, profile, commands, recorder) as below,
            open_overlay(context, profile, commands, below) as overlay,
        ):
            limited = watch_disk(context, profile, overlay, room)
            preview = run_preview(context, todo, limited, commands, overlay, confirm=confirm)
            if context.earlier_changes:
                preview = set_expected_changes(preview, context.earlier_changes)
            if preview.ran.ending in {"cancelled", "disk"}:
                remove_spill_files(preview.ran)
                if preview.ran.ending == "disk":
                    raise _too_much(room, limit)
                raise ToolError("CANCELLED", "The call was cancelled while it was tried. Nothing was changed.")
            sealed = store_preview(context, recorder, preview, overlay)
            return to_permission_preview(preview, sealed)
    except BaseException:
        delete_preview(recorder.history, sealed)  # nobody will know of it
        raise


@contextlib.contextmanager
def stack_earlier_changes(
    context: CommandContext, profile: SandboxProfile, commands: CommandEnvironment, recorder: Recorder
) -> Generator[tuple[Overlay, ...]]:
    """What earlier calls of the batch would change, as an overlay to lie on; none where they would change nothing."""
    if not context.earlier_changes:
        yield ()
        return
    with open_overlay(context, profile, commands) as overlay:
        restack(context.workspace, recorder.history, context.earlier_changes, overlay)
        yield (overlay,)


@contextlib.contextmanager
def open_overlay(
    context: CommandContext, profile: SandboxProfile, commands: CommandEnvironment, below: tuple[Overlay, ...] = ()
) -> Generator[Overlay]:
    """A new overlay over all that the command may change; it is gone afterwards, whatever happens."""
    _check_layer(context, commands)
    with commands.sandbox.create_overlay(profile.writable, below) as overlay:
        yield overlay


def _check_layer(context: CommandContext, commands: CommandEnvironment) -> None:
    if commands.why_no_layer(context.workspace.roots) is not None:
        raise build_weaker_sandbox_error()


def run_preview(
    context: CommandContext,
    todo: ParsedCommand,
    profile: SandboxProfile,
    commands: CommandEnvironment,
    overlay: Overlay,
    hosts: tuple[str, ...] = (),
    confirm: Confirm | None = None,
) -> CommandPreview:
    """Runs it in the overlay, and sees what it changed. If it was stopped, nothing of it counts: nobody wanted half of
    a change."""

    def confirm_both() -> None:
        if confirm is not None:
            confirm()
            _check_layer(context, commands)  # once more: of whom folders are is known by the latest look

    went = run_command(context, todo, profile, commands, hosts=hosts, overlay=overlay, confirm=confirm and confirm_both)
    return build_run_preview(context, went, commands, overlay)


def build_run_preview(
    context: CommandContext, went: NetworkedRun, commands: CommandEnvironment, overlay: Overlay
) -> CommandPreview:
    """What came of one that ran in an overlay."""
    ran, limits = went.ran, went.profile.limits
    if ran.ending == "exit" and count_bytes_below(limits.uppers, limits.disk, whole=True) > limits.disk:
        ran = replace(ran, ending="disk", exit_code=None, limits=(*ran.limits, "disk"))
    try:
        examined = (
            examine_overlay(context.workspace, overlay)
            if ran.ending == "exit"
            else OverlayChanges(started=overlay.started)
        )
        _refuse_misled_git(context.workspace, examined, commands, went.profile)
        return CommandPreview(
            ran=ran,
            examined=examined,
            blocked=went.blocked,
            sandbox=build_overlay_sandbox_used(went.profile, commands, went.reached),
        )
    except BaseException:
        remove_spill_files(went.ran)
        raise


def examine_overlay(workspace: Workspace, overlay: Overlay) -> OverlayChanges:
    """What was changed there, as a person is shown it. CONFLICT where the workspace was moved away meanwhile: then
    there is nothing to compare it with."""
    try:
        examined = add_diffs(workspace, overlay, examine(workspace, overlay))
    except OSError:
        check_roots(workspace.roots, _DROPPED)
        raise
    check_roots(workspace.roots, _DROPPED)
    return examined


def _refuse_misled_git(
    workspace: Workspace, examined: OverlayChanges, commands: CommandEnvironment, profile: SandboxProfile
) -> None:
    """CONFLICT where git noted something in a repository that tracks what was hidden from it: an empty file in the
    place of a credential would be committed."""
    found = (_REPOSITORY.match(change.path) for change in examined.changes)
    repositories = {os.path.join(workspace.main.path, one[1]) for one in found if one is not None}
    if not repositories:
        return
    hidden = commands.tracked_credentials(workspace.roots).intersection(
        (*profile.hidden_files, *profile.hidden_folders)
    )
    if any(path.startswith(repository) for path in hidden for repository in repositories):
        message = (
            "The command ran git while a credential that git tracks was hidden from it, which git took for a change."
        )
        advice = "Nothing was kept. Call git in the command itself (`git status; …`): then the file is not hidden."
        raise ToolError("CONFLICT", f"{message} {advice}")


def store_preview(context: CommandContext, recorder: Recorder, preview: CommandPreview, overlay: Overlay) -> str:
    """Stores the preview until somebody answers; returns its name. ToolError if there is no room for it."""
    try:
        check_room(recorder, preview.examined)
        return save_preview(context.workspace, recorder.history, preview, overlay)
    except (OSError, StoreError, ToolError) as error:
        remove_spill_files(preview.ran)
        raise error if isinstance(error, ToolError) else build_storage_error(error) from None


def check_room(recorder: Recorder, examined: OverlayChanges) -> None:
    """LIMIT_EXCEEDED where changes are too large to wait for an answer."""
    room, limit = recorder.history.preview_allowance()
    if count_preview_bytes(examined) > room:
        raise _too_much(room, limit)


def _too_much(room: int, limit: str) -> ToolError:
    message = f"It wrote more than the {room / MEGABYTE:,.1f} MB that {limit} leaves it before an approval."
    advice = "A person can raise the limit, or answer what waits (handrail approvals)."
    return ToolError("LIMIT_EXCEEDED", f"{message} Nothing was changed. {advice}", details={"limits": ["disk"]})


def build_storage_error(error: OSError | StoreError) -> ToolError:
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


def to_permission_preview(preview: CommandPreview, sealed: str) -> Preview:
    """What a person is shown of a preview."""
    diffs = (preview.examined.diffs[number] for number in rank_by_harm(preview.examined.changes))
    diff, printed = "".join(diffs), clean_output(preview.ran.output.head)
    return Preview(
        kind="run",
        text=diff[:_MAX_SHOWN_CHARS],
        truncated=len(diff) > _MAX_SHOWN_CHARS,
        output=printed[:_MAX_SHOWN_CHARS],
        tried=_tried(preview, sealed, printed),
        time=datetime.fromtimestamp(preview.examined.started / 1e9, UTC),
    )


def _tried(preview: CommandPreview, sealed: str, printed: str) -> PreviewRun:
    examined, ran = preview.examined, preview.ran
    files = [change for change in examined.changes if change.kind != "folder"]
    return PreviewRun(
        sealed=sealed,
        exit_code=ran.exit_code,
        duration_ms=round(ran.seconds * 1000, 3),
        ending=ran.ending,
        changes=sort_by_harm(examined.changes)[:_MAX_SHOWN_CHANGES],
        files=len(files),
        deleted=sum(is_deletion(change, collect_moved_paths(examined.changes)) for change in files),
        added=sum(change.added or 0 for change in files),
        removed=sum(change.removed or 0 for change in files),
        lines=len(printed.splitlines()),
        last_line=printed.rstrip().rpartition("\n")[2][:200],
        blocked=preview.blocked,
        unkept=examined.unkept,
    )
