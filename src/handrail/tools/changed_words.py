"""What a command changed, in words: a few for the row that says how it ended, and the files by their names."""

from collections.abc import Sequence

from handrail.policy.harm import by_harm, is_deletion, moved_away
from handrail.policy.names import steers_repository
from handrail.policy.repository import is_new_object
from handrail.protocol.change import Change, ChangeSet
from handrail.workspace.errors import clipped

_MOST_NAMED = 20
_REPOSITORY = ".git"


def changed_row(made: ChangeSet) -> str:
    """`changed 4 files (1 deleted) and .git; undo 15`."""
    files, repositories = _sorted_out(made.changes)
    deleted = sum(map(is_deletion, files))
    parts = [f"{_files(len(files))}{f' ({deleted} deleted)' if deleted else ''}"] if files else []
    parts += [_listed(repositories)] if repositories else []
    undo = f"; undo {made.number}" if made.undoable else "; undo does not cover it"
    return f"changed {' and '.join(parts) or _folders(made.changes)}{undo}"


def changed_lines(changes: Sequence[Change]) -> str:
    """The files, each in a line of its own, the most harmful first; of many only those."""
    files, repositories = _sorted_out(by_harm(tuple(changes)))
    lines = [_line(change) for change in files[:_MOST_NAMED]]
    if len(files) > _MOST_NAMED:
        lines.append(f"… and {len(files) - _MOST_NAMED:,} more files")
    lines += [f"{clipped(folder)}: {of_gits_own(count)}" for folder, count in repositories.items()]
    return "".join(f"  {line}\n" for line in lines)


def repository_of(change: Change) -> str | None:
    """The repository whose everyday work a change is: to people that is one thing. What steers git is none of that."""
    before, found, within = f"/{change.path}".partition(f"/{_REPOSITORY}/")
    if found and (is_new_object(change) or not steers_repository(within.partition("/")[0])):
        return f"{before}/{_REPOSITORY}"[1:]
    return None


def of_gits_own(count: int) -> str:
    """So many files that are nobody's but git's."""
    return f"{_files(count)} of git's own"


def _sorted_out(changes: Sequence[Change]) -> tuple[list[Change], dict[str, int]]:
    """Files, and how many there are in each repository."""
    files: list[Change] = []
    moved = moved_away(tuple(changes))
    repositories: dict[str, int] = {}
    for change in changes:
        if folder := repository_of(change):
            repositories[folder] = repositories.get(folder, 0) + (change.kind != "folder")
        elif change.kind != "folder" and not (change.action == "deleted" and change.path in moved):
            files.append(change)
    return files, repositories


def _line(change: Change) -> str:
    came_from = f" (was {clipped(change.renamed_from)})" if change.renamed_from else ""
    words = {"mode": "changed the mode of", "link": "linked"}.get(change.action, change.action)
    counts = [f"+{change.added}" if change.added else "", f"-{change.removed}" if change.removed else ""]
    lines = " ".join(count for count in counts if count)
    return f"{words} {clipped(change.path)}{came_from}{f' {lines}' if lines else ''}"


def _files(count: int) -> str:
    return f"{count:,} file{'s' if count != 1 else ''}"


def _listed(repositories: dict[str, int]) -> str:
    first, *more = repositories
    return f"{clipped(first)} and {len(more)} more repositories" if more else clipped(first)


def _folders(changes: Sequence[Change]) -> str:
    return f"{len(changes):,} folder{'s' if len(changes) != 1 else ''}"
