"""Keeps what a command changed in its layer: all of it or nothing, and so that it can be taken back.

In this order: every path is looked at, and what it holds is kept; the change set is written down as begun; the files
are moved out of the layer into their places; it is written down as done. Killed anywhere, it settles to before or
after. Nothing is flushed for it one by one: what a loss of power may cost is what it may cost a command that ran
without a layer. Where it is to cost nothing (durability "power"), what was kept is on the disk before the first file
is changed, and all files are before the set counts as done.
"""

import contextlib
import os
from collections.abc import Iterator

from handrail.changes.carrying import Carrier
from handrail.changes.former import attributes_of, former
from handrail.changes.holding import Holding, holding_folder
from handrail.changes.layered.checking import Check, outdated
from handrail.changes.layered.places import below_upper
from handrail.changes.layered.repositories import changed_in_repositories
from handrail.changes.layered.sealing import store_after
from handrail.changes.layered.trial import Examined, Manner
from handrail.changes.looking import keep_all
from handrail.changes.manners import Bringing, How, Source
from handrail.changes.opened import closed_folders
from handrail.changes.planned import Planned
from handrail.changes.recorder import Recorded, Recorder
from handrail.changes.ways import only_mode
from handrail.protocol.error import ToolError
from handrail.sandbox.layer.layer import Layer
from handrail.store.change_log import Step, Was
from handrail.workspace.exact import shown_path
from handrail.workspace.temporary import temporary_name
from handrail.workspace.workspace import Workspace


def stale(workspace: Workspace, examined: Examined) -> tuple[str, ...]:
    """The paths that others changed since the command was tried, as results name them."""
    found = Check(workspace, examined).stale()
    return tuple(shown_path(workspace, path) for path in dict.fromkeys(found))


def commit(
    workspace: Workspace,
    recorder: Recorder,
    examined: Examined,
    layer: Layer | None,
    *,
    session_id: str,
    call_id: str,
    summary: str,
    not_covered: tuple[str, ...] = (),
) -> Recorded:
    """Makes the changes; ToolError CONFLICT where others changed one of the files since, and then nothing is changed.

    `layer`: where the new contents are; None where they were sealed. `not_covered`: what undo will not take back.
    """
    check = Check(workspace, examined)
    _refuse_outdated(workspace, examined)
    keep_all(workspace, recorder.history, check.to_keep())
    planned = Planned(
        "exec",
        summary,
        examined.steps,
        examined.changes,
        examined.diffs,
        not_covered=not_covered,
        apart=tuple(step.path for step, manner in _pairs(examined) if manner.linked_to is not None),
        was=_former(workspace, examined, check),
        opened=tuple(closed_folders(workspace, examined.steps).items()),
    )
    temporary = temporary_name(session_id, call_id)

    def work() -> tuple[Step, ...]:
        _carry_out(workspace, recorder, examined, layer, temporary, check, planned)
        return planned.steps

    return recorder.record(call_id, planned, work)


def _former(workspace: Workspace, examined: Examined, check: Check) -> tuple[Was, ...]:
    """What the files are that make room for others. What only gets a mode stays itself; so does what is written in
    place, but for its attributes."""
    going = {
        step.path: check.found[step.path]
        for step, manner in _pairs(examined)
        if not manner.in_place and not only_mode(step)
    }
    dressed = [step.path for step, manner in _pairs(examined) if manner.attributes]
    return (*former(workspace, going, dressed), *_undressed(workspace, examined))


def _undressed(workspace: Workspace, examined: Examined) -> Iterator[Was]:
    for step, manner in _pairs(examined):
        if manner.in_place and (attributes := attributes_of(workspace, step.path)) != manner.attributes:
            yield Was(step.path, attributes, None)


def _refuse_outdated(workspace: Workspace, examined: Examined) -> None:
    for path in examined.outdated or changed_in_repositories(workspace, examined):
        raise outdated(shown_path(workspace, path))


def _carry_out(
    workspace: Workspace,
    recorder: Recorder,
    examined: Examined,
    layer: Layer | None,
    temporary: str,
    check: Check,
    planned: Planned,
) -> None:
    history = recorder.history
    with contextlib.ExitStack() as held:
        manners = _manners(workspace, recorder, examined, layer, held)
        holding = held.enter_context(contextlib.closing(Holding(holding_folder(history.folder, temporary))))
        how = How(manners=manners, found=check.found, opened=dict(planned.opened), whole_folders=True, holding=holding)
        try:
            Carrier(workspace, history, temporary, how).carry_out(examined.steps)
        except ToolError as error:
            raise _nothing_kept(error) from error


def _manners(
    workspace: Workspace, recorder: Recorder, examined: Examined, layer: Layer | None, held: contextlib.ExitStack
) -> dict[bytes, Bringing]:
    """How each file gets to its place. What is written in place, and the targets of links, come from what is kept."""
    uppers: dict[str, int] = {}
    for over in layer.overlaid if layer is not None else ():
        uppers[over.upper] = os.open(over.upper, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        held.callback(os.close, uppers[over.upper])
    manners: dict[bytes, Bringing] = {}
    stored: set[str] = set()
    for step, manner in _pairs(examined):
        if step.after is None or step.after.kind == "folder":
            continue
        source = None
        if layer is not None and (manner.in_place or manner.apart or step.after.kind == "link"):
            if step.after.hash not in stored:  # of the names of one file, the layer may have only the first
                store_after(workspace, recorder.history.blobs, step, layer)
            stored.add(step.after.hash)
        elif manner.in_place:  # a crash in the middle of the write is mended by what the history has
            recorder.history.blobs.keep_borrowed(step.after.hash)
        elif layer is not None:
            over, below = below_upper(workspace, step.path, layer)
            source = Source(uppers[over.upper], below)
        manners[step.path] = Bringing(
            source=source,
            in_place=manner.in_place,
            linked_to=manner.linked_to,
            mtime_ns=manner.mtime_ns,
            attributes=manner.attributes,
        )
    return manners


def _pairs(examined: Examined) -> Iterator[tuple[Step, Manner]]:
    return zip(examined.steps, examined.manners, strict=True)


def _nothing_kept(error: ToolError) -> ToolError:
    if "stuck" in error.named_details:
        return error
    return ToolError(error.code, f"{error.message} Nothing of the command was kept.", details=error.details)
