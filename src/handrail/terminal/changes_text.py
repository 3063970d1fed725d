"""Renders a preview as text."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from handrail.policy.changeset import find_repository
from handrail.protocol.changes import Action, Change
from handrail.protocol.decisions import OVERLAY_TIER
from handrail.protocol.permissions import ONLY_LOOKS, PermissionRequest, Preview, PreviewRun
from handrail.protocol.text import (
    escape_exact_line,
    format_age,
    format_duration,
    measure_width,
    pad,
    to_one_line,
    truncate,
    wrap,
)
from handrail.tools.exec.result import describe_git_files

# § [terminal.changed] What a preview would change, one entry a file: a letter, the path, how much, and what is
# § worth a second look.

MAX_FILE_ROWS = 10
"""Of the list of files that are shown unasked."""
_LETTERS: dict[Action, str] = {"created": "A", "deleted": "D", "renamed": "R"}
_VERBS: dict[Action, str] = {"created": "adds", "deleted": "deletes", "renamed": "renames"}
_MIN_TWO_COLUMN_WIDTH = 96
_INDENT = "  "


class _Entry(NamedTuple):
    name: str
    much: str
    remarks: str


def render_changes(
    tried: PreviewRun, width: int | None, *, plain: bool = False, most: int | None = MAX_FILE_ROWS
) -> list[str]:
    """The files that would change, the most harmful first as in the preview, those that change only layout last. At
    most so many rows; what is folded away is counted, and so is what git does in a repository."""
    repositories = _repositories(tried)
    listed = [change for change in _listed(tried.changes) if not repositories or find_repository(change) is None]
    if not listed and not repositories:
        return ["Would change no files."] if not tried.files else [f"Would change {format_file_count(tried.files)}."]
    entries = [_in_words(change) if plain else _entry(change) for change in listed]
    rows, shown = _rows(entries, width, most, plain=plain)
    folders = sum(change.kind == "folder" for change in listed)
    total = max(len(listed), tried.files - _renames(tried) - sum(repositories.values()) + folders)
    gits = [f"{_INDENT}{_spelled(folder)}: {describe_git_files(count)}" for folder, count in repositories.items()]
    counted = ([_counted(tried, listed, sum(repositories.values()))] if listed else []) + list(
        map(_spelled, repositories)
    )
    return [f"Would change {' and '.join(counted)}:", *rows, *_folded(listed[shown:], total - shown), *gits]


def format_file_count(count: int) -> str:
    """So many files, in words."""
    return "1 file" if count == 1 else f"{count or 'no'} files"


def summarize_changes(tried: PreviewRun) -> str:
    """All of it in a few words: `4 files, 1 deletion`."""
    folders = sum(change.kind == "folder" for change in tried.changes)
    if not tried.files and folders:
        return "1 folder" if folders == 1 else f"{folders} folders"
    renames = _renames(tried)
    count, deleted = tried.files - renames, tried.deleted - renames
    deletions = "1 deletion" if deleted == 1 else f"{deleted} deletions"
    return f"{format_file_count(count)}, {deletions}" if deleted > 0 else format_file_count(count)


def _renames(tried: PreviewRun) -> int:
    """How many old names of renamed files are counted as files that are deleted."""
    return sum(change.renamed_from is not None for change in tried.changes)


def _repositories(tried: PreviewRun) -> dict[str, int]:
    """How many files of git's own would change in each repository; unknown for previews that do not list all of their
    files."""
    found: dict[str, int] = {}
    for change in tried.changes:
        if change.kind != "folder" and (folder := find_repository(change)) is not None:
            found[folder] = found.get(folder, 0) + 1
    return found if tried.files <= sum(change.kind != "folder" for change in tried.changes) else {}


def _counted(tried: PreviewRun, listed: list[Change], gits: int) -> str:
    count = tried.files - gits
    folders = len(listed) if not count else 0
    return f"{folders} folder{'s' * (folders != 1)}" if folders else format_file_count(count - _renames(tried))


def _listed(changes: tuple[Change, ...]) -> list[Change]:
    """Without folders that are seen by what comes or goes in them, and without the old names of what is renamed."""
    inside = {change.path[:at] for change in changes for at in _slashes(change.path)}
    renamed = {change.renamed_from for change in changes}
    kept = [change for change in changes if change.kind != "folder" or change.path not in inside]
    kept = [change for change in kept if change.action != "deleted" or change.path not in renamed]
    return sorted(kept, key=lambda change: change.layout_only)


def _slashes(path: str) -> Iterable[int]:
    return (at for at, char in enumerate(path) if char == "/" and at)


def _rows(entries: list[_Entry], width: int | None, most: int | None, *, plain: bool) -> tuple[list[str], int]:
    """The rows, and how many entries are in them."""
    room = None if width is None else width - len(_INDENT)
    half = None if room is None or plain or room + len(_INDENT) < _MIN_TWO_COLUMN_WIDTH else (room - 3) // 2
    first = entries if most is None or half is None else entries[: most * 2]
    lines = _aligned(first)
    if half is not None and len(first) > 1 and max(map(measure_width, lines)) <= half:
        paired = zip(lines[::2], [*lines[1::2], ""], strict=False)
        side = max(map(measure_width, lines[::2])) + 3
        return [f"{_INDENT}{pad(one, side)}{other}".rstrip() for one, other in paired], len(first)
    first = entries if most is None else entries[:most]
    lines = [_joined(entry) for entry in first] if plain or width is None else _aligned(first)
    return [f"{_INDENT}{row}" for line in lines for row in wrap(line, room, "    ")], len(first)


def _aligned(entries: list[_Entry]) -> list[str]:
    """With the counts below each other, where no name is so long that the others would stand far from theirs."""
    name = min(48, max((measure_width(entry.name) for entry in entries), default=0))
    much = max((measure_width(entry.much) for entry in entries), default=0)
    return [f"{pad(one.name, name)}  {pad(one.much, much)}   {one.remarks}".rstrip() for one in entries]


def _joined(entry: _Entry) -> str:
    return "  ".join(filter(None, entry))


def _folded(hidden: list[Change], count: int) -> list[str]:
    if count <= 0:
        return []
    layout = sum(change.layout_only for change in hidden)
    all_of_it = " in layout only" if layout == count else f", {layout} of them in layout only" if layout else ""
    return [f"{_INDENT}and {count} more{all_of_it}"]


def _entry(change: Change) -> _Entry:
    name = f"{_LETTERS.get(change.action, 'M')} {_path(change)}"
    counts = (f"+{change.added}" if change.added else "", f"−{change.removed}" if change.removed else "")
    return _Entry(name, " ".join(filter(None, counts)), "   ".join(_remarks(change, plain=False)))


def _in_words(change: Change) -> _Entry:
    counts = [f"{change.added} lines added"] if change.added else []
    counts += [f"{change.removed} lines removed"] if change.removed else []
    told = ", ".join((*counts, *_remarks(change, plain=True)))
    return _Entry(f"{_VERBS.get(change.action, 'changes')} {_path(change)}{': ' if told else ''}{told}", "", "")


def _path(change: Change) -> str:
    path = _spelled(change.path) + ("/" if change.kind == "folder" else "")
    return f"{_spelled(change.renamed_from)} → {path}" if change.renamed_from else path


def _spelled(path: str) -> str:
    """A path; in quotes where a part of it could be taken for what is told of it."""
    return f'"{escape_exact_line(path)}"' if "  " in path or " → " in path else escape_exact_line(path)


def _remarks(change: Change, *, plain: bool) -> list[str]:
    """What is worth a second look, in the order of what it may cost."""
    found = ["deletes!"] if change.action == "deleted" and not plain else []
    if change.replaces is not None:
        found.append(f"was a {change.replaces}{'' if plain else '!'}")
    if change.executable:
        found.append("executable")
    if change.kind == "link" and change.action != "deleted":
        found.append(_leads(change, plain=plain))
    if change.action == "mode" and change.mode is not None:
        found.append(f"mode {change.mode:o}")
    found += ["binary"] if change.binary else []
    found += ["layout only"] if change.layout_only else []
    return found


def _leads(change: Change, *, plain: bool) -> str:
    where = _spelled(change.target) if change.target is not None else "?"
    outside = " (outside)" if change.outside else ""
    return f"link to {where}{outside}" if plain else f"link → {where}{outside}"


# § [terminal.tried] How a command went that was tried in a copy, or why it was not: what a yes would commit, or do.

_UNTOUCHED = "Your files are untouched."
_STOPPED = {
    "timeout": "took too long",
    "memory": "needed too much memory",
    "processes": "started too many processes",
    "output": "printed too much",
    "cancelled": "was cancelled",
}
_NO_NETWORK = "the network is off in the copy, so this may differ for real"
_MAX_NAMED_PATHS = 3
AGAIN = "r try again"
_MAX_LINE_CHARS = 120
_JUST_NOW = timedelta(seconds=10)


def has_preview_run(request: PermissionRequest) -> bool:
    """Whether a yes commits what a preview changed, and runs nothing."""
    return request.preview is not None and request.preview.tried is not None


def render_preview_run(
    request: PermissionRequest,
    width: int | None,
    *,
    outdated: tuple[str, ...] = (),
    again: str = AGAIN,
    plain: bool = False,
    most: int | None = MAX_FILE_ROWS,
) -> Iterator[str]:
    """How it went, what it would change and what it printed; or why it was not tried, and what a yes does then."""
    tried = request.preview.tried if request.preview is not None else None
    if tried is None:
        yield describe_missing_preview(request)
        return
    how = _how(tried) if not outdated else f"{describe_outdated(outdated, again)} {_UNTOUCHED}"
    yield f"{how} {describe_preview_age(request)}".rstrip()
    yield from render_changes(tried, width, plain=plain, most=most)
    yield from (f"! Cannot be kept: {to_one_line(one)}" for one in tried.unkept)
    yield _beside(tried)


def describe_outdated(paths: tuple[str, ...], again: str = AGAIN) -> str:
    """Why a preview can no longer be committed, and what to do then."""
    from handrail.runtime.permission_request import GONE  # noqa: PLC0415  few previews are

    if GONE in paths:
        return f"Out of date: {GONE}. {again}."
    more = f" and {len(paths) - _MAX_NAMED_PATHS} more" if len(paths) > _MAX_NAMED_PATHS else ""
    named = ", ".join(map(escape_exact_line, paths[:_MAX_NAMED_PATHS]))
    return f"Out of date: {named}{more} changed since. {again}."


def describe_preview_age(request: PermissionRequest) -> str:
    """How old the preview is, as a sentence; nothing if that is not known."""
    made = request.preview.time if request.preview is not None else None
    if made is None:
        return ""
    age = datetime.now(UTC) - made
    return f"Preview from {'just now' if age < _JUST_NOW else f'{format_age(age)} ago'}."


def describe_missing_preview(request: PermissionRequest) -> str:
    """Why it was not tried, and what a yes means then."""
    why = _why_not(request.preview)
    told = "Not tried" if not why else f"Not tried: {to_one_line(why).rstrip('.')}"
    return f"{told}. Nothing has run. Yes runs it for real{_undone(request, why)}."


def _how(tried: PreviewRun) -> str:
    seconds = format_duration(tried.duration_ms)
    if tried.ending != "exit":
        why = _STOPPED.get(tried.ending, f"was stopped ({to_one_line(tried.ending)})")
        return f"Tried in a throw-away copy: it {why}, and was stopped after {seconds}; no change is kept. {_UNTOUCHED}"
    if tried.exit_code:
        return f"Tried, failed: exit {tried.exit_code} in {seconds} — {_NO_NETWORK}. {_UNTOUCHED}"
    return f"Tried in a throw-away copy: exit 0 in {seconds}. {_UNTOUCHED}"


def _beside(tried: PreviewRun) -> str:
    """What else it did: whom it tried to reach, and what it printed."""
    reached = f"Tried to reach {', '.join(map(to_one_line, tried.blocked))} (blocked). " if tried.blocked else ""
    lines = "1 line" if tried.lines == 1 else f"{tried.lines} lines"
    if not tried.lines and not tried.last_line:
        return f"{reached}Printed nothing."
    shown = truncate(to_one_line(tried.last_line.strip()), _MAX_LINE_CHARS)
    return f'{reached}Printed {lines}, last: "{shown}"' if shown else f"{reached}Printed {lines}."


def _why_not(preview: Preview | None) -> str:
    return preview.text if preview is not None and preview.kind == "none" else ""


def _undone(request: PermissionRequest, why: str) -> str:
    """What undo covers of a command that runs for real, as far as that is known before."""
    if why == ONLY_LOOKS:
        return ""
    if request.background:
        return "; it is not covered by undo"
    if request.hosts:
        return "; what it sends cannot be undone"
    if request.tier == OVERLAY_TIER:
        return "; undo takes back what it changes"
    return "; its result says what undo covers"
