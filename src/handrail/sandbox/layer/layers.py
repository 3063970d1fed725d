"""The overlays of one host: where they are stored, and whether one can lie over roots, found out by doing."""

import contextlib
import errno
import os
import time
from typing import NamedTuple
from weakref import WeakSet

from handrail.sandbox.host import SandboxHost
from handrail.sandbox.layer.fitness import find_file_system, find_overlay_obstacle, keep_path_end, read_mounts
from handrail.sandbox.layer.layer import Overlay, drop_nested_roots
from handrail.sandbox.layer.mounting import Programs, find_programs
from handrail.sandbox.layer.owner import is_owned
from handrail.sandbox.layer.places import OverlayFolder, list_memory_folders
from handrail.sandbox.layer.probe import probe_overlay
from handrail.sandbox.layer.remedies import diagnose_missing_programs, diagnose_mount_failure
from handrail.sandbox.layer.removal import remove_folder
from handrail.sandbox.probing.remedies import Diagnosis
from handrail.sandbox.view.mounts import is_within
from handrail.store.state_dir import lock_folder

SECONDS_TO_BELIEVE = 60.0
"""How long overlays count as not working: a disk may have been full, or the machine too busy."""
_MAX_ATTEMPTS = 5


class _OverlayMethod(NamedTuple):
    """How overlays are mounted over roots."""

    memory: OverlayFolder | None
    """Where they are stored; None for the state folder."""
    in_user_namespace: bool


class _Broken(NamedTuple):
    remedy: Diagnosis
    until: float


_ways: dict[tuple[int, ...], _OverlayMethod | _Broken] = {}
"""What was found out in this process, by what decides it: file systems, and who we are."""


def forget() -> None:
    """Lets go of what was found out: the machine has changed."""
    _ways.clear()


class OverlayPool:
    """Makes overlays, where they work. Any thread may ask: at worst two of them try the same."""

    def __init__(self, host: SandboxHost) -> None:
        self._host = host
        self._own = OverlayFolder(os.path.join(host.state, "layers"))
        self._swept: set[str] = set()
        self._made: WeakSet[Overlay] = WeakSet()

    def find_obstacle(self, roots: tuple[str, ...]) -> Diagnosis | None:
        """Why no overlay can lie over these roots, and what would help; None where one can."""
        programs = find_programs()
        if programs is None:
            return diagnose_missing_programs()
        if unfit := find_overlay_obstacle(roots, read_mounts()):
            return Diagnosis(unfit, None)
        try:
            os.makedirs(self._own.folder, mode=0o700, exist_ok=True)
            way = self._way(drop_nested_roots(roots), programs)
        except OSError as error:
            return Diagnosis(f"the state folder cannot be used ({error.strerror})", None)
        return way.remedy if isinstance(way, _Broken) else None

    def new(self, roots: tuple[str, ...], below: tuple[Overlay, ...] = ()) -> Overlay:
        """A new overlay; OSError where it cannot be made. `why_not` has been asked about the same roots."""
        way = self._known(roots)
        place = (way.memory if way else None) or self._own
        for _ in range(_MAX_ATTEMPTS):
            folder = os.path.join(place.folder, os.urandom(8).hex())
            try:
                overlay = Overlay(folder, roots, below, in_user_namespace=way.in_user_namespace if way else None)
            except FileExistsError:  # somebody who sweeps was faster
                continue
            self._made.add(overlay)
            return overlay
        raise OSError(errno.EEXIST, f"no folder of ours stays in {keep_path_end(place.folder)}")

    def close(self) -> None:
        """Waits until those are gone that are about to be."""
        for overlay in tuple(self._made):
            overlay.wait()

    def max_bytes(self, roots: tuple[str, ...]) -> int | None:
        """How many bytes an overlay over these roots can hold, where it is held in memory."""
        way = self._known(roots)
        return way.memory.max_bytes if way and way.memory else None

    def in_user_namespace(self, roots: tuple[str, ...]) -> bool:
        """Whether overlays over these roots know one user and one group only."""
        way = self._known(roots)
        return way.in_user_namespace if way else os.geteuid() != 0

    def failed(self, overlay: Overlay, said: str) -> None:
        """Remembers that an overlay could not be mounted, although it was believed to work."""
        roots = tuple(over.root for over in overlay.overlaid)
        _ways[self._key(roots)] = self._broken(roots, said)

    def _known(self, roots: tuple[str, ...]) -> _OverlayMethod | None:
        try:
            way = _ways.get(self._key(drop_nested_roots(roots)))
        except OSError:  # a root is gone, which others say better
            return None
        return way if isinstance(way, _OverlayMethod) else None

    def _key(self, roots: tuple[str, ...]) -> tuple[int, ...]:
        inside = self._root_around(self._own, roots) is not None
        devices = (os.stat(folder).st_dev for folder in (self._own.folder, *roots))
        return (os.geteuid(), inside, *devices)

    def _way(self, roots: tuple[str, ...], programs: Programs) -> _OverlayMethod | _Broken:
        self._sweep(self._own)
        key = self._key(roots)
        way = _ways.get(key)
        if way is None or (isinstance(way, _Broken) and time.monotonic() >= way.until):
            way = _ways[key] = self._find(roots, programs)
        return way

    def _find(self, roots: tuple[str, ...], programs: Programs) -> _OverlayMethod | _Broken:
        wrong = ""
        for place in (self._own, *list_memory_folders(self._host.environ)):
            if around := self._root_around(place, roots):
                wrong = wrong or f"the folder for overlays lies in {keep_path_end(around)}"
                continue
            self._sweep(place)
            for in_user_namespace in (False, True) if os.geteuid() == 0 else (True,):
                found = probe_overlay(place.folder, roots, programs, in_user_namespace=in_user_namespace)
                if found is None:
                    return _OverlayMethod(None if place is self._own else place, in_user_namespace)
                wrong = wrong or found
        return self._broken(roots, wrong)

    def _root_around(self, place: OverlayFolder, roots: tuple[str, ...]) -> str | None:
        return next((root for root in roots if is_within(place.folder, root)), None)

    def _broken(self, roots: tuple[str, ...], said: str) -> _Broken:
        mounted, state = read_mounts(), os.path.realpath(self._host.state)
        kinds = [(root, find_file_system(root, mounted)) for root in roots]
        remedy = diagnose_mount_failure(said, state, find_file_system(state, mounted), kinds)
        return _Broken(remedy, time.monotonic() + SECONDS_TO_BELIEVE)

    def _sweep(self, place: OverlayFolder) -> None:
        if place.folder not in self._swept:
            self._swept.add(place.folder)
            sweep(place.folder)


def sweep(folder: str) -> None:
    """Removes the overlays in a folder that nobody has any more."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            _remove_abandoned(os.path.join(folder, name))


def _remove_abandoned(overlay: str) -> None:
    descriptor = lock_folder(overlay)
    if descriptor < 0:
        return
    try:
        with contextlib.suppress(OSError):
            if not is_owned(overlay):
                remove_folder(overlay)
    finally:
        os.close(descriptor)
