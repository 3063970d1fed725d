"""Renders the preview of a command as text."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from handrail.edit.diff_parser import parse_hunk_range
from handrail.policy.changeset import collect_moved_paths, find_repository, is_deletion
from handrail.protocol.changes import PREVIEW_GONE, Action, Change, Preview, PreviewRun
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.records import format_age
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.text import (
    escape_control,
    escape_exact_line,
    format_count,
    measure_width,
    to_one_line,
    truncate,
)
from handrail.terminal.screen import format_seconds
from handrail.terminal.style import Paint, Style, measure_painted, pad_painted, paint_nothing, wrap_painted
from handrail.tools.exec.result import describe_git_files

MAX_FILE_ROWS = 10
"""Rows of the list of files, unless all are asked for."""
AGAIN = "r try again"
_UNTOUCHED = "Your files are untouched."
_STOPPED = {
    "timeout": "took too long",
    "memory": "needed too much memory",
    "processes": "started too many processes",
    "output": "printed too much",
    "cancelled": "was cancelled",
}
_NO_NETWORK = " — the copy has no network, so the real run may differ"
_MAX_NAMED_PATHS = 3
_MAX_LINE_CHARS = 120
_JUST_NOW = timedelta(seconds=10)
_LETTERS: dict[Action, str] = {"created": "A", "deleted": "D", "renamed": "R"}
_VERBS: dict[Action, str] = {"created": "adds", "deleted": "deletes", "renamed": "renames"}
_MIN_TWO_COLUMN_WIDTH = 96
_DIFF_STYLES: dict[str, Style] = {"+": "added", "-": "removed"}
_MAX_ALIGNED_NAME = 48
"""A longer name is not aligned with: the counts of the others would be far from their names."""
_INDENT = "  "


def has_preview_run(request: PermissionRequest) -> bool:
    """Whether an approval commits a preview and runs nothing."""
    return request.preview_id is not None


def render_preview_run(
    request: PermissionRequest,
    width: int | None,
    *,
    outdated: tuple[str, ...] = (),
    again: str = AGAIN,
    plain: bool = False,
    most: int | None = MAX_FILE_ROWS,
    paint: Paint = paint_nothing,
) -> Iterator[str]:
    """The end, changes and output of a preview. Without a preview: why, and the effect of an approval."""
    run = request.preview.tried if request.preview is not None else None
    if run is None:
        yield _describe_missing_preview(request)
        return
    end = _describe_end(run, paint) if not outdated else f"{describe_outdated(outdated, again)} {_UNTOUCHED}"
    yield f"{end} {describe_preview_age(request)}".rstrip()
    yield from render_changes(run, width, plain=plain, most=most, paint=paint)
    yield from (f"! Cannot be kept: {to_one_line(path)}" for path in run.unkept)
    yield _describe_output(run)


def render_changes(
    run: PreviewRun,
    width: int | None,
    *,
    plain: bool = False,
    most: int | None = MAX_FILE_ROWS,
    paint: Paint = paint_nothing,
) -> list[str]:
    """The files that would change, in at most `most` rows: the most harmful first, changes of layout last.

    The files of git in a repository are only counted.
    """
    repositories = _count_repository_files(run)
    listed = [change for change in _list_worth_showing(run) if not repositories or find_repository(change) is None]
    if not listed and not repositories:
        return [f"Would change {format_file_count(run.files)}."]
    git_files = sum(repositories.values())
    rows, shown = _render_rows(listed, width, most, plain=plain, paint=paint)
    folders = sum(change.kind == "folder" for change in listed)
    total = max(len(listed), run.files - _count_renames(run) - git_files + folders)
    heading = [_quote_path(folder) for folder in repositories]
    if listed:
        only_folders = run.files == git_files
        count = format_count(len(listed), "folder") if only_folders else _count_files(run, run.files - git_files)
        heading.insert(0, count)
    gits = [f"{_INDENT}{_quote_path(folder)}: {describe_git_files(count)}" for folder, count in repositories.items()]
    return [f"Would change {' and '.join(heading)}:", *rows, *_count_hidden(listed[shown:], total - shown), *gits]


def render_diff_lines(
    preview: Preview, width: int | None, most: int | None, paint: Paint = paint_nothing
) -> Iterator[str]:
    """The first lines of a diff, and how many more there are."""
    lines = list(paint_diff(preview.text.rstrip("\n").expandtabs(8), paint))
    shown = lines if most is None else lines[:most]
    for line in shown:
        yield from wrap_painted(line, width, "  ") if line else [""]
    if len(lines) > len(shown):
        yield f"… {len(lines) - len(shown)} more lines"
    elif preview.truncated:
        yield "… the preview is cut here"


def paint_diff(text: str, paint: Paint) -> Iterator[str]:
    """The lines of a unified diff, escaped. They are counted as its hunks state, so none passes for a header."""
    old = new = 0
    for line in text.split("\n"):
        sign, style = line[:1], None
        if (old > 0 or new > 0) and sign != "\\":
            style = _DIFF_STYLES.get(sign)
            old, new = old - (sign != "+"), new - (sign != "-")
        elif stated := parse_hunk_range(line):
            style, old, new = "hunk", stated.old_count, stated.new_count
        elif line.startswith(("--- ", "+++ ")):
            style = "heading"
        shown = escape_control(line)
        yield paint(shown, style) if style is not None else shown


def summarize_changes(run: PreviewRun) -> str:
    """The number of files and deletions: `4 files, 1 deletion`."""
    deleted = _count_deletions(run)
    if deleted <= 0 or not run.files:
        return summarize_files(run)
    return f"{summarize_files(run)}, {format_count(deleted, 'deletion')}"


def describe_preview_question(run: PreviewRun) -> str:
    """Asks whether to keep the changes of a preview, or to show its output if there is nothing to keep."""
    if run.ending != "exit" or not (run.files or run.changes):
        return f"Show the model this {'output' if run.lines or run.last_line else 'result'}?"
    repositories = _count_repository_files(run)
    listed = [change for change in _list_worth_showing(run) if not repositories or find_repository(change) is None]
    files = run.files - _count_renames(run) - sum(repositories.values())
    count, noun = (files, "file") if files else (len(listed), "folder")
    deletes = bool(listed) and len(listed) >= count and all(change.action == "deleted" for change in listed)
    deleted = 0 if deletes else _count_deletions(run)
    changed = f"{format_these(count, 'change')} with {format_count(deleted, 'deletion')}"
    subjects = [changed if deleted else format_these(count, noun)] if count else []
    if repositories:
        changes = f"the changes in {', '.join(map(_quote_path, repositories))}"
        subjects.append(f"keep {changes}" if deletes else changes)
    return f"{'Delete' if deletes else 'Keep'} {' and '.join(subjects)}?"


def format_these(count: int, noun: str) -> str:
    """`this file`, `these 3 files`."""
    return f"this {noun}" if count == 1 else f"these {count} {noun}s"


def summarize_files(run: PreviewRun) -> str:
    """The number of files, or of folders if there are no files."""
    folders = sum(change.kind == "folder" for change in run.changes)
    return format_count(folders, "folder") if folders and not run.files else _count_files(run, run.files)


def format_file_count(count: int) -> str:
    return "1 file" if count == 1 else f"{count or 'no'} files"


def describe_outdated(paths: tuple[str, ...], again: str = AGAIN) -> str:
    """Why a preview can no longer be committed, and how to get a new one."""
    if PREVIEW_GONE in paths:
        return f"Out of date: the preview is gone. {again}."
    more = f" and {len(paths) - _MAX_NAMED_PATHS} more" if len(paths) > _MAX_NAMED_PATHS else ""
    named = ", ".join(map(escape_exact_line, paths[:_MAX_NAMED_PATHS]))
    return f"Out of date: {named}{more} changed since. {again}."


def describe_preview_age(request: PermissionRequest) -> str:
    """The age of the preview as a sentence. Empty if it is unknown."""
    made = request.preview.time if request.preview is not None else None
    if made is None:
        return ""
    age = datetime.now(UTC) - made
    return f"Preview from {'just now' if age < _JUST_NOW else f'{format_age(age)} ago'}."


def _describe_missing_preview(request: PermissionRequest) -> str:
    preview = request.preview
    why = preview.text if preview is not None and preview.kind == "none" else ""
    tried = f"No preview: {to_one_line(why).rstrip('.')}" if why else "No preview"
    return f"{tried}. Nothing has run. If you approve, it runs for real{_describe_undo(request)}."


def _describe_undo(request: PermissionRequest) -> str:
    """What undo covers of a command without a preview."""
    if request.preview is not None and request.preview.read_only:
        return ""
    if request.background:
        return "; it is not covered by undo"
    if request.hosts:
        return "; what it sends cannot be undone"
    if request.tier == OVERLAY_TIER:
        return "; undo reverts its changes"
    return "; its result says what undo covers"


def _describe_end(run: PreviewRun, paint: Paint) -> str:
    seconds = format_seconds(run.duration_ms / 1000)
    if run.ending != "exit":
        why = _STOPPED.get(run.ending, f"was stopped ({to_one_line(run.ending)})")
        return f"Ran in a disposable copy: it {why}, and was stopped after {seconds}; no change is kept. {_UNTOUCHED}"
    if run.exit_code:
        exit_code = paint(f"exit {run.exit_code}", "failed")
        return f"Failed in a disposable copy: {exit_code} in {seconds}{_NO_NETWORK * bool(run.blocked)}. {_UNTOUCHED}"
    return f"Ran in a disposable copy: {paint('exit 0', 'ok')} in {seconds}. {_UNTOUCHED}"


def _describe_output(run: PreviewRun) -> str:
    """The blocked connections and the output."""
    blocked = f"Tried to reach {', '.join(map(to_one_line, run.blocked))} (blocked). " if run.blocked else ""
    if not run.lines and not run.last_line:
        return f"{blocked}Printed nothing."
    lines = "1 line" if run.lines == 1 else f"{run.lines} lines"
    last = truncate(to_one_line(run.last_line.strip()), _MAX_LINE_CHARS)
    return f'{blocked}Printed {lines}, last: "{last}"' if last else f"{blocked}Printed {lines}."


# The list of files.


def _count_files(run: PreviewRun, files: int) -> str:
    return format_file_count(files - _count_renames(run))


def _count_deletions(run: PreviewRun) -> int:
    """The deleted files, without git's own if all changes are listed."""
    files = [change for change in run.changes if change.kind != "folder"]
    if run.files > len(files):
        return run.deleted
    moved = collect_moved_paths(run.changes)
    return sum(is_deletion(change, moved) and find_repository(change) is None for change in files)


