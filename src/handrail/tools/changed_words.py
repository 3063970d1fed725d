"""What a command changed, in words: a few for the row that says how it ended, and the files by their names."""

from collections.abc import Sequence

from handrail.policy.changeset import collect_moved_paths, is_deletion, is_new_object, sort_by_harm
from handrail.policy.names import is_git_control_name
from handrail.protocol.changes import Change, ChangeSet
from handrail.workspace.errors import clip_path

_MAX_NAMED_FILES = 20
_REPOSITORY = ".git"


def render_change_row(made: ChangeSet) -> str:
    """`changed 4 files (1 deleted) and .git; undo 15`."""
    files, repositories = _sorted_out(made.changes)
    deleted = sum(map(is_deletion, files))
    parts = [f"{_files(len(files))}{f' ({deleted} deleted)' if deleted else ''}"] if files else []
    parts += [_listed(repositories)] if repositories else []
    undo = f"; undo {made.number}" if made.undoable else "; undo does not cover it"
    return f"changed {' and '.join(parts) or _folders(made.changes)}{undo}"


def render_change_list(changes: Sequence[Change]) -> str:
    """The files, each in a line of its own, the most harmful first; of many only those."""
    files, repositories = _sorted_out(sort_by_harm(tuple(changes)))
    lines = [_line(change) for change in files[:_MAX_NAMED_FILES]]
    if len(files) > _MAX_NAMED_FILES:
        lines.append(f"… and {len(files) - _MAX_NAMED_FILES:,} more files")
    lines += [f"{clip_path(folder)}: {describe_git_files(count)}" for folder, count in repositories.items()]
    return "".join(f"  {line}\n" for line in lines)


def find_repository(change: Change) -> str | None:
    """The repository whose everyday work a change is: to people that is one thing. What steers git is none of that."""
    before, found, within = f"/{change.path}".partition(f"/{_REPOSITORY}/")
    if found and (is_new_object(change) or not is_git_control_name(within.partition("/")[0])):
        return f"{before}/{_REPOSITORY}"[1:]
    return None


def describe_git_files(count: int) -> str:
    """So many files that are nobody's but git's."""
    return f"{_files(count)} of git's own"


def _sorted_out(changes: Sequence[Change]) -> tuple[list[Change], dict[str, int]]:
    """Files, and how many there are in each repository."""
    files: list[Change] = []
    moved = collect_moved_paths(tuple(changes))
    repositories: dict[str, int] = {}
    for change in changes:
        if folder := find_repository(change):
            repositories[folder] = repositories.get(folder, 0) + (change.kind != "folder")
        elif change.kind != "folder" and not (change.action == "deleted" and change.path in moved):
            files.append(change)
    return files, repositories


def _line(change: Change) -> str:
    came_from = f" (was {clip_path(change.renamed_from)})" if change.renamed_from else ""
    words = {"mode": "changed the mode of", "link": "linked"}.get(change.action, change.action)
    counts = [f"+{change.added}" if change.added else "", f"-{change.removed}" if change.removed else ""]
    lines = " ".join(count for count in counts if count)
    return f"{words} {clip_path(change.path)}{came_from}{f' {lines}' if lines else ''}"


def _files(count: int) -> str:
    return f"{count:,} file{'s' if count != 1 else ''}"


def _listed(repositories: dict[str, int]) -> str:
    first, *more = repositories
    return f"{clip_path(first)} and {len(more)} more repositories" if more else clip_path(first)


def _folders(changes: Sequence[Change]) -> str:
    return f"{len(changes):,} folder{'s' if len(changes) != 1 else ''}"
