"""What a preview would change, one entry a file: a letter, the path, how much, and what is worth a second look."""

from collections.abc import Iterable
from typing import NamedTuple

from handrail.policy.changeset import find_repository
from handrail.protocol.changes import Action, Change, PreviewRun
from handrail.protocol.text import escape_exact_line, measure_width, pad, wrap
from handrail.tools.exec.result import describe_git_files

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
