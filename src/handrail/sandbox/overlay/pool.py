"""Where overlays are kept, and whether one can lie over the roots."""

import contextlib
import errno
import os
import select
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TextIO
from weakref import WeakSet

from handrail.sandbox.diagnosis import Diagnosis, diagnose_namespace_failure
from handrail.sandbox.mounts import is_within
from handrail.sandbox.overlay.cleanup import remove_folder
from handrail.sandbox.overlay.overlay import Overlay, Programs, drop_nested_roots, find_programs, is_owned
from handrail.sandbox.probe import probe_overlay
from handrail.sandbox.profile import SandboxHost
from handrail.store.state_dir import lock_folder

# § [sandbox.layer.fitness] Whether an overlay can lie over folders here, by what the table of mounts says of them.

_TABLE = "/proc/self/mountinfo"
_ESCAPED = {"\\040": " ", "\\011": "\t", "\\012": "\n", "\\134": "\\"}
_MAX_PATH_CHARACTERS = 200


class MountPoint(NamedTuple):
    """One mount."""

    place: str
    kind: str
    """The name of the file system."""


def read_mounts() -> tuple[MountPoint, ...]:
    """All of them, in the order in which they were made."""
    return _table.read()


def find_overlay_obstacle(roots: Iterable[str], mounted: Iterable[MountPoint]) -> str | None:
    """What of the roots speaks against an overlay over them, in words; None where nothing does."""
    starts = {root: f"{root.rstrip('/')}/" for root in roots}
    for mount in mounted:
        for root, start in starts.items():
            if mount.place.startswith(start) and mount.place != root:
                inside = keep_path_end(mount.place.removeprefix(start))
                return (
                    f"{inside} in {keep_path_end(root)} is a mount of its own, which would be missing under an overlay"
                )
    return next((why for root in starts if (why := _why_not_written(root))), None)


def find_file_system(folder: str, mounted: Iterable[MountPoint]) -> str:
    """The name of the file system that a folder is on."""
    found = [mount for mount in mounted if folder == mount.place or folder.startswith(f"{mount.place.rstrip('/')}/")]
    longest = max(found, key=lambda mount: len(mount.place), default=MountPoint("/", "an unknown file system"))
    # Of several at one place the last lies on top.
    return next(mount.kind for mount in reversed((longest, *found)) if mount.place == longest.place)


def keep_path_end(path: str) -> str:
    """The path on one line, or its last 200 characters. Unlike `clip_path`, it escapes only newlines and surrogates."""
    text = path.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    return text if len(text) <= _MAX_PATH_CHARACTERS else f"…{text[-_MAX_PATH_CHARACTERS:]}"


def _why_not_written(root: str) -> str | None:
    try:
        read_only = os.statvfs(root).f_flag & os.ST_RDONLY
    except OSError as error:
        return f"{keep_path_end(root)} cannot be looked at ({error.strerror})"
    if read_only:
        return f"{keep_path_end(root)} is on a file system that is mounted read-only"
    return (
        None
        if os.access(root, os.W_OK | os.X_OK)
        else f"{keep_path_end(root)} is a folder that this user cannot write to"
    )


def _read(line: str) -> MountPoint:
    words = line.split(" ")
    place = words[4]
    if "\\" in place:
        for escaped, character in _ESCAPED.items():
            place = place.replace(escaped, character)
    return MountPoint(place, words[words.index("-") + 1])