def _count_renames(run: PreviewRun) -> int:
    """How many deleted files are only old names of renamed ones."""
    return sum(change.renamed_from is not None for change in run.changes)


def _count_repository_files(run: PreviewRun) -> dict[str, int]:
    """The number of changed git files by repository. Empty if the preview does not list all files."""
    counts: dict[str, int] = {}
    for change in run.changes:
        if change.kind != "folder" and (folder := find_repository(change)) is not None:
            counts[folder] = counts.get(folder, 0) + 1
    return counts if run.files <= sum(change.kind != "folder" for change in run.changes) else {}


def _list_worth_showing(run: PreviewRun) -> list[Change]:
    """The changes without folders of other changes and without old names of renamed files."""
    changes = run.changes
    parents = {change.path[:at] for change in changes for at, char in enumerate(change.path) if char == "/" and at}
    renamed = {change.renamed_from for change in changes}
    kept = [change for change in changes if change.kind != "folder" or change.path not in parents]
    kept = [change for change in kept if change.action != "deleted" or change.path not in renamed]
    return sorted(kept, key=lambda change: change.layout_only)


class _Entry(NamedTuple):
    name: str
    counts: str = ""
    remarks: str = ""


def _render_rows(
    changes: list[Change], width: int | None, most: int | None, *, plain: bool, paint: Paint
) -> tuple[list[str], int]:
    """The rows, in two columns if they fit, and the number of changes in them."""
    entries = [_Entry(_describe_change(change)) if plain else _build_entry(change) for change in changes]
    room = None if width is None else width - len(_INDENT)
    if room is not None and not plain and room + len(_INDENT) >= _MIN_TWO_COLUMN_WIDTH:
        first = entries[: most * 2] if most is not None else entries
        lines = _paint_deletions(_align(first), changes, paint)
        if len(first) > 1 and max(map(measure_painted, lines)) <= (room - 3) // 2:
            left = max(map(measure_painted, lines[::2])) + 3
            pairs = zip(lines[::2], [*lines[1::2], ""], strict=False)
            return [f"{_INDENT}{pad_painted(one, left)}{other}".rstrip() for one, other in pairs], len(first)
    first = entries if most is None else entries[:most]
    lines = ["  ".join(filter(None, entry)) for entry in first] if plain or width is None else _align(first)
    lines = _paint_deletions(lines, changes, paint)
    return [f"{_INDENT}{row}" for line in lines for row in wrap_painted(line, room, "    ")], len(first)


