"""Commits a plan of file changes as one change set."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from handrail.changes.apply import MAX_IN_MEMORY_BYTES
from handrail.changes.model import PLAIN_OVERLAY_PLACEMENT, OverlayChanges, build_change
from handrail.changes.recorder import Recorder
from handrail.code.javascript import find_javascript_problem, find_tsx_problem, find_typescript_problem
from handrail.code.syntax import (
    find_front_matter_problem,
    find_json_problem,
    find_python_problem,
    find_toml_problem,
    find_yaml_problem,
)
from handrail.edit.diff import NO_DIFF, Diff, build_unified_diff
from handrail.protocol.changes import Change, ChangeSet, State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import ChangeSetRecord, Step
from handrail.tools.file_tool import FileTarget
from handrail.tools.tool import Context, Output, ReadMarks
from handrail.workspace.atomic import build_temporary_name, replace, sync_folder
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import Content, build_executable_mode, start_hash
from handrail.workspace.in_place import WriteResult
from handrail.workspace.pages import WholeFileMark, encode_mark
from handrail.workspace.resolve import NewFolders, ResolvedParent
from handrail.workspace.roots import clip_path
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

# Whether a file still parses after a change

_MEBIBYTE = 1 << 20
_DATA_KINDS = frozenset({"json", "yaml", "yml", "md", "mdx", "markdown"})
_COMMENTED_JSON = (
    *("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "tslint", "babel.config", ".babelrc", ".swcrc"),
    *("api-extractor", "biome.json", "deno.json", "turbo.json", "wrangler.json", "rush.json"),
)
"""Starts of the names of JSON files that may have comments."""


def _find_syntax_warning(path: str, before: bytes | None, after: bytes) -> str | None:
    """The warning about a file that parsed before, or is new, and does not parse now.

    `before` is None if there was no file or its bytes are not known. It is parsed only if `after` does not parse.
    """
    problem = find_syntax_problem(path, after)
    if problem is None:
        return None
    if before is None or not before.strip():
        return f"{clip_path(path)} was written, but {problem}."
    if find_syntax_problem(path, before):
        return None
    return f"{clip_path(path)} was changed and no longer parses: {problem}."


def find_syntax_problem(path: str, data: bytes) -> str | None:
    """What is wrong with a file, with the line if the parser knows it. None if it parses or its kind is not known."""
    syntax = _SYNTAXES.get(_find_kind(path))
    if syntax is None or len(data) > syntax.max_bytes or _may_have_comments(path):
        return None
    text = decode_text(data)
    return "it is not text" if text is None else syntax.find_problem(text.text)


def _find_kind(path: str) -> str:
    return path.rpartition(".")[2].lower() if "." in path else ""


def _may_have_comments(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return name.startswith(_COMMENTED_JSON) or folder.endswith(".vscode")


class _Syntax(msgspec.Struct, frozen=True):
    find_problem: Callable[[str], str | None]
    max_bytes: int = _MEBIBYTE
    """Larger files are not parsed. Up to here it takes less than a second and a few hundred megabytes."""


_SYNTAXES: dict[str, _Syntax] = {
    "json": _Syntax(find_json_problem, 8 * _MEBIBYTE),
    **dict.fromkeys(("yaml", "yml"), _Syntax(find_yaml_problem)),
    "toml": _Syntax(find_toml_problem),
    **dict.fromkeys(("md", "mdx", "markdown"), _Syntax(find_front_matter_problem)),
    **dict.fromkeys(("py", "pyi", "pyw"), _Syntax(find_python_problem, _MEBIBYTE // 2)),
    **dict.fromkeys(("js", "jsx", "mjs", "cjs"), _Syntax(find_javascript_problem, _MEBIBYTE // 2)),
    **dict.fromkeys(("ts", "mts", "cts"), _Syntax(find_typescript_problem, _MEBIBYTE // 2)),
    "tsx": _Syntax(find_tsx_problem, _MEBIBYTE // 2),
}


class FileChange(msgspec.Struct, frozen=True):
    """What a path becomes."""

    target: FileTarget
    data: bytes | None
    """None removes the path."""
    diff: Diff
    mode: int | None = None
    """Permission bits. None: those of a new file."""
    renamed_from: str | None = None
    binary: bool = False


class CommitResult(msgspec.Struct, frozen=True):
    """How a plan was committed."""

    states: tuple[State | None, ...]
    """What each path is now, in the order of the plan."""
    changes: ChangeSet | None
    """None if the file had these bytes already."""
    problem: str | None = None
    """What went wrong although the changes were made."""
    in_place: bool | None = None
    """Whether a single file was written in place. None if the plan was not a single file."""

    @property
    def written_state(self) -> State:
        """The state of the file that a plan for a single file wrote."""
        [state] = self.states
        if state is None:
            raise AssertionError("the file was removed")
        return state


class FilePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a call would change."""

    subject: str
    """The files, as the summary of the change set names them."""
    changes: tuple[FileChange, ...]
    preview: str
    is_truncated: bool = False
    done: str = "written"
    """Participle for a warning: It was written, but …"""
    describe: Callable[[CommitResult], Output]
    """The output, without the fields that all file tools fill alike."""

    def commit(self, context: Context, marks: ReadMarks, recorder: Recorder, tool: str) -> Output:
        """Makes all changes as one change set, marks the files as seen, and describes the outcome.

        ToolError if one change cannot be made: then none is.
        """
        self._refuse_broken_data(context)
        summary, first = f"{tool} {self.subject}", self.changes[0]
        if first.target.parent is None or first.data is None:
            committed = _commit_files(context, recorder, tool, summary, self.changes)
        else:
            try:
                committed = _commit_single(context, recorder, tool, summary, first, first.target.parent, first.data)
            except OSError as error:
                raise to_tool_error(error, first.target.path) from None
        for change, state in zip(self.changes, committed.states, strict=True):
            if state is not None:
                marks.set_mark(change.target.real, encode_mark(WholeFileMark(state.hash)))
        return self._build_output(committed)

    def simulate(self, context: Context) -> OverlayChanges:
        """The changes, for a command that is tried after the call."""
        self._refuse_broken_data(context)
        changes = tuple(row for row in self.changes if not row.target.exists or row.data != row.target.data)
        new_mode = build_executable_mode(None, on=False)
        states = tuple(_build_state(change, new_mode) for change in changes)
        planned, _ = _build_change_set("", "", changes, states)
        written = ((change.data, state) for change, state in zip(changes, states, strict=True))
        return OverlayChanges(
            started=0,
            steps=planned.steps,
            manners=(PLAIN_OVERLAY_PLACEMENT,) * len(planned.steps),
            changes=planned.changes,
            contents={state.hash: data for data, state in written if state is not None and data is not None},
        )

    def _refuse_broken_data(self, context: Context) -> None:
        """The restricted profile writes only data that parses."""
        for change in self.changes if context.limits.restricted else ():
            path, data = change.target.real, change.data
            if data is None or _find_kind(path) not in _DATA_KINDS:
                continue
            if problem := find_syntax_problem(path, data):
                message = (
                    f"{clip_path(path)} was not written: {problem}. The restricted profile keeps only data that parses."
                )
                raise ToolError("INVALID_ARGUMENT", message, details={"warnings": [problem]}, warnings=(problem,))

    def _build_output(self, committed: CommitResult) -> Output:
        output, changes = self.describe(committed), committed.changes
        broken = (
            _find_syntax_warning(change.target.real, change.target.data, change.data)
            for change in self.changes
            if change.data is not None
        )
        problems = (f"It was {self.done}, but: {committed.problem}",) if committed.problem else ()
        meta: dict[str, Any] = {"unread": any(change.target.is_unread for change in self.changes)}
        if committed.in_place is not None:
            meta["in_place"] = committed.in_place
        files = (change.path for change in changes.changes if change.kind != "folder") if changes else ()
        return msgspec.structs.replace(
            output,
            meta=meta | output.meta,
            files_changed=tuple(files),
            warnings=(*output.warnings, *filter(None, broken), *problems),
            changes=changes,
        )


