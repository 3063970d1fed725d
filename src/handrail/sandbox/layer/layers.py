"""The layers of one host: where they are kept, and whether one can lie over roots, found out by doing."""

import errno
import os
import time
from typing import NamedTuple
from weakref import WeakSet

from handrail.sandbox.host import Host
from handrail.sandbox.layer.fitness import file_system, mounts, shown, why_unfit
from handrail.sandbox.layer.layer import Layer, outermost
from handrail.sandbox.layer.mounting import Programs, find_programs
from handrail.sandbox.layer.places import Place, places_in_memory
from handrail.sandbox.layer.probe import wrong_with_layer
from handrail.sandbox.layer.remedies import cannot_be_mounted, no_programs
from handrail.sandbox.layer.removal import sweep
from handrail.sandbox.probing.remedies import Remedy
from handrail.sandbox.view.mounts import within

SECONDS_TO_BELIEVE = 60.0
"""How long layers count as not working: a disk may have been full, or the machine too busy."""
_ATTEMPTS = 5


class _Way(NamedTuple):
    """How layers are mounted over roots."""

    memory: Place | None
    """Where they are kept; None for the state folder."""
    own_users: bool


class _Broken(NamedTuple):
    remedy: Remedy
    until: float


_ways: dict[tuple[int, ...], _Way | _Broken] = {}
"""What was found out in this process, by what decides it: file systems, and who we are."""


def forget() -> None:
    """Lets go of what was found out: the machine has changed."""
    _ways.clear()


class Layers:
    """Makes layers, where they work. Any thread may ask: at worst two of them try the same."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._own = Place(os.path.join(host.state, "layers"))
        self._swept: set[str] = set()
        self._made: WeakSet[Layer] = WeakSet()

    def why_not(self, roots: tuple[str, ...]) -> Remedy | None:
        """Why no layer can lie over these roots, and what would help; None where one can."""
        programs = find_programs()
        if programs is None:
            return no_programs()
        if unfit := why_unfit(roots, mounts()):
            return Remedy(unfit, None)
        try:
            os.makedirs(self._own.folder, mode=0o700, exist_ok=True)
            way = self._way(outermost(roots), programs)
        except OSError as error:
            return Remedy(f"the state folder cannot be used ({error.strerror})", None)
        return way.remedy if isinstance(way, _Broken) else None

    def new(self, roots: tuple[str, ...], below: tuple[Layer, ...] = ()) -> Layer:
        """A new layer; OSError where it cannot be made. `why_not` has been asked about the same roots."""
        way = self._known(roots)
        place = (way.memory if way else None) or self._own
        for _ in range(_ATTEMPTS):
            folder = os.path.join(place.folder, os.urandom(8).hex())
            try:
                layer = Layer(folder, roots, below, own_users=way.own_users if way else None)
            except FileExistsError:  # somebody who sweeps was faster
                continue
            self._made.add(layer)
            return layer
        raise OSError(errno.EEXIST, f"no folder of ours stays in {shown(place.folder)}")

    def close(self) -> None:
        """Waits until those are gone that are about to be."""
        for layer in tuple(self._made):
            layer.wait()

    def most(self, roots: tuple[str, ...]) -> int | None:
        """How many bytes a layer over these roots can hold, where it is held in memory."""
        way = self._known(roots)
        return way.memory.most if way and way.memory else None

    def own_users(self, roots: tuple[str, ...]) -> bool:
        """Whether layers over these roots know one user and one group only."""
        way = self._known(roots)
        return way.own_users if way else os.geteuid() != 0

    def failed(self, layer: Layer, said: str) -> None:
        """Remembers that a layer could not be mounted, although it was believed to work."""
        roots = tuple(over.root for over in layer.overlaid)
        _ways[self._key(roots)] = self._broken(roots, said)

    def _known(self, roots: tuple[str, ...]) -> _Way | None:
        try:
            way = _ways.get(self._key(outermost(roots)))
        except OSError:  # a root is gone, which others say better
            return None
        return way if isinstance(way, _Way) else None

    def _key(self, roots: tuple[str, ...]) -> tuple[int, ...]:
        inside = self._root_around(self._own, roots) is not None
        devices = (os.stat(folder).st_dev for folder in (self._own.folder, *roots))
        return (os.geteuid(), inside, *devices)

    def _way(self, roots: tuple[str, ...], programs: Programs) -> _Way | _Broken:
        self._sweep(self._own)
        key = self._key(roots)
        way = _ways.get(key)
        if way is None or (isinstance(way, _Broken) and time.monotonic() >= way.until):
            way = _ways[key] = self._find(roots, programs)
        return way

    def _find(self, roots: tuple[str, ...], programs: Programs) -> _Way | _Broken:
        wrong = ""
        for place in (self._own, *places_in_memory(self._host.environ)):
            if around := self._root_around(place, roots):
                wrong = wrong or f"the folder for layers lies in {shown(around)}"
                continue
            self._sweep(place)
            for own_users in (False, True) if os.geteuid() == 0 else (True,):
                found = wrong_with_layer(place.folder, roots, programs, own_users=own_users)
                if found is None:
                    return _Way(None if place is self._own else place, own_users)
                wrong = wrong or found
        return self._broken(roots, wrong)

    def _root_around(self, place: Place, roots: tuple[str, ...]) -> str | None:
        return next((root for root in roots if within(place.folder, root)), None)

    def _broken(self, roots: tuple[str, ...], said: str) -> _Broken:
        mounted, state = mounts(), os.path.realpath(self._host.state)
        kinds = [(root, file_system(root, mounted)) for root in roots]
        remedy = cannot_be_mounted(said, state, file_system(state, mounted), kinds)
        return _Broken(remedy, time.monotonic() + SECONDS_TO_BELIEVE)

    def _sweep(self, place: Place) -> None:
        if place.folder not in self._swept:
            self._swept.add(place.folder)
            sweep(place.folder)