def _paint_deletions(lines: list[str], changes: list[Change], paint: Paint) -> list[str]:
    pairs = zip(lines, changes, strict=False)
    return [paint(line, "removed") if change.action == "deleted" else line for line, change in pairs]


def _align(entries: list[_Entry]) -> list[str]:
    name = min(_MAX_ALIGNED_NAME, max((measure_width(entry.name) for entry in entries), default=0))
    counts = max((measure_width(entry.counts) for entry in entries), default=0)
    return [
        f"{pad_painted(one.name, name)}  {pad_painted(one.counts, counts)}   {one.remarks}".rstrip() for one in entries
    ]


def _count_hidden(hidden: list[Change], count: int) -> list[str]:
    if count <= 0:
        return []
    layout = sum(change.layout_only for change in hidden)
    kinds = " in layout only" if layout == count else f", {layout} of them in layout only" if layout else ""
    return [f"{_INDENT}and {count} more{kinds}"]


def _build_entry(change: Change) -> _Entry:
    name = f"{_LETTERS.get(change.action, 'M')} {_format_path(change)}"
    counts = (f"+{change.added}" if change.added else "", f"−{change.removed}" if change.removed else "")
    return _Entry(name, " ".join(filter(None, counts)), "   ".join(_list_remarks(change, plain=False)))


