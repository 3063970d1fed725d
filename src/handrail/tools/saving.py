"""The last step of every tool that changes a file: new bytes take the place of the old ones, and that can be undone."""

from collections.abc import Callable

import msgspec

from handrail.changes.carrying import MAX_IN_MEMORY_BYTES
from handrail.changes.planned import PlannedChangeSet, build_change
from handrail.edit.diff import Diff
from handrail.protocol.changes import ChangeSet, State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import Step
from handrail.tools.contract import Context
from handrail.tools.parses import check_parses
from handrail.tools.records import Records
from handrail.workspace.atomic import build_temporary_name, replace, sync_folder
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import Content, FileSnapshot, start_hash
from handrail.workspace.in_place import WriteResult
from handrail.workspace.resolve import NewFolders, ResolvedParent


class FileWrite(msgspec.Struct, frozen=True):
    """New bytes for a file, and how to speak of them."""

    tool: str
    path: str
    """As the call named it."""
    real: str
    before: FileSnapshot | None
    data: bytes
    diff: Diff
    binary: bool = False


class CommitResult(msgspec.Struct, frozen=True):
    """How it came out."""

    written: WriteResult
    changes: ChangeSet | None
    """None when the file had these bytes already."""
    warnings: tuple[str, ...] = ()


def commit_file(records: Records, context: Context, landing: ResolvedParent, saving: FileWrite) -> CommitResult:
    """Puts the bytes in the place of `before`, or creates the file with its parents; CONFLICT when it is another."""
    check_parses(context.limits, saving.real, saving.data)
    before, hashed = saving.before, start_hash(saving.data)
    if before is not None and _holds(before, saving.data, hashed):
        return CommitResult(WriteResult(before.hash, len(saving.data), before.status.st_mode & 0o7777), None)
    context.check_cancelled()
    if before is not None:
        records.keep(before, landing)
    new = Content(hashed(), len(saving.data), lambda: (saving.data,))
    if before is not None and before.status.st_nlink > 1:
        # It is written in place: to tell what a kill left of that, the new bytes are needed too.
        records.keep_bytes(new.hash, saving.data)
    steps = _steps(context, landing, before, new)
    shown = _shown(landing, saving)
    changes = tuple(build_change(*pair, saving.diff, binary=saving.binary) for pair in zip(steps, shown, strict=True))
    diffs = (*[""] * (len(steps) - 1), saving.diff.text)
    summary = f"{saving.tool} {saving.real}"
    written: list[WriteResult] = []

    def work() -> tuple[Step, ...]:
        written.append(_write(context, landing, saving, new, durable=records.durable))
        state = State(kind="file", hash=new.hash, size=new.size, mode=written[0].mode)
        return (*steps[:-1], msgspec.structs.replace(steps[-1], after=state))

    planned = PlannedChangeSet(saving.tool, summary, steps, changes, diffs)
    made = records.record(context.tool_call_id, planned, work)
    warnings = (f"It was written, but: {made.problem}",) if made.problem else ()
    return CommitResult(written[0] if written else WriteResult(new.hash, new.size, 0), made.changes, warnings)


def check_hard_links(before: FileSnapshot | None, data: bytes, path: str) -> None:
    """A change that could not be undone, or not be redone, is not made."""
    if (
        before is not None
        and before.status.st_nlink > 1
        and max(before.status.st_size, len(data)) > MAX_IN_MEMORY_BYTES
    ):
        message = (
            f"{clip_path(path)} has several hard links, and is written in place. Before and after it may have 8 MiB"
        )
        raise ToolError("LIMIT_EXCEEDED", f"{message}, as more could not be undone. Nothing was written. Use a copy.")


def _holds(before: FileSnapshot, data: bytes, hashed: Callable[[], str]) -> bool:
    """Whether a file has these bytes already."""
    return before.data == data if before.data is not None else before.hash == hashed()


def _steps(context: Context, landing: ResolvedParent, before: FileSnapshot | None, new: Content) -> tuple[Step, ...]:
    """The folders that are made on the way, and the file."""
    path = context.workspace.build_exact_path(landing)
    levels = len(landing.missing)
    folders = [Step(path.rsplit(b"/", levels - n)[0], None, State(kind="folder")) for n in range(levels)]
    old = before.to_state() if before is not None else None
    after = State(kind="file", hash=new.hash, size=new.size, mode=old.mode if old else None)
    return (*folders, Step(path, old, after))


def _shown(landing: ResolvedParent, saving: FileWrite) -> tuple[str, ...]:
    levels = len(landing.missing)
    return (*(saving.real.rsplit("/", levels - n)[0] for n in range(levels)), saving.real)


def _write(context: Context, landing: ResolvedParent, saving: FileWrite, new: Content, *, durable: bool) -> WriteResult:
    folders = NewFolders(landing.folder, landing.missing)
    try:
        temporary = build_temporary_name(context.session_id, context.tool_call_id)
        written = replace(folders.innermost, landing.name, new, saving.before, temporary=temporary, path=saving.path)
        if durable:
            sync_folder(folders.innermost)
        folders.keep()
    finally:
        folders.close()
    return written