def build_file_plan(
    target: FileTarget,
    data: bytes,
    diff: Diff,
    describe: Callable[[CommitResult], Output],
    *,
    preview: str = "",
    binary: bool = False,
) -> FilePlan:
    """The plan that writes one file. `preview` is the diff by default. `binary`: the old bytes are no text."""
    return FilePlan(
        subject=target.real,
        changes=(FileChange(target, data, diff, target.mode, binary=binary),),
        preview=preview or diff.text,
        is_truncated=diff.truncated,
        describe=describe,
    )


def build_removal(target: FileTarget) -> FileChange:
    """The change that removes a path. It has a diff if the file is text and not large."""
    if target.snapshot is None:
        return FileChange(target, None, NO_DIFF)
    data = target.data
    text = decode_text(data) if data is not None and len(data) <= MAX_IN_MEMORY_BYTES else None
    diff = build_unified_diff(text.text, None, target.real) if text is not None else NO_DIFF
    return FileChange(target, None, diff, binary=text is None)


def check_hard_links(target: FileTarget, data: bytes) -> None:
    """Refuses a change that undo or redo could not make."""

    before = target.snapshot
    if before is None or before.status.st_nlink < 2 or max(before.status.st_size, len(data)) <= MAX_IN_MEMORY_BYTES:
        return
    message = f"{clip_path(target.path)} has several hard links, so it is written in place. Its limit is 8 MiB"
    raise ToolError("LIMIT_EXCEEDED", f"{message}, so that undo is possible. Nothing was written. Use a copy.")


