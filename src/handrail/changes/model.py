"""The parts of a change set."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from handrail.edit.diff import Diff
from handrail.process.result import CommandResult
from handrail.protocol.changes import Action, Change, State
from handrail.protocol.results import SandboxUsed
from handrail.store.change_log import Step
from handrail.workspace.file_state import PathState


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is put in its place, if its state does not tell."""

    in_place: bool | None = None
    """Write through the present file, so that its other names change too. None: if it has other names."""
    linked_to: bytes | None = None
    """The path that it becomes another name of."""
    force_copy: bool = msgspec.field(default=False, name="apart")
    """Make a separate file, although the overlay has it as another name of one."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] | None = None
    """Extended attributes of the user namespace. None: those of the present file."""


PLAIN_PLACEMENT = Placement()
PLAIN_OVERLAY_PLACEMENT = Placement(in_place=False, attributes={})


class OverlayFile(NamedTuple):
    """A file of an overlay, below the open top folder of the overlay."""

    top: int
    path: str


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    placements: Mapping[bytes, Placement] = {}
    sources: Mapping[bytes, OverlayFile | bytes] = {}
    """Files of an overlay to move, or bytes to write. Other contents come from the blobs of the history."""
    known_states: Mapping[bytes, PathState] = {}
    """States that were just read. A file is checked again when it is taken out."""
    unlocked_dirs: Mapping[bytes, int] = {}
    """Folders to make writable meanwhile, with their modes."""
    require_empty_dirs: bool = False
    """Whether a folder to remove that is not empty is a conflict. Otherwise it stays."""
    allow_copies: bool = False
    """Whether a file may become a separate one if the path to link to has other bytes."""
    use_staging: bool = False
    """Whether removed files are set aside until the end, so that the very files come back if a step fails."""


class OverlayChanges(msgspec.Struct, frozen=True, kw_only=True):
    """The changes in an overlay, compared with the folders below it."""

    started: int
    """When the overlay was made, by the clock of the file system. Later change times are changes by others."""
    steps: tuple[Step, ...] = ()
    manners: tuple[Placement, ...] = ()
    """One for each step."""
    changes: tuple[Change, ...] = ()
    """One for each step."""
    diffs: tuple[str, ...] = ()
    """One for each step. Empty for binary and large files, and before `add_diffs`."""
    unkept: tuple[str, ...] = ()
    """Changes that cannot be committed, in words."""
    outdated: tuple[bytes, ...] = ()
    """Paths of steps that others changed while the command ran."""
    contents: dict[str, bytes] = {}
    """New contents by their hashes, of a file tool that ran on copies. They are stored nowhere else."""
    expected: tuple[bytes, ...] = ()
    """Paths that the previews below change first, with their folders. Changes there are no conflict."""


class CommandPreview(msgspec.Struct, frozen=True, kw_only=True):
    """A command that ran in an overlay."""

    ran: CommandResult
    examined: OverlayChanges
    blocked: tuple[str, ...] = ()
    """Hosts and paths that the command could not reach, in words."""
    sandbox: SandboxUsed
    sealed: bool = False
    """Whether it tried no connection, and could read no credential of the roots, not even in the objects of git."""


def build_change(step: Step, shown: str, diff: Diff, *, binary: bool = False) -> Change:
    """A step as people and models see it."""
    before, after = step.before, step.after
    return Change(
        path=shown,
        action=_classify(before, after),
        kind=step.kind,
        before=before.hash or None if before else None,
        after=after.hash or None if after else None,
        size=after.size if after and after.kind != "folder" else None,
        mode=after.mode if after else None,
        added=diff.added if step.kind != "folder" else None,
        removed=diff.removed if step.kind != "folder" else None,
        binary=binary,
        replaces=before.kind if before and after and before.kind != after.kind else None,
        executable=_is_runnable(after) and not _is_runnable(before),
        read_only=bool(before and after and before.kind == "file" and not (before.mode or 0) & 0o222),
    )


def _classify(before: State | None, after: State | None) -> Action:
    if before is None:
        return "created"
    if after is None:
        return "deleted"
    if "link" in {before.kind, after.kind}:
        return "link"
    return "mode" if (before.kind, before.hash) == (after.kind, after.hash) else "modified"


def _is_runnable(state: State | None) -> bool:
    return state is not None and state.kind == "file" and bool((state.mode or 0) & 0o111)


def is_before_state(now: State | None, step: Step) -> bool:
    """Whether a path has the state that a step starts from. Its mode counts only if the step changes the mode."""
    then = step.before
    if not has_same_content(now, then) or now is None or then is None:
        return has_same_content(now, then)
    changes_mode = step.after is not None and step.after.mode != then.mode and step.after.kind == then.kind
    return not changes_mode or then.mode is None or now.mode == then.mode


def has_same_content(one: State | None, other: State | None) -> bool:
    """Whether two states have the same kind and content. Modes are ignored."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.hash) == (other.kind, other.hash)


def is_mode_change(step: Step) -> bool:
    """Whether a step changes nothing but a mode."""
    return step.before is not None and has_same_content(step.before, step.after)


def is_removal(step: Step) -> bool:
    """Whether a step removes the present entry: for good, or for one of another kind."""
    return step.before is not None and (step.after is None or step.after.kind != step.before.kind)


def invert_step(step: Step) -> Step:
    return Step(step.path, step.after, step.before)


def order_steps(steps: Iterable[Step]) -> list[Step]:
    """Orders steps so that they can be applied: removals first, deepest first, then the others, parents first.

    A step to another kind becomes a removal and a creation.
    """
    removals: list[Step] = []
    others: list[Step] = []
    for step in steps:
        if not is_removal(step):
            others.append(step)
            continue
        removals.append(Step(step.path, step.before, None))
        if step.after is not None:
            others.append(Step(step.path, None, step.after))
    return sorted(removals, key=_split_path, reverse=True) + sorted(others, key=_split_path)


def _split_path(step: Step) -> tuple[bytes, ...]:
    return tuple(step.path.split(b"/"))


def strip_data(state: PathState) -> PathState:
    """The state of a path without the bytes of the file, to save memory."""
    file = state.current
    if file is None or file.data is None:
        return state
    return PathState(state.state, msgspec.structs.replace(file, digest=file.hash, data=None, start=b""))
