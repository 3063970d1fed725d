"""Finds out what a command changed in its overlay. The command is dead by then, and with it all that it started."""

import os
from collections.abc import Iterator

from handrail.changes.layered.comparing import (
    OverlayDifference,
    UnsupportedEntryError,
    compare_entry,
    find_unsupported_reason,
)
from handrail.changes.layered.linking import HardLinks
from handrail.changes.layered.places import build_path_prefix, is_ancestor
from handrail.changes.layered.telling import describe_changes
from handrail.changes.layered.trial import OverlayChanges
from handrail.changes.layered.walking import MAX_OVERLAY_DEPTH, SWAPPED_ERRNOS, OverlayEntry, OverlayWalk
from handrail.protocol.wire import escape_surrogates
from handrail.sandbox.layer.clock import is_changed_since
from handrail.sandbox.layer.layer import Overlay, OverlayMount
from handrail.store.change_log import Step
from handrail.workspace.directory import list_hard_links
from handrail.workspace.file_state import FileId
from handrail.workspace.workspace import Workspace

_MAX_NAMED_PATHS = 50
"""How many paths are named of those that cannot be committed."""


def examine(workspace: Workspace, overlay: Overlay) -> OverlayChanges:
    """What the command changed; what it only touched is no change. Diffs are made by `with_diffs`, where somebody is to
    see them."""
    looks = [_RootExamination(workspace, overlay, over) for over in overlay.overlaid]
    found = [one for look in looks for one in look.differences()]
    steps = tuple(Step(os.fsencode(one.path), one.before, one.after) for one in found)
    return OverlayChanges(
        started=overlay.started,
        steps=steps,
        manners=tuple(one.placement for one in found),
        changes=describe_changes(workspace, steps, found),
        diffs=("",) * len(steps),
        unkept=_shortened([words for look in looks for words in look.unkept]),
        outdated=tuple(os.fsencode(path) for look in looks for path in look.outdated),
    )


def list_overlay_entries(overlay: Overlay) -> Iterator[OverlayEntry]:
    """Every path that an overlay says something about, without a look at contents."""
    for over in overlay.overlaid:
        yield from OverlayWalk(over).paths()


def _shortened(words: list[str]) -> tuple[str, ...]:
    """Those that somebody may read; of more it says how many."""
    more = len(words) - _MAX_NAMED_PATHS
    return tuple(words) if more <= 0 else (*words[:_MAX_NAMED_PATHS], f"and {more} more")


class _RootExamination:
    """At what lies over one root."""

    def __init__(self, workspace: Workspace, overlay: Overlay, over: OverlayMount) -> None:
        self._overlay = overlay
        self._start = build_path_prefix(workspace, over.root)
        self._walk = OverlayWalk(over, self._start)
        self._main = workspace.main.path if is_ancestor(over.root, workspace.main.path) else ""
        """The workspace, where it lies in the root."""
        self._over = over
        self.unkept: list[str] = []
        self.outdated: list[str] = []

    def differences(self) -> list[OverlayDifference]:
        """All of them, with paths as steps spell them."""
        names = HardLinks()
        found: list[OverlayDifference] = []
        for found_there in self._walk.paths():
            met = self._spelled(found_there)
            names.note(met)
            one = self._compared(met)
            if one is not None:
                found.append(one)
        for path in self._walk.unreadable:
            self._leave(path, "it could not be looked into, so that its change cannot be taken back")
        for path in self._walk.too_deep:
            self._leave(path, f"what is in more than {MAX_OVERLAY_DEPTH} folders is not kept")
        self.outdated += self._walk.swapped
        if os.stat(self._over.upper).st_mode != os.stat(self._over.root).st_mode:
            self.unkept.append(f"{escape_surrogates(self._over.root)}: the permissions of a root itself are not kept")
        if names.changed_without_name(self._over.work, found):
            self.unkept.append(
                "a file with several names was changed under one that is gone: the others stay as they were"
            )
        found = list(names.linked(found))
        return [*found, *self._written_through(names.written_through(found), {one.path for one in found})]

    def _written_through(
        self, files: dict[FileId, tuple[OverlayDifference, int]], known: set[str]
    ) -> Iterator[OverlayDifference]:
        """Names that the command never touched, of files that it wrote to or gave another mode. The overlay says
        nothing about these. A commit writes through the file, so they are listed, judged and undone as well."""
        if files:
            for below, file in list_hard_links(self._over.root, {file: count for file, (_, count) in files.items()}):
                path = self._start + below
                path = path[len(self._main) + 1 :] if self._in_main(path) else path
                if path not in known:
                    yield files[file][0]._replace(path=path)

    def _spelled(self, met: OverlayEntry) -> OverlayEntry:
        """With its path as steps spell it, also where the workspace lies in a larger root."""
        return met._replace(path=met.path[len(self._main) + 1 :]) if self._in_main(met.path) else met

    def _in_main(self, path: str) -> bool:
        return bool(self._main) and path.startswith(f"{self._main}/")

    def _compared(self, met: OverlayEntry) -> OverlayDifference | None:
        reason = find_unsupported_reason(met)
        if reason is not None:
            self._leave(met.path, reason)
        try:
            one = compare_entry(met, precise=self._overlay.tracks_hard_links)
        except UnsupportedEntryError as error:
            self._leave(met.path, str(error))
            return None
        except OSError as error:
            if error.errno not in SWAPPED_ERRNOS:
                raise
            self.outdated.append(met.path)
            return None
        if one is not None and met.path == self._main:
            self._leave(met.path, "the workspace itself is not changed")
            return None
        if one is not None and self._is_outdated(met, one):
            self.outdated.append(met.path)
        return one

    def _is_outdated(self, met: OverlayEntry, one: OverlayDifference) -> bool:
        """Whether others changed beneath what the command was at."""
        started = self._overlay.started
        if met.lower is None:
            # It was taken up from beneath, so something was there; a file may have been renamed, a folder never is.
            is_folder = met.upper is not None and met.upper.is_folder
            return one.came_up and (is_folder or is_changed_since(met.parent_ctime, started))
        if met.upper is not None and met.upper.is_folder and met.lower.is_folder:
            return False  # other permissions; what others add to the folder is no matter
        return is_changed_since(met.lower.status.st_ctime_ns, started)

    def _leave(self, path: str, reason: str) -> None:
        self.unkept.append(f"{escape_surrogates(path)}: {reason}")
