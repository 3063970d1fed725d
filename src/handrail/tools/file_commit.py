"""Writes files as one change set."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from handrail.changes.apply import MAX_IN_MEMORY_BYTES
from handrail.changes.model import build_change
from handrail.changes.recorder import RecordedChangeSet
from handrail.code.data_syntax import find_front_matter_problem, find_json_problem, find_toml_problem, find_yaml_problem
from handrail.code.python_syntax import find_python_problem
from handrail.code.script_syntax import find_javascript_problem, find_tsx_problem, find_typescript_problem
from handrail.edit.diff import Diff
from handrail.protocol.changes import Change, ChangeSet, State
from handrail.protocol.errors import ToolError
from handrail.store.change_log import ChangeSetRecord, Step
from handrail.tools.file_state import Records, TargetPath
from handrail.tools.tool import CallLimits, Context
from handrail.workspace.atomic import build_temporary_name, replace, sync_folder
from handrail.workspace.errors import clip_path
from handrail.workspace.file_state import Content, FileSnapshot, start_hash
from handrail.workspace.in_place import WriteResult
from handrail.workspace.resolve import NewFolders, ResolvedParent
from handrail.workspace.text import decode_text
from handrail.workspace.workspace import Workspace

# § [tools.parses] Whether a file that was changed still parses, for the kinds of files that handrail knows.

_MEBIBYTE = 1 << 20


def find_parse_warning(path: str, before: bytes | None, after: bytes) -> str | None:
    """What to tell about a file that does not parse, and did before, or is new; None otherwise.

    `before` is None where there was no file, or nothing is known of it. It is looked at only when `after` does not
    parse, so that a change that breaks nothing costs one look.
    """
    problem = find_parse_problem(path, after)
    if problem is None:
        return None
    if before is None or not before.strip():
        return f"{clip_path(path)} was written, but {problem}."
    return (
        None if find_parse_problem(path, before) else f"{clip_path(path)} was changed and no longer parses: {problem}."
    )


def check_parses(limits: CallLimits, path: str, data: bytes) -> None:
    """Where data has to parse, what does not is not written: JSON, YAML, and the front matter of Markdown."""
    if not limits.restricted or _kind(path) not in _DATA:
        return
    if problem := find_parse_problem(path, data):
        message = f"{clip_path(path)} was not written: {problem}. The restricted profile keeps only data that parses."
        raise ToolError("INVALID_ARGUMENT", message, details={"warnings": [problem]}, warnings=(problem,))


def find_parse_problem(path: str, data: bytes) -> str | None:
    """What is wrong with a file, with the line where the parser knows it; None when it parses, or is not looked at."""
    syntax = _SYNTAXES.get(_kind(path))
    if syntax is None or len(data) > syntax.largest or _has_comments(path):
        return None
    text = decode_text(data)
    return "it is not text" if text is None else syntax.problem(text.text)


class _Syntax(msgspec.Struct, frozen=True):
    problem: Callable[[str], str | None]
    largest: int = _MEBIBYTE
    """Bytes that are looked at: up to here it takes less than a second, or a few hundred megabytes for a moment."""


def _kind(path: str) -> str:
    return path.rpartition(".")[2].lower() if "." in path else ""


def _has_comments(path: str) -> bool:
    """Whether the file is one of those that are called JSON and may have comments."""
    folder, _, name = path.rpartition("/")
    return name.startswith(_COMMENTED) or folder.endswith(".vscode")


_DATA = frozenset({"json", "yaml", "yml", "md", "mdx", "markdown"})
_COMMENTED = (
    *("tsconfig", "jsconfig", "devcontainer", ".eslintrc", "tslint", "babel.config", ".babelrc", ".swcrc"),
    *("api-extractor", "biome.json", "deno.json", "turbo.json", "wrangler.json", "rush.json"),
)
"""How their names begin."""


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


# § [tools.saving] The last step of every tool that changes a file: new bytes take the place of the old ones, and
# § that can be undone.


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

    planned = ChangeSetRecord(saving.tool, summary, steps, changes)
    made = records.record(context.tool_call_id, planned, work, diffs)
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


# § [tools.together] Changes several paths as one: all of them or none, one change set, one undo.


class FileChange(msgspec.Struct, frozen=True):
    """What a path is to be."""

    slot: TargetPath
    data: bytes | None
    """None: it goes."""
    mode: int | None
    """Permission bits; None for those that a new file has."""
    diff: Diff
    renamed_from: str | None = None
    binary: bool = False

    @property
    def after(self) -> State | None:
        """The state of it then."""
        if self.data is None:
            return None
        new = Content.from_bytes(self.data)
        return State(kind="file", hash=new.hash, size=new.size, mode=self.mode)


class _Row(NamedTuple):
    step: Step
    change: Change
    diff: str


def commit_files(
    records: Records, context: Context, tool: str, summary: str, all_of_them: Sequence[FileChange]
) -> RecordedChangeSet:
    """Makes the changes; ToolError, and everything as it was, when one cannot be made."""
    context.check_cancelled()
    rows = [*_folders(all_of_them), *(_row(each) for each in all_of_them)]
    for each, row in zip(all_of_them, rows[-len(all_of_them) :], strict=True):
        _keep(records, context.workspace, each, row.step)
    steps = tuple(row.step for row in rows)
    temporary = build_temporary_name(context.session_id, context.tool_call_id)

    def work() -> tuple[Step, ...]:
        taken = {step.path for step in _carried_out(records, temporary, steps)}
        return tuple(_as_taken(context.workspace, step) if step.path in taken else _stayed(step) for step in steps)

    changes, diffs = tuple(row.change for row in rows), tuple(row.diff for row in rows)
    return records.record(context.tool_call_id, ChangeSetRecord(tool, summary, steps, changes), work, diffs)


def _carried_out(records: Records, temporary: str, steps: tuple[Step, ...]) -> list[Step]:
    try:
        return records.carry_out(temporary, steps)
    except ToolError as error:
        if len(steps) == 1 or "stuck" in error.named_details:
            raise
        raise ToolError(error.code, f"{error.message} No file was changed.", details=error.details) from error


def _row(each: FileChange) -> _Row:
    step = Step(each.slot.exact, each.slot.found.state, each.after)
    change = build_change(step, each.slot.real, each.diff, binary=each.binary)
    if each.renamed_from is not None:
        change = msgspec.structs.replace(change, action="renamed", renamed_from=each.renamed_from)
    return _Row(step, change, each.diff.text)


def _folders(all_of_them: Sequence[FileChange]) -> Iterator[_Row]:
    """The folders that are made on the way, outer ones first."""
    made: set[bytes] = set()
    for each in all_of_them:
        levels = len(each.slot.missing) if each.data is not None else 0
        for number in range(levels):
            exact = each.slot.exact.rsplit(b"/", levels - number)[0]
            if exact not in made:
                made.add(exact)
                step = Step(exact, None, State(kind="folder"))
                shown = each.slot.real.rsplit("/", levels - number)[0]
                yield _Row(step, build_change(step, shown, Diff("", 0, 0)), "")


def _keep(records: Records, workspace: Workspace, each: FileChange, step: Step) -> None:
    """Keeps what is replaced, to go back to it, and what replaces it, which is then written from there."""
    found = each.slot.found
    if found.current is not None or found.state is not None:
        with workspace.open_parent(step.path) as landing:
            if found.current is not None:
                records.keep(found.current, landing)
            else:
                records.keep_link(landing)
    if each.data is not None and step.after is not None:
        records.keep_bytes(step.after.hash, each.data)


def _as_taken(workspace: Workspace, step: Step) -> Step:
    """A step with the permissions that a new file got."""
    if step.before is not None or step.after is None or step.after.mode is not None:
        return step
    with workspace.open_parent(step.path) as landing:
        status = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False)
    return Step(step.path, None, msgspec.structs.replace(step.after, mode=stat.S_IMODE(status.st_mode)))


def _stayed(step: Step) -> Step:
    """A folder that was there already by then."""
    return Step(step.path, step.before, step.before)