def _commit_single(
    context: Context,
    recorder: Recorder,
    tool: str,
    summary: str,
    change: FileChange,
    parent: ResolvedParent,
    data: bytes,
) -> CommitResult:
    """Writes a file into its open folder, which is the fast way.

    CONFLICT if another file is there by now. A missing file is created with its folders.
    """
    before, hashed = change.target.snapshot, start_hash(data)
    if before is not None and (before.data == data if before.data is not None else before.hash == hashed()):
        state = State(kind="file", hash=before.hash, size=len(data), mode=change.target.mode)
        return CommitResult((state,), None, in_place=False)
    context.check_cancelled()
    if before is not None:
        recorder.keep(before, parent)
    new = Content(hashed(), len(data), lambda: (data,))
    if before is not None and before.status.st_nlink > 1:
        # Recovery after a kill needs the new bytes too: the file is written in place.
        recorder.keep_bytes(new.hash, data)
    state = State(kind="file", hash=new.hash, size=new.size, mode=change.mode)
    planned, diffs = _build_change_set(tool, summary, (change,), (state,))
    written: list[WriteResult] = []

    def work() -> tuple[Step, ...]:
        temporary = build_temporary_name(context.session_id, context.tool_call_id)
        with NewFolders(parent.folder, parent.missing) as folders:
            folder, path = folders.innermost, change.target.path
            written.append(replace(folder, parent.name, new, before, temporary=temporary, path=path))
            if recorder.history.durable:
                sync_folder(folder)
        after = msgspec.structs.replace(state, mode=written[0].mode)
        return (*planned.steps[:-1], msgspec.structs.replace(planned.steps[-1], after=after))

    made = recorder.record(context.tool_call_id, planned, work, diffs)
    return CommitResult((state,), made.changes, made.problem, bool(written) and written[0].in_place)


