"""The tool apply_patch."""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta

from handrail.changes.recorder import Recorder
from handrail.edit.patch.envelope import parse_patch
from handrail.protocol.changes import Action, Change
from handrail.protocol.text import format_count
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import CommitResult, FileChange, FilePlan
from handrail.tools.file_tool import FileView, build_file_tool
from handrail.tools.patch_plan import PlannedFile, add_position_by_path, check_nested_paths, plan_patch
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.tools.text_edit import describe_tolerance
from handrail.tools.tool import Output, ReadMarks, Tool, Touches
from handrail.workspace.roots import clip_path

_LETTERS = {"created": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "M", "link": "M"}
_MAX_LISTED_FILES = 100
_MAX_NUMBERED_HUNKS = 5
_MAX_DIFF_CHARS = 200_000


class ApplyPatchArguments(Arguments, frozen=True):
    """The arguments of apply_patch."""

    patch: Annotated[
        str,
        Meta(
            max_length=MAX_TEXT_BYTES,
            description=(
                "The patch: '*** Begin Patch' … '*** End Patch' with '*** Add File:', '*** Update File:' (and "
                "'*** Move to:'), '*** Delete File:' and hunks of ' ', '-' and '+' lines behind '@@' lines. Or a "
                "unified or git diff. Paths are relative to the workspace."
            ),
        ),
    ]


class PatchedFile(Wire, frozen=True, omit_defaults=False):
    """What became of one file."""

    path: str
    action: Action
    renamed_from: str | None
    before: str | None
    """Hash of its bytes before; null where there was no file."""
    hash: str | None
    """Hash of its bytes now; null where there is no file."""
    added: int
    removed: int
    strategies: tuple[str, ...]
    """How the place of each hunk was found: `exact`, or more tolerant."""


class ApplyPatchData(Wire, frozen=True, omit_defaults=False):
    """What was changed."""

    files: tuple[PatchedFile, ...]
    diff: str


APPLY_PATCH = ToolSpec(
    name="apply_patch",
    title="Apply patch",
    description=(
        "Change several files in one step: all of it is done, or nothing. Takes the '*** Begin Patch' form or a "
        "unified diff. Every hunk needs enough lines around it to be found once, or an '@@' line that names its "
        "function or class. Refused when a file changed since this session read it."
    ),
    arguments=ApplyPatchArguments,
    data=ApplyPatchData,
    permissions=("fs.read", "fs.write", "fs.delete"),  # what it refuses it explains, with lines of the file
    side_effects=("files",),
    enabled=False,
    stage="change",
    intent="change several files in one step, all or nothing",
    not_for=(("one change in one file", "edit"),),
)


def build_apply_patch_tool(seen: ReadMarks, records: Recorder) -> Tool:
    return build_file_tool(APPLY_PATCH, _plan, seen, records, doing="patching", touches=_declare_touches)


def _declare_touches(arguments: ApplyPatchArguments) -> Touches:
    files = parse_patch(arguments.patch)
    check_nested_paths(files)
    return Touches(
        reads=_drop_repeated(file.path for file in files if file.action == "copy"),
        writes=_drop_repeated(file.target or file.path for file in files if file.action != "delete"),
        deletes=_drop_repeated(file.path for file in files if file.action in {"delete", "move"}),
        # A copy has the mode of its source.
        modes=frozenset(
            file.target or file.path for file in files if file.action == "copy" or file.executable is not None
        ),
        locate_error=lambda error, path: add_position_by_path(error, files, path),
    )


def _drop_repeated(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))


def _plan(view: FileView, arguments: ApplyPatchArguments) -> FilePlan:
    planned = plan_patch(view, parse_patch(arguments.patch))
    shown = [file for file in planned if not file.moves_away]
    diff, is_truncated = _join_diffs([file.change for file in shown])
    subject = clip_path(shown[0].change.target.real) if len(shown) == 1 else format_count(len(shown), "file")
    return FilePlan(
        subject=subject,
        changes=tuple(file.change for file in planned),
        preview=diff,
        is_truncated=is_truncated,
        done="applied",
        describe=partial(_describe, planned, subject, diff),
    )


def _join_diffs(changes: Sequence[FileChange]) -> tuple[str, bool]:
    """The diffs of all files up to a length, and whether something is cut off."""
    text = "".join(change.diff.text or _describe_without_diff(change) for change in changes)
    if len(text) <= _MAX_DIFF_CHARS:
        return text, any(change.diff.truncated for change in changes)
    cut = text.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return f"{text[:cut]}… {len(text) - cut} more characters\n", True


def _describe_without_diff(change: FileChange) -> str:
    noun = "the link " if change.target.is_link else ""
    return f"({noun}{change.target.real} {'goes' if change.data is None else 'is new, and empty or binary'})\n"


def _describe(planned: Sequence[PlannedFile], subject: str, diff: str, committed: CommitResult) -> Output:
    diffs = [file.change.diff for file in planned]
    counts = _render_counts(sum(one.added for one in diffs), sum(one.removed for one in diffs))
    summary = f"Patched {subject}{counts}"
    changes = committed.changes.changes if committed.changes is not None else ()
    pairs = zip((change for change in changes if change.kind != "folder"), planned, strict=True)
    rows = [(_build_patched_file(change, file), file) for change, file in pairs if not file.moves_away]
    lines = [_render_file(*row) for row in rows[:_MAX_LISTED_FILES]]
    if len(rows) > _MAX_LISTED_FILES:
        lines.append(f"… and {len(rows) - _MAX_LISTED_FILES} more\n")
    return Output(
        summary=summary,
        content=f"{summary}.\n{''.join(lines)}",
        data=ApplyPatchData(files=tuple(file for file, _ in rows), diff=diff),
    )


def _build_patched_file(change: Change, planned: PlannedFile) -> PatchedFile:
    return PatchedFile(
        path=change.path,
        action=change.action,
        renamed_from=change.renamed_from,
        before=change.before,
        hash=change.after,
        added=change.added or 0,
        removed=change.removed or 0,
        strategies=planned.strategies,
    )


def _render_file(file: PatchedFile, planned: PlannedFile) -> str:
    source = f" from {file.renamed_from}" if file.renamed_from else ""
    counts = _render_counts(file.added, file.removed)
    notes = "; ".join(_list_notes(file, planned))
    return f"{_LETTERS[file.action]} {file.path}{source}{counts}{f' ({notes})' if notes else ''}\n"


def _render_counts(added: int, removed: int) -> str:
    return f" +{added} −{removed}" if added or removed else ""


def _list_notes(file: PatchedFile, planned: PlannedFile) -> Iterator[str]:
    if planned.change.target.is_link:
        yield "was a link"
    if planned.shown_mode is not None:
        yield f"mode {planned.shown_mode:04o}"
    for strategy in dict.fromkeys(name for name in file.strategies if name != "exact"):
        hunks = [str(number) for number, name in enumerate(file.strategies, 1) if name == strategy]
        more = ", …" if len(hunks) > _MAX_NUMBERED_HUNKS else ""
        numbers = f"hunk{'s' if len(hunks) > 1 else ''} {', '.join(hunks[:_MAX_NUMBERED_HUNKS])}{more}"
        yield f"{numbers} {describe_tolerance(strategy)}"