class _Table:
    """The table of mounts, read anew only where the kernel says that it changed: every command asks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._file: TextIO | None = None
        self._changes = select.poll()
        self._process = 0
        self._mounts: tuple[MountPoint, ...] = ()

    def read(self) -> tuple[MountPoint, ...]:
        with self._lock:
            # Who was forked shares the file with its parent, and either would be told of a change that the other saw.
            if self._file is None or self._process != os.getpid():
                self._open()
            if self._changes.poll(0) or not self._mounts:
                self._mounts = self._all()
            return self._mounts

    def _open(self) -> None:
        self._file = open(_TABLE, encoding="utf-8", errors="surrogateescape")  # noqa: SIM115  kept open to be asked
        self._changes = select.poll()
        self._changes.register(self._file, select.POLLPRI)
        self._process, self._mounts = os.getpid(), ()

    def _all(self) -> tuple[MountPoint, ...]:
        if self._file is None:
            return ()
        self._file.seek(0)
        return tuple(map(_read, self._file.read().splitlines()))


_table = _Table()


# § [sandbox.layer.places] Where overlays are stored: in the state folder, or in memory where its file system cannot
# § take in what is changed.

_MIN_MEMORY_BYTES = 32 << 20
"""Bytes of memory that a place must have to spare."""


class OverlayFolder(NamedTuple):
    """A folder for overlays."""

    folder: str
    in_memory: bool = False

    @property
    def max_bytes(self) -> int | None:
        """How many bytes fit in there yet, where that is not for the disk to say."""
        if not self.in_memory:
            return None
        status = os.statvfs(self.folder)
        return status.f_bavail * status.f_frsize


def list_memory_folders(environ: Mapping[str, str]) -> Iterator[OverlayFolder]:
    """Folders in memory that overlays may be stored in, the best first; made where they are not there."""
    for memory in (environ.get("XDG_RUNTIME_DIR", ""), "/dev/shm"):  # noqa: S108  our folder in it is for us alone
        place = OverlayFolder(os.path.join(memory, f"handrail-layers-{os.geteuid()}"), in_memory=True)
        if os.path.isabs(memory) and _is_ours(place.folder) and (place.max_bytes or 0) >= _MIN_MEMORY_BYTES:
            yield place


def _is_ours(folder: str) -> bool:
    try:
        if not os.path.lexists(folder):
            os.mkdir(folder, 0o700)
        status = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077


# § [sandbox.layer.remedies] Why no overlay can be had here, and the one command that would help.

_NO_UPPER = frozenset({"overlay", "nfs", "nfs4", "cifs", "smb3", "vfat", "exfat", "9p", "fuse", "fuseblk", "virtiofs"})
"""File systems that are known not to take in what is changed."""
_NO_LOWER = frozenset({"vfat", "exfat", "ntfs", "ntfs3", "ecryptfs", "hfsplus"})
"""File systems that are known not to lie under an overlay."""
_ELSEWHERE = "export HANDRAIL_STATE_DIR=/var/tmp/handrail-state"


def diagnose_missing_programs() -> Diagnosis:
    """Where what mounts is missing."""
    return Diagnosis("the programs unshare and mount (of util-linux) are not installed", None)


def diagnose_mount_failure(said: str, state: str, kind: str, roots: list[tuple[str, str]]) -> Diagnosis:
    """Where it was tried in vain; `said` is what was seen or printed, `kind` the state folder's file system, and each
    root has its own."""
    if "unshare" in said:
        return diagnose_namespace_failure(said)
    for root, other in roots:
        if other in _NO_LOWER:
            return Diagnosis(f"{keep_path_end(root)} is on {other}, over which no overlay can lie ({said})", None)
    if kind in _NO_UPPER or kind.startswith("fuse."):
        where = f"the state folder {keep_path_end(state)} is on {kind}, which cannot take in what an overlay holds"
        return Diagnosis(f"{where}, and no other place can ({said})", _ELSEWHERE)
    if os.path.exists("/proc/sys") and "overlay" not in _known():
        return Diagnosis(f"the kernel has no overlayfs ({said})", "modprobe overlay" if os.geteuid() == 0 else None)
    return Diagnosis(f"overlays do not work here ({said})", None)


def _known() -> str:
    try:
        with open("/proc/filesystems", encoding="ascii") as file:
            return file.read()
    except OSError:
        return "overlay"


# § [sandbox.layer.layers] The overlays of one host: where they are stored, and whether one can lie over roots,
# § found out by doing.

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
