"""The overlays of one host, in a folder that works for its roots."""

import contextlib
import errno
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple
from weakref import WeakSet

from handrail.kernel.files import lock_folder
from handrail.sandbox.diagnosis import Diagnosis, clip_path_start, diagnose_mount_failure
from handrail.sandbox.overlay.overlay import Overlay, drop_nested_roots, find_programs, is_owned, remove_folder
from handrail.sandbox.probe import probe_overlay
from handrail.sandbox.profile import SandboxHost
from handrail.workspace.roots import is_inside

SECONDS_TO_BELIEVE = 60.0
"""A failure counts as long. The cause may pass: a full disk, a busy machine."""
_MAX_ATTEMPTS = 5
_MIN_MEMORY_BYTES = 32 << 20
_MOUNT_TABLE = "/proc/self/mountinfo"
_ESCAPES = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}


class OverlayFolder(NamedTuple):
    folder: str
    in_memory: bool = False

    @property
    def free_bytes(self) -> int | None:
        """None for a folder on disk."""
        if not self.in_memory:
            return None
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize


class _OverlayMethod(NamedTuple):
    """A way to mount overlays that works."""

    memory: OverlayFolder | None
    """None for the state folder."""
    in_user_namespace: bool


class _OverlayFailure(NamedTuple):
    diagnosis: Diagnosis
    until: float


_results: dict[tuple[int, ...], _OverlayMethod | _OverlayFailure] = {}
"""The results of probes in this process, by user and file systems."""


def forget() -> None:
    """Forget the results of probes: the machine has changed."""
    _results.clear()


class OverlayPool:
    """Makes overlays. Threads may share it: at worst two of them probe the same."""

    def __init__(self, host: SandboxHost) -> None:
        self._host = host
        self._state = OverlayFolder(os.path.join(host.state, "layers"))
        self._swept: set[str] = set()
        self._made: WeakSet[Overlay] = WeakSet()

    def find_obstacle(self, roots: tuple[str, ...]) -> Diagnosis | None:
        """Why no overlay can lie over these roots. Probes if needed."""
        if find_programs() is None:
            return Diagnosis("the programs unshare and mount (of util-linux) are not installed", None)
        if obstacle := find_overlay_obstacle(roots, read_mounts()):
            return Diagnosis(obstacle, None)
        try:
            os.makedirs(self._state.folder, mode=0o700, exist_ok=True)
            result = self._find_result(drop_nested_roots(roots))
        except OSError as error:
            return Diagnosis(f"the state folder cannot be used ({error.strerror})", None)
        return result.diagnosis if isinstance(result, _OverlayFailure) else None

    def create(self, roots: tuple[str, ...], below: tuple[Overlay, ...] = ()) -> Overlay:
        """A new overlay, after `find_obstacle` found none. OSError if it cannot be made."""
        method = self._find_method(roots)
        place = (method.memory if method else None) or self._state
        for _ in range(_MAX_ATTEMPTS):
            folder = os.path.join(place.folder, os.urandom(8).hex())
            try:
                overlay = Overlay(folder, roots, below, in_user_namespace=method.in_user_namespace if method else None)
            except FileExistsError:  # another process swept it
                continue
            self._made.add(overlay)
            return overlay
        raise OSError(errno.EEXIST, f"handrail's folder does not stay in {clip_path_start(place.folder)}")

    def close(self) -> None:
        """Wait for the overlays that are being removed."""
        for overlay in tuple(self._made):
            overlay.wait()

    def max_bytes(self, roots: tuple[str, ...]) -> int | None:
        """The room of an overlay that is held in memory. None on disk."""
        method = self._find_method(roots)
        return method.memory.free_bytes if method and method.memory else None

    def in_user_namespace(self, roots: tuple[str, ...]) -> bool:
        """Whether overlays over these roots know only one user and one group."""
        method = self._find_method(roots)
        return method.in_user_namespace if method else os.geteuid() != 0

    def note_failure(self, overlay: Overlay, error: str) -> None:
        roots = tuple(mount.root for mount in overlay.overlaid)
        _results[self._build_key(roots)] = self._build_failure(roots, error)

    def _find_method(self, roots: tuple[str, ...]) -> _OverlayMethod | None:
        try:
            result = _results.get(self._build_key(drop_nested_roots(roots)))
        except OSError:  # a root is gone, which is reported elsewhere
            return None
        return result if isinstance(result, _OverlayMethod) else None

    def _find_result(self, roots: tuple[str, ...]) -> _OverlayMethod | _OverlayFailure:
        self._sweep_once(self._state.folder)
        key = self._build_key(roots)
        result = _results.get(key)
        if result is None or (isinstance(result, _OverlayFailure) and time.monotonic() >= result.until):
            result = _results[key] = self._probe(roots)
        return result

    def _build_key(self, roots: tuple[str, ...]) -> tuple[int, ...]:
        is_in_root = _find_root_around(self._state.folder, roots) is not None
        devices = (os.stat(folder).st_dev for folder in (self._state.folder, *roots))
        return (os.geteuid(), is_in_root, *devices)

    def _probe(self, roots: tuple[str, ...]) -> _OverlayMethod | _OverlayFailure:
        fault = ""
        for place in (self._state, *list_memory_folders(self._host.environ)):
            if root := _find_root_around(place.folder, roots):
                fault = fault or f"the folder for overlays is in {clip_path_start(root)}"
                continue
            self._sweep_once(place.folder)
            for in_user_namespace in (False, True) if os.geteuid() == 0 else (True,):
                error = probe_overlay(place.folder, roots, in_user_namespace=in_user_namespace)
                if error is None:
                    return _OverlayMethod(place if place.in_memory else None, in_user_namespace)
                fault = fault or error
        return self._build_failure(roots, fault)

    def _build_failure(self, roots: tuple[str, ...], error: str) -> _OverlayFailure:
        mounts, state = read_mounts(), os.path.realpath(self._host.state)
        kinds = [(root, find_file_system(root, mounts)) for root in roots]
        diagnosis = diagnose_mount_failure(error, state, find_file_system(state, mounts), kinds)
        return _OverlayFailure(diagnosis, time.monotonic() + SECONDS_TO_BELIEVE)

    def _sweep_once(self, folder: str) -> None:
        if folder not in self._swept:
            self._swept.add(folder)
            sweep(folder)


