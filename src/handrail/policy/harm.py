"""Changes in the order in which people should see them: what may do harm first, what programs generate last."""

from handrail.policy.name_tables import GENERATED_ENDINGS, GENERATED_FILES, GENERATED_FOLDERS
from handrail.policy.names import find_protection, is_packaged
from handrail.policy.repository import is_new_object
from handrail.protocol.change import Change

_RUNS_AS_OWNER = 0o6000
_DELETED, _PROTECTED, _RUNNABLE, _OUTSIDE, _MODIFIED, _CREATED, _LAYOUT, _GENERATED = range(8)


def sort_by_harm(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Deletions, what steers tools, what can be run, links that lead out and files with other
    names; then what was modified and what is new; last
    what has another layout only, and what programs generate. In each, the order that they came in."""
    return tuple(changes[number] for number in rank_by_harm(changes))


def rank_by_harm(changes: tuple[Change, ...]) -> list[int]:
    """The same, as places in what was given."""
    moved = collect_moved_paths(changes)
    ranks = [_rank(change, moved) for change in changes]
    return sorted(range(len(changes)), key=ranks.__getitem__)


def collect_moved_paths(changes: tuple[Change, ...]) -> frozenset[str]:
    """The paths that are gone, and whose content is to be found under another name."""
    return frozenset(change.renamed_from for change in changes if change.renamed_from is not None)


def is_deletion(change: Change, moved: frozenset[str] = frozenset()) -> bool:
    """Whether something is gone that is nowhere else: deleted, or another kind of thing is in its place."""
    if change.action == "deleted":
        return change.path not in moved
    return change.replaces is not None and change.replaces != "folder"


def has_setid_bit(change: Change) -> bool:
    """Whether who runs it gets the rights of its owner or group; a folder with such a bit only hands its group on."""
    return change.kind == "file" and bool((change.mode or 0) & _RUNS_AS_OWNER)


def is_generated(path: str) -> bool:
    """Whether programs make and remove it, and nobody reads it: packages that were fetched, caches, compiled files."""
    *folders, name = path.lower().split("/")
    if name in GENERATED_FILES or name.endswith(GENERATED_ENDINGS):
        return True
    return name in GENERATED_FOLDERS or not GENERATED_FOLDERS.isdisjoint(folders)


def _rank(change: Change, moved: frozenset[str]) -> int:
    if is_new_object(change):
        return _GENERATED
    if any(
        find_protection(path) and not is_packaged(path) for path in (change.path, change.renamed_from or change.path)
    ):
        return _DELETED if is_deletion(change, moved) else _PROTECTED
    if has_setid_bit(change):
        return _RUNNABLE
    if is_generated(change.path):
        return _GENERATED
    return _ordinary(change, moved)


def _ordinary(change: Change, moved: frozenset[str]) -> int:
    if is_deletion(change, moved):
        return _DELETED
    if change.executable:
        return _RUNNABLE
    if change.outside or change.shared or change.read_only:
        return _OUTSIDE
    if change.layout_only:
        return _LAYOUT
    return _CREATED if change.action == "created" else _MODIFIED