def _describe_change(change: Change) -> str:
    """A change in words, for a plain screen."""
    facts = [f"{format_count(change.added, 'line')} added"] if change.added else []
    facts += [f"{format_count(change.removed, 'line')} removed"] if change.removed else []
    facts += _list_remarks(change, plain=True)
    return f"{_VERBS.get(change.action, 'changes')} {_format_path(change)}{': ' if facts else ''}{', '.join(facts)}"


def _list_remarks(change: Change, *, plain: bool) -> list[str]:
    """Remarks on a change, the most important first."""
    remarks = ["deletes!"] if change.action == "deleted" and not plain else []
    if change.replaces is not None:
        remarks.append(f"was a {change.replaces}{'' if plain else '!'}")
    if change.executable:
        remarks.append("executable")
    if change.kind == "link" and change.action != "deleted":
        target = _quote_path(change.target) if change.target is not None else "?"
        remarks.append(f"link {'to' if plain else '→'} {target}{' (outside)' if change.outside else ''}")
    if change.action == "mode" and change.mode is not None:
        remarks.append(f"mode {change.mode:o}")
    remarks += ["binary"] if change.binary else []
    remarks += ["layout only"] if change.layout_only else []
    return remarks


def _format_path(change: Change) -> str:
    path = _quote_path(change.path) + ("/" if change.kind == "folder" else "")
    return f"{_quote_path(change.renamed_from)} → {path}" if change.renamed_from else path


def _quote_path(path: str) -> str:
    """The path, in quotes if it contains a separator of the list."""
    return f'"{escape_exact_line(path)}"' if "  " in path or " → " in path else escape_exact_line(path)