def sweep(folder: str) -> None:
    """Remove the overlays that killed processes left in a folder."""
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


def _find_root_around(folder: str, roots: tuple[str, ...]) -> str | None:
    return next((root for root in roots if is_inside(folder, root)), None)


def list_memory_folders(environ: Mapping[str, str]) -> Iterator[OverlayFolder]:
    """Private folders in memory with enough room, the best first. Makes them if needed."""
    for memory in (environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108  handrail's folder in it is private
        place = OverlayFolder(os.path.join(memory, f"handrail-layers-{os.geteuid()}"), in_memory=True)
        if os.path.isabs(memory) and _is_private(place.folder) and (place.free_bytes or 0) >= _MIN_MEMORY_BYTES:
            yield place


def _is_private(folder: str) -> bool:
    try:
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


class MountPoint(NamedTuple):
    """One line of the kernel's mount table."""

    place: str
    kind: str


def find_overlay_obstacle(roots: Iterable[str], mounts: Iterable[MountPoint]) -> str | None:
    """What in the mount table or in the permissions rules out an overlay over the roots."""
    starts = {root: f"{root.rstrip('/')}/" for root in roots}
    for mount in mounts:
        for root, start in starts.items():
            if mount.place.startswith(start) and mount.place != root:
                name = f"{clip_path_start(mount.place.removeprefix(start))} in {clip_path_start(root)}"
                return f"{name} is a mount of its own, which would be missing under an overlay"
    return next((reason for root in starts if (reason := _find_write_obstacle(root))), None)


def _find_write_obstacle(root: str) -> str | None:
    try:
        is_read_only = os.statvfs(root).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"{clip_path_start(root)} cannot be checked ({error.strerror})"
    if is_read_only:
        return f"{clip_path_start(root)} is on a file system that is mounted read-only"
    if not os.access(root, os.W_OK | os.X_OK):
        return f"{clip_path_start(root)} is a folder that this user cannot write to"
    return None


def find_file_system(folder: str, mounts: Iterable[MountPoint]) -> str:
    """The name of the file system of a folder. Of several mounts at one place the last one counts."""
    around = [mount for mount in mounts if is_inside(folder, mount.place)]
    return max(reversed(around), key=lambda mount: len(mount.place)).kind if around else "an unknown file system"


def read_mounts() -> tuple[MountPoint, ...]:
    """All mounts, in the order in which they were made."""
    with open(_MOUNT_TABLE, encoding="utf-8", errors="surrogateescape") as table:
        return tuple(map(_parse_mount, table.read().splitlines()))


def _parse_mount(line: str) -> MountPoint:
    words = line.split(" ")
    place = words[4]
    if "\\" in place:
        for escape, character in _ESCAPES.items():
            place = place.replace(escape, character)
    return MountPoint(place, words[words.index("-") + 1])
