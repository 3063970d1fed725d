"""Finds out what a command changed in its layer. The command is dead by then, and with it all that it started."""

import os
from collections.abc import Iterator

from handrail.changes.layered.comparing import Difference, UnkeptError, compare, why_unkept
from handrail.changes.layered.linking import Names
from handrail.changes.layered.places import holds, spelled
from handrail.changes.layered.telling import told
from handrail.changes.layered.trial import Examined
from handrail.changes.layered.walking import DEEPEST, SWAPPED, Met, Walk
from handrail.protocol.plain import readable
from handrail.sandbox.layer.clock import is_since
from handrail.sandbox.layer.layer import Layer, Overlaid
from handrail.store.change_log import Step
from handrail.workspace.other_names import File, other_names
from handrail.workspace.workspace import Workspace

_NAMED = 50
"""Paths that are named of those which cannot be kept."""


def examine(workspace: Workspace, layer: Layer) -> Examined:
    """What the command changed; what it only touched is no change. Diffs are made by `with_diffs`, where somebody is to
    see them."""
    looks = [_Look(workspace, layer, over) for over in layer.overlaid]
    found = [one for look in looks for one in look.differences()]
    steps = tuple(Step(os.fsencode(one.path), one.before, one.after) for one in found)
    return Examined(
        started=layer.started,
        steps=steps,
        manners=tuple(one.manner for one in found),
        changes=told(workspace, steps, found),
        diffs=("",) * len(steps),
        unkept=_shortened([words for look in looks for words in look.unkept]),
        outdated=tuple(os.fsencode(path) for look in looks for path in look.outdated),
    )


def listed(layer: Layer) -> Iterator[Met]:
    """Every path that a layer says something about, without a look at contents."""
    for over in layer.overlaid:
        yield from Walk(over).paths()


def _shortened(words: list[str]) -> tuple[str, ...]:
    """Those that somebody may read; of more it says how many."""
    more = len(words) - _NAMED
    return tuple(words) if more <= 0 else (*words[:_NAMED], f"and {more} more")


class _Look:
    """At what lies over one root."""

    def __init__(self, workspace: Workspace, layer: Layer, over: Overlaid) -> None:
        self._layer = layer
        self._start = spelled(workspace, over.root)
        self._walk = Walk(over, self._start)
        self._main = workspace.main.path if holds(over.root, workspace.main.path) else ""
        """The workspace, where it lies in the root."""
        self._over = over
        self.unkept: list[str] = []
        self.outdated: list[str] = []

    def differences(self) -> list[Difference]:
        """All of them, with paths as steps spell them."""
        names = Names()
        found: list[Difference] = []
        for found_there in self._walk.paths():
            met = self._spelled(found_there)
            names.note(met)
            one = self._compared(met)
            if one is not None:
                found.append(one)
        for path in self._walk.unreadable:
            self._leave(path, "it could not be looked into, so that its change cannot be taken back")
        for path in self._walk.too_deep:
            self._leave(path, f"what is in more than {DEEPEST} folders is not kept")
        self.outdated += self._walk.swapped
        if os.stat(self._over.upper).st_mode != os.stat(self._over.root).st_mode:
            self.unkept.append(f"{readable(self._over.root)}: the permissions of a root itself are not kept")
        if names.changed_without_name(self._over.work, found):
            self.unkept.append(
                "a file with several names was changed under one that is gone: the others stay as they were"
            )
        found = list(names.linked(found))
        return [*found, *self._written_through(names.written_through(found), {one.path for one in found})]

    def _written_through(self, files: dict[File, tuple[Difference, int]], known: set[str]) -> Iterator[Difference]:
        """Names that the command never touched, of files that it wrote to or gave another mode. The layer says nothing
        about these. Keeping writes through the file, so they are told, judged and taken back as well."""
        if files:
            for below, file in other_names(self._over.root, {file: count for file, (_, count) in files.items()}):
                path = self._start + below
                path = path[len(self._main) + 1 :] if self._in_main(path) else path
                if path not in known:
                    yield files[file][0]._replace(path=path)

    def _spelled(self, met: Met) -> Met:
        """With its path as steps spell it, also where the workspace lies in a larger root."""
        return met._replace(path=met.path[len(self._main) + 1 :]) if self._in_main(met.path) else met

    def _in_main(self, path: str) -> bool:
        return bool(self._main) and path.startswith(f"{self._main}/")

    def _compared(self, met: Met) -> Difference | None:
        reason = why_unkept(met)
        if reason is not None:
            self._leave(met.path, reason)
        try:
            one = compare(met, precise=self._layer.precise_links)
        except UnkeptError as error:
            self._leave(met.path, str(error))
            return None
        except OSError as error:
            if error.errno not in SWAPPED:
                raise
            self.outdated.append(met.path)
            return None
        if one is not None and met.path == self._main:
            self._leave(met.path, "the workspace itself is not changed")
            return None
        if one is not None and self._is_outdated(met, one):
            self.outdated.append(met.path)
        return one

    def _is_outdated(self, met: Met, one: Difference) -> bool:
        """Whether others changed beneath what the command was at."""
        started = self._layer.started
        if met.before is None:
            # It was taken up from beneath, so something was there; a file may have been renamed, a folder never is.
            is_folder = met.now is not None and met.now.is_folder
            return one.came_up and (is_folder or is_since(met.around, started))
        if met.now is not None and met.now.is_folder and met.before.is_folder:
            return False  # other permissions; what others add to the folder is no matter
        return is_since(met.before.status.st_ctime_ns, started)

    def _leave(self, path: str, reason: str) -> None:
        self.unkept.append(f"{readable(path)}: {reason}")
