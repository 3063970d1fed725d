"""The folder of a process session, read without asking its keeper."""

import contextlib
import os
from collections.abc import Generator, Iterator
from typing import Literal, NamedTuple, TypeVar

import msgspec

from handrail.kernel.files import is_locked
from handrail.kernel.procfs import find_process
from handrail.process.keeper.state import ASKED, CLEARED, END, LOG, RECORD, KeeperFolder, format_log_name
from handrail.protocol.records import ProcessRecord
from handrail.protocol.results import SandboxUsed
from handrail.protocol.wire import decode_json
from handrail.sandbox.overlay.overlay import Overlay
from handrail.store.state_dir import write_private
from handrail.workspace.resolve import closing_descriptor

NOTE = "layer"
_SETTLED = "settled"
_STOPPED = "its changes were dropped, since it was stopped early"
_READ_BYTES = 1 << 18

_Document = TypeVar("_Document")


class ProcessIdentity(NamedTuple):
    """Number and start time of a process. No other process has both."""

    number: int
    started: int


class KeeperRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Written by the keeper once the command runs."""

    v: int
    id: str
    command: str
    cwd: str
    session_id: str
    started: float
    boot: str
    keeper: ProcessIdentity
    program: ProcessIdentity
    first: ProcessIdentity
    own_processes: bool
    proxy: str | None = None


class _ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Written by the keeper once the command has ended."""

    v: int
    ended: float
    exit_code: int | None = None
    reason: str | None = None
    size: int = 0


class OverlayNote(msgspec.Struct, frozen=True):
    """Written by the runtime before the start of a command that runs in an overlay."""

    layer: str
    """The folder of the overlay."""
    call_id: str
    """The call that started the command."""
    sandbox: SandboxUsed

    def to_file(self) -> dict[str, str]:
        """The file for a new session's folder, by name."""
        return {NOTE: msgspec.json.encode(self).decode()}


def read_record(folder: str) -> KeeperRecord | None:
    """None: the command was not started."""
    return _read(folder, RECORD, KeeperRecord)


def read_end(folder: str) -> _ExitRecord | None:
    """None: the command runs, or its keeper was killed."""
    return _read(folder, END, _ExitRecord)


def read_note(folder: str) -> OverlayNote | None:
    """None: the command works on the real tree."""
    return _read(folder, NOTE, OverlayNote)


def _read(folder: str, name: str, kind: type[_Document]) -> _Document | None:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return decode_json(file.read(), kind)
    except (OSError, msgspec.DecodeError):
        return None


def read_state(folder: str) -> Literal["running", "ended", "lost"]:
    """The keeper holds the folder's lock as long as it lives, so no process number or clock is trusted."""
    if os.path.exists(os.path.join(folder, END)):
        return "ended"
    if is_locked(folder):
        return "running"
    return "ended" if os.path.exists(os.path.join(folder, END)) else "lost"  # it may have ended meanwhile


def is_alive(identity: ProcessIdentity) -> bool:
    found = find_process(identity.number) if identity.number else None
    return found is not None and found.started == identity.started and not found.dead


def is_settled(folder: str) -> bool:
    """Whether no changes are left to be committed or dropped."""
    return not os.path.exists(os.path.join(folder, NOTE)) or os.path.exists(os.path.join(folder, _SETTLED))