def _commit_files(
    context: Context, recorder: Recorder, tool: str, summary: str, changes: tuple[FileChange, ...]
) -> CommitResult:
    """Stores the old bytes for undo and the new bytes to write from there, then takes the steps."""
    context.check_cancelled()
    states = tuple(map(_build_state, changes))
    planned, diffs = _build_change_set(tool, summary, changes, states)
    for change, state in zip(changes, states, strict=True):
        _store(recorder, context.workspace, change, state)
    temporary = build_temporary_name(context.session_id, context.tool_call_id)

    def work() -> tuple[Step, ...]:
        taken = {step.path for step in _take_steps(recorder, temporary, planned.steps)}
        # A folder that stayed as it was has no change.
        steps = (step if step.path in taken else Step(step.path, step.before, step.before) for step in planned.steps)
        return tuple(_add_mode(context.workspace, step) for step in steps)

    made = recorder.record(context.tool_call_id, planned, work, diffs)
    return CommitResult(states, made.changes, made.problem)


def _take_steps(recorder: Recorder, temporary: str, steps: tuple[Step, ...]) -> list[Step]:
    try:
        return recorder.carry_out(temporary, steps)
    except ToolError as error:
        if len(steps) == 1 or "stuck" in error.named_details:
            raise
        raise ToolError(error.code, f"{error.message} No file was changed.", details=error.details) from error


def _store(recorder: Recorder, workspace: Workspace, change: FileChange, state: State | None) -> None:
    target = change.target
    if target.exists:
        with workspace.open_parent(target.exact) as parent:
            if target.snapshot is not None:
                recorder.keep(target.snapshot, parent)
            else:
                recorder.keep_link(parent)
    if change.data is not None and state is not None:
        recorder.keep_bytes(state.hash, change.data)


def _add_mode(workspace: Workspace, step: Step) -> Step:
    if step.before is not None or step.after is None or step.after.mode is not None:
        return step
    with workspace.open_parent(step.path) as parent:
        status = os.stat(parent.name, dir_fd=parent.folder, follow_symlinks=False)
    return Step(step.path, None, msgspec.structs.replace(step.after, mode=stat.S_IMODE(status.st_mode)))


def _build_state(change: FileChange, new_mode: int | None = None) -> State | None:
    if change.data is None:
        return None
    new = Content.from_bytes(change.data)
    mode = new_mode if change.mode is None else change.mode
    return State(kind="file", hash=new.hash, size=new.size, mode=mode)


def _build_change_set(
    tool: str, summary: str, changes: Sequence[FileChange], states: Sequence[State | None]
) -> tuple[ChangeSetRecord, tuple[str, ...]]:
    """The change set, and the diff of each step."""
    rows = [*_build_folder_rows(changes), *map(_build_row, changes, states)]
    steps, shown, diffs = (tuple(column) for column in zip(*rows, strict=True)) if rows else ((), (), ())
    return ChangeSetRecord(tool, summary, steps, shown), diffs


_Row = tuple[Step, Change, str]
"""A step, as people see it, and its diff."""


def _build_row(change: FileChange, state: State | None) -> _Row:
    step = Step(change.target.exact, change.target.state, state)
    shown = build_change(step, change.target.real, change.diff, binary=change.binary)
    if change.renamed_from is not None:
        shown = msgspec.structs.replace(shown, action="renamed", renamed_from=change.renamed_from)
    return step, shown, change.diff.text


def _build_folder_rows(changes: Sequence[FileChange]) -> Iterator[_Row]:
    """The folders that are created on the way, outer ones first."""
    made: set[bytes] = set()
    for change in changes:
        target = change.target
        levels = len(target.missing) if change.data is not None else 0
        for level in range(levels, 0, -1):
            exact, real = target.exact.rsplit(b"/", level)[0], target.real.rsplit("/", level)[0]
            if exact not in made:
                made.add(exact)
                folder = FileChange(FileTarget(real, real, exact), None, NO_DIFF)
                yield _build_row(folder, State(kind="folder"))
