"""Steps, change sets, and how files are placed."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from handrail.changes.staging import StagingDir
from handrail.edit.diff import Diff
from handrail.process.result import CommandResult
from handrail.protocol.changes import Change, State, classify_change
from handrail.protocol.results import SandboxUsed
from handrail.store.change_log import ChangeSetRecord, FileExtras, Step
from handrail.workspace.file_state import PathState

# § [changes.manners] What is known about the steps of a change set besides the steps.


class OverlayFile(NamedTuple):
    """A file of an overlay: the open folder on top of it, and the path below that."""

    top: int
    path: str


class Placement(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its state alone does not say."""

    source: OverlayFile | None = None
    """The file of an overlay that it is; None: it is made from what was kept."""
    in_place: bool | None = None
    """Whether it is written through the file that is there, for all its names. None: where it has several."""
    linked_to: bytes | None = None
    """The path that it becomes another name of."""
    allow_copy: bool = False
    """Whether it may be a file of its own where that path has other bytes."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] | None = None
    """Extended attributes of the user's own; None: those of the file that is there."""


PLAIN_PLACEMENT = Placement()


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about steps besides the steps."""

    placements: Mapping[bytes, Placement] = {}
    """Of the files whose states do not say all."""
    known_states: dict[bytes, PathState] = {}
    """What was seen at the paths just now. What is there is looked at once more when it is taken out."""
    unlocked_dirs: Mapping[bytes, int] = {}
    """Folders that have to be opened for the time, with their modes."""
    require_empty_dirs: bool = False
    """Whether a folder that is to go and has something in it is a conflict, and does not just stay."""
    staging: StagingDir | None = None


# § [changes.planned] A change set before it is made.


class PlannedChangeSet(msgspec.Struct, frozen=True):
    """A change set that is about to be made."""

    tool: str
    summary: str
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    diffs: tuple[str, ...]
    """One a step."""
    undoes: tuple[int, ...] = ()
    not_covered: tuple[str, ...] = ()
    """What of it undo will not cover, in words."""
    unlinked_paths: tuple[bytes, ...] = ()
    """Paths that become another name of a file."""
    was: tuple[FileExtras, ...] = ()
    """What files are now besides their states."""
    opened: tuple[tuple[bytes, int], ...] = ()
    """Folders that are opened for it, with their modes."""

    def body(self) -> ChangeSetRecord:
        """As the change log has it."""
        return ChangeSetRecord(
            self.tool,
            self.summary,
            self.steps,
            self.changes,
            self.undoes,
            not_covered=self.not_covered,
            unlinked_paths=self.unlinked_paths,
            was=self.was,
            opened=self.opened,
        )


class DiffBudget:
    """How much is compared for the diffs of one change set: there may be thousands of files, and nobody reads that."""

    def __init__(self, files: int = 200, size: int = 4 * 1024 * 1024) -> None:
        self._files = files
        self._size = size

    def allows(self, step: Step) -> bool:
        """Whether a file is still compared; if so it is counted."""
        if step.kind == "folder" or self._files <= 0 or self._size <= 0:
            return False
        self._files -= 1
        self._size -= sum(state.size for state in (step.before, step.after) if state is not None)
        return True


def build_change(step: Step, shown: str, diff: Diff, *, binary: bool = False) -> Change:
    """A step as people and models see it."""
    before, after = step.before, step.after
    return Change(
        path=shown,
        action=classify_change(before, after),
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


def _is_runnable(state: State | None) -> bool:
    return state is not None and state.kind == "file" and bool((state.mode or 0) & 0o111)


# § [changes.ways] Steps as ways between states: whether a path is where a step begins, and in which order steps can
# § be taken.


def is_before_state(now: State | None, step: Step) -> bool:
    """Whether a path is what a step starts from. Permission bits count only where the step changes them."""
    then = step.before
    if not has_same_content(now, then) or now is None or then is None:
        return has_same_content(now, then)
    changes_mode = step.after is not None and step.after.mode != then.mode and step.after.kind == then.kind
    return not changes_mode or then.mode is None or now.mode == then.mode


def has_same_content(one: State | None, other: State | None) -> bool:
    """Whether two states are the same thing with the same content, whatever its permissions."""
    if one is None or other is None:
        return one is other
    return (one.kind, one.hash) == (other.kind, other.hash)


def is_mode_change(step: Step) -> bool:
    """Whether a step leaves what is there as it is, but for its mode."""
    return step.before is not None and has_same_content(step.before, step.after)


def invert_step(step: Step) -> Step:
    """The same way in the other direction."""
    return Step(step.path, step.after, step.before)


def order_steps(steps: Iterable[Step]) -> list[Step]:
    """Steps in an order in which they can be taken: away with what goes, deepest first; then what comes, top first.

    A path that becomes another kind of thing goes first and comes afterwards.
    """
    going: list[Step] = []
    coming: list[Step] = []
    for step in steps:
        if step.before is not None and (step.after is None or step.after.kind != step.before.kind):
            going.append(Step(step.path, step.before, None))
            if step.after is not None:
                coming.append(Step(step.path, None, step.after))
        else:
            coming.append(step)
    return sorted(going, key=_depth, reverse=True) + sorted(coming, key=_depth)


def _depth(step: Step) -> tuple[bytes, ...]:
    return tuple(step.path.split(b"/"))


# § [changes.layered.trial] The preview of a command that ran in an overlay: how it went, and what every file would
# § become.


class OverlayPlacement(msgspec.Struct, frozen=True, kw_only=True):
    """How a file is to be brought where its bytes alone do not say."""

    in_place: bool = False
    """Written through the file that is there, since it has other names that share it."""
    linked_to: bytes | None = None
    """The path that it is another name of: one that another step brings, or that no step is about."""
    force_copy: bool = msgspec.field(default=False, name="apart")
    """A file of its own, though the overlay has it as another name of one."""
    mtime_ns: int | None = None
    attributes: dict[str, bytes] = {}
    """Extended attributes of the user's own."""


PLAIN_OVERLAY_PLACEMENT = OverlayPlacement()


class OverlayChanges(msgspec.Struct, frozen=True, kw_only=True):
    """What an overlay holds, compared with what it lies over."""

    started: int
    """When the overlay was made, by the file system's clock: what has a later change time was changed by others."""
    steps: tuple[Step, ...] = ()
    manners: tuple[OverlayPlacement, ...] = ()
    """One a step."""
    changes: tuple[Change, ...] = ()
    """One a step, in their order."""
    diffs: tuple[str, ...] = ()
    """One a step; empty for what is no text, or too much, and before `with_diffs` made them."""
    unkept: tuple[str, ...] = ()
    """What cannot be committed, in words."""
    outdated: tuple[bytes, ...] = ()
    """Paths of steps that others changed while the command ran: what it saw there is not what is there now."""
    contents: dict[str, bytes] = {}
    """New contents by their hashes, of a file tool that ran on copies only: they are stored nowhere."""
    expected: tuple[bytes, ...] = ()
    """What the previews below it change first, with the folders of that: expected when it is committed after them."""


class CommandPreview(msgspec.Struct, frozen=True, kw_only=True):
    """How a command went in its overlay."""

    ran: CommandResult
    examined: OverlayChanges
    blocked: tuple[str, ...] = ()
    """What it tried to reach, in words."""
    sandbox: SandboxUsed
    """How it was confined."""