def read_settlement(folder: str) -> str | None:
    """The sentence that says what became of the changes. None: not settled, or nothing to settle."""
    try:
        with open(os.path.join(folder, _SETTLED), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def settle(folder: str, text: str) -> None:
    """Record what became of the changes, then remove the overlay."""
    write_private(os.path.join(folder, _SETTLED), text.encode(), ".new")
    remove_overlay(folder)


def drop_unfinished(folder: str, record: ProcessRecord) -> bool:
    """Drop the changes of a command that was stopped or lost. False: it runs, or ended by itself."""
    if record.state == "running" or (record.exit_code is not None and record.reason is None):
        return False
    settle(folder, _STOPPED)
    return True


def remove_overlay(folder: str) -> None:
    note = read_note(folder)
    if note is not None:
        with contextlib.suppress(OSError):
            overlay = Overlay.reclaim(note.layer)
            if overlay is not None:
                overlay.remove()


class ProcessLog:
    """The output of a process session. Its keeper may write meanwhile.

    Positions count all bytes from the first on, dropped ones included.
    """

    def __init__(self, folder: str) -> None:
        self._path = folder

    @property
    def size(self) -> int:
        """Bytes that were printed."""
        with _open_folder(self._path) as folder:
            return _find_size(folder, _list_parts(folder))

    @property
    def dropped(self) -> int:
        """Printed bytes that are not kept."""
        with _open_folder(self._path) as folder:
            parts = _list_parts(folder)
            cleared = _find_cleared(folder)
            kept = sum(part.end - max(part.begin, cleared) for part in parts if part.end > cleared)
            return _find_size(folder, parts) - kept

    def kept(self) -> Iterator[bytes]:
        """All output that is kept, in pieces."""
        position, size = 0, self.size
        while position < size:
            begin, data = self.read_from(position, min(_READ_BYTES, size - position))
            if not data or begin >= size:
                return
            yield data[: size - begin]
            position = begin + len(data)

    def read_from(self, position: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from a position, or from the next that is kept. Also where they begin."""
        with _open_folder(self._path) as folder:
            _mark_asked(folder)
            return _read_from(folder, position, limit)

    def last(self, limit: int) -> bytes:
        """The end of the output. This does not count as use."""
        with _open_folder(self._path) as folder:
            return _read_from(folder, max(0, _find_size(folder, _list_parts(folder)) - limit), limit)[1]

    def mark_asked(self) -> None:
        """The session is in use, so it is not idle."""
        with _open_folder(self._path) as folder:
            _mark_asked(folder)

    def clear(self) -> None:
        with _open_folder(self._path) as folder:
            parts = _list_parts(folder)
            KeeperFolder(folder).touch(f"{CLEARED}{_find_size(folder, parts):020d}")
            removable = parts[:-1] if is_locked(self._path) else parts  # the keeper may write to the last
            for name in (*(format_log_name(part.begin) for part in removable), *_list_names(folder, CLEARED)[:-1]):
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)


class _LogPart(NamedTuple):
    begin: int
    end: int


@contextlib.contextmanager
def _open_folder(path: str) -> Generator[int]:
    """A removed folder is an empty one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open("/proc/self/fdinfo", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    with closing_descriptor(descriptor):
        yield descriptor


def _read_from(folder: int, position: int, limit: int) -> tuple[int, bytes]:
    """Bytes of parts without a gap between, and where they begin."""
    parts = _list_parts(folder)
    start, data = max(position, _find_cleared(folder)), b""
    for part in (part for part in parts if part.end > start):
        if len(data) >= limit or (data and part.begin > start + len(data)):
            return start, data
        start = start if data else max(start, part.begin)
        with contextlib.suppress(FileNotFoundError):  # dropped a moment ago: the next may be there
            data += _read_part(folder, part, start + len(data), limit - len(data))
    return (start, data) if data else (max(position, _find_size(folder, parts)), b"")


def _read_part(folder: int, part: _LogPart, start: int, limit: int) -> bytes:
    name = format_log_name(part.begin)
    with closing_descriptor(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)) as descriptor:
        return os.pread(descriptor, min(limit, part.end - start), start - part.begin)


def _list_parts(folder: int) -> list[_LogPart]:
    parts: list[_LogPart] = []
    for name in _list_names(folder, LOG):
        with contextlib.suppress(OSError):
            begin = int(name.removeprefix(LOG))
            parts.append(_LogPart(begin, begin + os.stat(name, dir_fd=folder).st_size))
    return parts


def _find_size(folder: int, parts: list[_LogPart]) -> int:
    """The exit record has it. Before, it is the end of the last part, or what was cleared."""
    end = read_end(f"/proc/self/fd/{folder}")
    return max(end.size if end else 0, _find_cleared(folder), parts[-1].end if parts else 0)


def _find_cleared(folder: int) -> int:
    names = _list_names(folder, CLEARED)
    return int(names[-1].removeprefix(CLEARED)) if names else 0


def _list_names(folder: int, prefix: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(prefix))


def _mark_asked(folder: int) -> None:
    with contextlib.suppress(OSError):
        os.utime(ASKED, dir_fd=folder)
