"""The tool apply_patch."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated

from msgspec import Meta

from handrail.edit.diff import Diff
from handrail.edit.patch.envelope import parse_patch
from handrail.protocol.changes import Action, Change
from handrail.protocol.permissions import Preview
from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire
from handrail.tools.file_commit import FileChange, check_parses, commit_files, find_parse_warning
from handrail.tools.file_state import Records, TargetResolver, WholeFileMark, encode_mark
from handrail.tools.patch_plan import PlannedFile, add_position_by_path, check_nested_paths, plan_patch
from handrail.tools.text import describe_tolerance, format_count
from handrail.tools.tool import Context, Output, ReadMarks, Tool, Touches
from handrail.workspace.errors import clip_path

# § [tools.apply_patch] apply_patch: several changes of several files, all of them or none.

MAX_PATCH_CHARS = 32 * 1024 * 1024
"""Characters that a patch may have."""


class ApplyPatchArguments(Arguments, frozen=True):
    """The arguments of apply_patch."""

    patch: Annotated[
        str,
        Meta(
            max_length=MAX_PATCH_CHARS,
            description=(
                "The patch: '*** Begin Patch' … '*** End Patch' with '*** Add File:', '*** Update File:' (and "
                "'*** Move to:'), '*** Delete File:' and hunks of ' ', '-' and '+' lines behind '@@' lines; or a "
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


def build_apply_patch_tool(seen: ReadMarks, records: "Records") -> Tool:
    """The tool apply_patch for one session. What it is done with is loaded when it is first used."""

    def run(context: Context, arguments: ApplyPatchArguments) -> Output:

        return apply_patch(context, arguments, seen, records)

    def preview(context: Context, arguments: ApplyPatchArguments) -> Preview:

        return preview_patch(context, arguments, seen, records)

    def touches(arguments: ApplyPatchArguments) -> Touches:

        return declare_touches(arguments)

    return Tool(APPLY_PATCH, run, touches, preview)


# § [tools.patching] What apply_patch does: reads the patch, works it out, changes the files, tells what changed.

_LETTERS = {"created": "A", "modified": "M", "deleted": "D", "renamed": "R", "mode": "M", "link": "M"}
_MAX_LISTED_FILES = 100
"""Files that the model is told of one by one."""
_MAX_NUMBERED_HUNKS = 5
"""Hunks that are numbered, of those that something was forgiven for."""
_MAX_DIFF_CHARS = 200_000
"""Characters of all differences together."""


def declare_touches(arguments: ApplyPatchArguments) -> Touches:
    """The paths that a patch names, and what it does to them."""
    files = parse_patch(arguments.patch)
    check_nested_paths(files)
    return Touches(
        reads=_once(file.path for file in files if file.action == "copy"),
        writes=_once(file.target or file.path for file in files if file.action != "delete"),
        deletes=_once(file.path for file in files if file.action in {"delete", "move"}),
        locate_error=lambda error, path: add_position_by_path(error, files, path),
    )


def _once(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))


def apply_patch(context: Context, arguments: ApplyPatchArguments, seen: ReadMarks, records: Records) -> Output:
    """Applies the patch."""
    planned = _plan(context, arguments, seen, records)
    becoming = [each.change for each in planned]
    for each in becoming:
        check_parses(context.limits, each.slot.real, each.data or b"")
    summary = _summary(planned)
    made = commit_files(records, context, "apply_patch", f"apply_patch {_named(planned)}", becoming)
    for each in becoming:
        if each.after is not None:
            seen.set_mark(each.slot.real, encode_mark(WholeFileMark(each.after.hash)))
    changes = [change for change in made.changes.changes if change.kind != "folder"]
    pairs = zip(changes, planned, strict=True)
    told = [(_file(change, each), each) for change, each in pairs if not each.moves_away]
    files = tuple(file for file, _ in told)
    return Output(
        summary=summary,
        content=f"{summary}.\n{_listed(told)}",
        data=ApplyPatchData(files=files, diff=_diff(planned)[0]),
        meta={"unread": any(each.slot.unread for each in becoming)},
        files_changed=tuple(change.path for change in changes),
        warnings=(*_warnings(planned), *((f"It was applied, but: {made.problem}",) if made.problem else ())),
        changes=made.changes,
    )


def preview_patch(context: Context, arguments: ApplyPatchArguments, seen: ReadMarks, records: Records) -> Preview:
    """What would change."""
    text, truncated = _diff(_plan(context, arguments, seen, records))
    return Preview(kind="diff", text=text, truncated=truncated)


def _plan(context: Context, arguments: ApplyPatchArguments, seen: ReadMarks, records: Records) -> list[PlannedFile]:
    return plan_patch(TargetResolver(context, seen, records, "patching"), parse_patch(arguments.patch))


def _diff(planned: Sequence[PlannedFile]) -> tuple[str, bool]:
    """The differences of all files, as much of them as is worth keeping, and whether that is only the beginning."""
    told = [each.change for each in planned if not each.moves_away]
    text = "".join(each.diff.text or _noted(each) for each in told)
    truncated = any(each.diff.truncated for each in told)
    if len(text) <= _MAX_DIFF_CHARS:
        return text, truncated
    cut = text.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return f"{text[:cut]}… {len(text) - cut} more characters\n", True


def _noted(each: FileChange) -> str:
    """A change that has no lines to show."""
    noun = "the link " if each.slot.is_link else ""
    return f"({noun}{each.slot.real} {'goes' if each.data is None else 'is new, and empty or binary'})\n"


def _file(change: Change, planned: PlannedFile) -> PatchedFile:
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


def _listed(files: Sequence[tuple[PatchedFile, PlannedFile]]) -> str:
    lines = [_line(*file) for file in files[:_MAX_LISTED_FILES]]
    more = [f"… and {len(files) - _MAX_LISTED_FILES} more\n"] if len(files) > _MAX_LISTED_FILES else []
    return "".join((*lines, *more))


def _line(file: PatchedFile, planned: PlannedFile) -> str:
    source = f" from {file.renamed_from}" if file.renamed_from else ""
    notes = "; ".join(_notes(file, planned))
    return f"{_LETTERS[file.action]} {file.path}{source}{_counts(file)}{f' ({notes})' if notes else ''}\n"


def _notes(file: PatchedFile, planned: PlannedFile) -> Iterator[str]:
    if planned.change.slot.is_link:
        yield "was a link"
    if planned.mode is not None:
        yield f"mode {planned.mode:04o}"
    for strategy in dict.fromkeys(name for name in file.strategies if name != "exact"):
        hunks = [str(number) for number, name in enumerate(file.strategies, 1) if name == strategy]
        more = ", …" if len(hunks) > _MAX_NUMBERED_HUNKS else ""
        numbers = f"hunk{'s' if len(hunks) > 1 else ''} {', '.join(hunks[:_MAX_NUMBERED_HUNKS])}{more}"
        yield f"{numbers} {describe_tolerance(strategy)}"


def _counts(lines: PatchedFile | Diff) -> str:
    return f" +{lines.added} −{lines.removed}" if lines.added or lines.removed else ""


def _summary(planned: Sequence[PlannedFile]) -> str:
    diffs = [each.change.diff for each in planned]
    added, removed = sum(diff.added for diff in diffs), sum(diff.removed for diff in diffs)
    return f"Patched {_named(planned)}{_counts(Diff('', added, removed))}"


def _named(planned: Sequence[PlannedFile]) -> str:
    told = [each.change.slot.real for each in planned if not each.moves_away]
    return clip_path(told[0]) if len(told) == 1 else format_count(len(told), "file")


def _warnings(planned: Sequence[PlannedFile]) -> list[str]:
    """What is said of the new files after the fact."""
    found: list[str | None] = []
    for each in (each.change for each in planned if each.change.data is not None):
        current = each.slot.found.current
        found.append(find_parse_warning(each.slot.real, current.data if current else None, each.data or b""))
    return [warning for warning in found if warning is not None]
