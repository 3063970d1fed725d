"""Reads the folder of a process session."""

import contextlib
import fcntl
import os
import time
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple, TypeVar

import msgspec

from handrail.kernel.procfs import ProcessStat, find_process, list_descendants, read_entry
from handrail.process.keeper.state import (
    ASKED,
    BOOT,
    CLEARED,
    END,
    LOG,
    RECORD,
    format_log_name,
    make_empty,
    read_json,
    write_end,
)
from handrail.process.tree import ProcessHandle
from handrail.protocol.records import ProcessRecord, ProcessState
from handrail.protocol.results import SandboxUsed
from handrail.protocol.wire import decode_json
from handrail.sandbox.overlay.overlay import reclaim
from handrail.sandbox.proxy.handover import PORT
from handrail.store.state_dir import is_locked

# § [process.sessions.known] What is known of a process session from its folder, without asking its keeper.

_Kind = TypeVar("_Kind")


class ProcessIdentity(NamedTuple):
    """A process so that it cannot be taken for another: by its number and since when it runs."""

    number: int
    started: int


class KeeperRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper writes down when it begins."""

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


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """And when it ends."""

    v: int
    ended: float
    exit_code: int | None = None
    reason: str | None = None
    size: int = 0


def read_record(folder: str) -> KeeperRecord | None:
    """None where there is none: it is not started yet, or never was."""
    return _read_record_file(os.path.join(folder, RECORD), KeeperRecord)


def read_end(folder: str) -> ExitRecord | None:
    """None where it runs, or its keeper was killed."""
    return _read_record_file(os.path.join(folder, END), ExitRecord)


def read_state(folder: str) -> ProcessState:
    """A keeper holds the lock of its folder as long as it lives: no number can be another's, no clock wrong."""
    if os.path.exists(os.path.join(folder, END)):
        return "ended"
    if has_keeper(folder):
        return "running"
    return "ended" if os.path.exists(os.path.join(folder, END)) else "lost"  # it may have ended meanwhile


def has_keeper(folder: str) -> bool:
    """Whether its keeper, or who is just starting one, lives."""
    return is_locked(folder)


def read_boot_id() -> str:
    """What no other start of the machine has: numbers of processes mean something only together with it."""
    with open(BOOT, encoding="ascii") as file:
        return file.read().strip()


def _read_record_file(path: str, kind: type[_Kind]) -> _Kind | None:
    try:
        with open(path, "rb") as file:
            return decode_json(file.read(), kind)
    except (OSError, msgspec.DecodeError):
        return None


# § [process.sessions.log] The log of a process session, read from its files; whoever writes them may go on
# § meanwhile.

_PIECE_BYTES = 1 << 18


class _LogPart(NamedTuple):
    begin: int
    end: int


class ProcessLog:
    """What a process session has printed. Positions count all bytes from the first on, also those that are dropped."""

    def __init__(self, folder: str) -> None:
        self._path = folder

    @property
    def size(self) -> int:
        """Bytes that it has printed."""
        with _opened(self._path) as folder:
            return _size(folder, _parts(folder))

    @property
    def dropped(self) -> int:
        """Of these, how many are not kept."""
        with _opened(self._path) as folder:
            parts = _parts(folder)
            cleared = _cleared(folder)
            kept = sum(part.end - max(part.begin, cleared) for part in parts if part.end > cleared)
            return _size(folder, parts) - kept

    def kept(self) -> Iterator[bytes]:
        """All that is kept: the beginning, then the end, in pieces."""
        position, size = 0, self.size
        while position < size:
            found, data = self.read_from(position, min(_PIECE_BYTES, size - position))
            if not data or found >= size:
                return
            yield data[: size - found]
            position = found + len(data)

    def read_from(self, position: int, limit: int) -> tuple[int, bytes]:
        """Up to `limit` bytes from a position on, or from the next one that is kept; and where they begin."""
        with _opened(self._path) as folder:
            _say_that_somebody_asked(folder)
            return _read_from(folder, position, limit)

    def last(self, limit: int) -> bytes:
        """The end of it; nobody counts as having asked for it."""
        with _opened(self._path) as folder:
            return _read_from(folder, max(0, _size(folder, _parts(folder)) - limit), limit)[1]

    def mark_asked(self) -> None:
        """Somebody uses it in another way than by its log: it is not idle."""
        with _opened(self._path) as folder:
            _say_that_somebody_asked(folder)

    def clear(self) -> None:
        """Drops what was printed so far; it is counted as dropped."""
        with _opened(self._path) as folder:
            parts = _parts(folder)
            size = _size(folder, parts)
            make_empty(folder, f"{CLEARED}{size:020d}")
            for part in parts[:-1] if has_keeper(self._path) else parts:  # the last one may be written to
                _remove(folder, format_log_name(part.begin))
            for name in _names(folder, CLEARED)[:-1]:
                _remove(folder, name)


def _read_from(folder: int, position: int, limit: int) -> tuple[int, bytes]:
    while True:
        parts = _parts(folder)
        start = max(position, _cleared(folder))
        part = next((part for part in parts if part.end > start), None)
        if part is None or limit <= 0:
            return max(position, _size(folder, parts)) if part is None else start, b""
        start = max(start, part.begin)
        with contextlib.suppress(FileNotFoundError):  # it was dropped a moment ago: the next one, then
            return start, b"".join(_stretch(folder, parts[parts.index(part) :], start, limit))


def _stretch(folder: int, parts: list[_LogPart], start: int, limit: int) -> Iterator[bytes]:
    """Bytes of files that follow each other without a gap; FileNotFoundError where the first is gone."""
    for number, part in enumerate(parts):
        if part.begin > start or limit <= 0:
            return
        try:
            data = _read_part(folder, part, start, limit)
        except FileNotFoundError:
            if number:
                return
            raise
        yield data
        start, limit = start + len(data), limit - len(data)
        if start < part.end:
            return


def _read_part(folder: int, part: _LogPart, start: int, limit: int) -> bytes:
    descriptor = os.open(format_log_name(part.begin), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.pread(descriptor, min(limit, part.end - start), start - part.begin)
    finally:
        os.close(descriptor)


def _parts(folder: int) -> list[_LogPart]:
    """The files, in order."""
    parts: list[_LogPart] = []
    for name in _names(folder, LOG):
        with contextlib.suppress(OSError):
            begin = int(name.removeprefix(LOG))
            parts.append(_LogPart(begin, begin + os.stat(name, dir_fd=folder).st_size))
    return parts


def _size(folder: int, parts: list[_LogPart]) -> int:
    """Who has ended says it; while it runs it is where the last file ends, and at least what was cleared."""
    end = read_json(folder, END) or {}
    said = end.get("size")
    return max(said if isinstance(said, int) else 0, _cleared(folder), parts[-1].end if parts else 0)


def _cleared(folder: int) -> int:
    names = _names(folder, CLEARED)
    return int(names[-1].removeprefix(CLEARED)) if names else 0


def _names(folder: int, beginning: str) -> list[str]:
    return sorted(name for name in os.listdir(folder) if name.startswith(beginning))


def _say_that_somebody_asked(folder: int) -> None:
    with contextlib.suppress(OSError):
        os.utime(ASKED, dir_fd=folder)


def _remove(folder: int, name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name, dir_fd=folder)


@contextlib.contextmanager
def _opened(path: str) -> Generator[int]:
    """The folder, so that it stays the same one; one that was removed is an empty one."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        descriptor = os.open("/proc/self/fdinfo", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


# § [process.sessions.layers] The overlay of a command that goes on after its call: noted in its folder, and gone
# § with it.

NOTE = "layer"
_SETTLED = "settled"
_STOPPED = "what it changed was dropped, since it did not come to its end"


class OverlayNote(msgspec.Struct, frozen=True):
    """What has to be known of it when it ends."""

    layer: str
    """The folder of its overlay."""
    call_id: str
    """The call that started it."""
    sandbox: SandboxUsed


def build_note(yielded: OverlayNote) -> dict[str, str]:
    """The file that lies in its folder from the beginning."""
    return {NOTE: msgspec.json.encode(yielded).decode()}


def read_note(folder: str) -> OverlayNote | None:
    """None for one that works on the real tree."""
    try:
        with open(os.path.join(folder, NOTE), "rb") as file:
            return decode_json(file.read(), OverlayNote)
    except (OSError, msgspec.DecodeError):
        return None


def is_settled(folder: str) -> bool:
    """Whether nothing is left to be committed or dropped."""
    return not os.path.exists(os.path.join(folder, NOTE)) or os.path.exists(os.path.join(folder, _SETTLED))


def read_settlement(folder: str) -> str | None:
    """What became of what it changed; None where that is not settled, or there is nothing to settle."""
    try:
        with open(os.path.join(folder, _SETTLED), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return None


def settle(folder: str, words: str) -> None:
    """Notes what became of it, at once; then the overlay is removed."""
    path = os.path.join(folder, _SETTLED)
    with open(f"{path}.new", "w", encoding="utf-8") as file:
        file.write(words)
    os.replace(f"{path}.new", path)
    remove_overlay(folder)


def drop_unfinished(folder: str, record: ProcessRecord) -> bool:
    """Drops what one changed that was stopped, or lost; whether it was."""
    if record.state == "running" or (record.exit_code is not None and record.reason is None):
        return False
    settle(folder, _STOPPED)
    return True


def remove_overlay(folder: str) -> None:
    """Removes the overlay of one that is settled, or forgotten. Can be repeated."""
    note = read_note(folder)
    if note is not None:
        with contextlib.suppress(OSError):
            overlay = reclaim(note.layer)
            if overlay is not None:
                overlay.remove()


# § [process.sessions.ports] The TCP ports that a process session listens on, as the kernel tells.

_LISTENS = b"0A"
_COUNTS = {"tcp": "sockstat", "tcp6": "sockstat6"}
_TABLES = tuple(_COUNTS)


def list_listening_ports(known: KeeperRecord) -> tuple[int, ...]:
    """Sorted, each once; none where it cannot be seen from here."""
    if not is_alive(known.program) or not is_alive(known.first):
        return ()
    if known.own_processes and has_own_network(known.first.number):
        ours = {PORT} if known.proxy is not None else set[int]()
        tables = [table for table in _TABLES if _has_sockets(known.first.number, table)]
        return tuple(sorted({port for port, _ in _listeners(known.first.number, tables)} - ours))
    tree = [process for process in list_descendants(known.program.number) if not process.dead]
    sockets = {inode for process in tree for inode in _sockets_of(process)}
    if not sockets:
        return ()
    return tuple(sorted({port for port, inode in _listeners(known.first.number, _TABLES) if inode in sockets}))


def is_alive(named: ProcessIdentity) -> bool:
    """Whether that very process still runs."""
    found = find_process(named.number) if named.number else None
    return found is not None and found.started == named.started and not found.dead


def has_own_network(process: int) -> bool:
    """Whether its network is another than ours."""
    try:
        return os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _has_sockets(process: int, table: str) -> bool:
    """Whether it is worth looking: reading a table takes 10 ms, as the kernel goes through those of all networks."""
    counts = read_entry(f"/proc/{process}/net/{_COUNTS[table]}").partition(table.upper().encode() + b": inuse ")[2]
    return not counts or counts.split()[0] != b"0"


def _listeners(process: int, tables: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    """Every port that somebody listens on in the process's network, and the number of the socket."""
    for name in tables:
        with contextlib.suppress(OSError), open(f"/proc/{process}/net/{name}", "rb") as lines:
            for fields in map(bytes.split, lines):
                if len(fields) > 9 and fields[3] == _LISTENS:
                    yield int(fields[1].rpartition(b":")[2], 16), fields[9]


def _sockets_of(process: ProcessStat) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process.number}/fd"):
            with contextlib.suppress(OSError):
                leads_to = os.readlink(f"/proc/{process.number}/fd/{name}")
                if leads_to.startswith("socket:["):
                    yield leads_to[8:-1].encode()


# § [process.sessions.stopping] Ends a process session whose keeper does not: from outside, and only what is still
# § what it was.

_STOP_SECONDS = 5.0


def force_stop(folder: str, reason: str) -> bool:
    """Ends whatever is left of it, where its keeper does not, and writes down why; whether nothing is left.

    Where its keeper was killed without anybody asking, nobody knows why it ended: it stays lost.
    """
    known = read_record(folder)
    if known is None:
        return True
    was_kept = has_keeper(folder)
    gone = known.boot != read_boot_id() or _ended(known)
    if gone and was_kept:
        with contextlib.suppress(OSError):
            _write_end(folder, reason)
    return gone


def _ended(known: KeeperRecord) -> bool:
    """Kills what is left of a keeper and of the command; whether nothing is."""
    with contextlib.ExitStack() as held:
        # The first of a namespace takes all others with it; a supervisor ends its own when its lifeline breaks.
        named = (known.keeper, known.first, known.program) if known.own_processes else (known.keeper,)
        for process in _holding(held, named):
            process.kill()
        until = time.monotonic() + _STOP_SECONDS
        return all(process.wait(until) for process in _holding(held, (known.keeper, known.first, known.program)))


def _holding(held: contextlib.ExitStack, processes: tuple[ProcessIdentity, ...]) -> Iterator[ProcessHandle]:
    for named in processes:
        process = ProcessHandle(named.number)
        held.callback(process.close)
        if is_alive(named):  # looked at when it is held: nobody else gets its number any more
            yield process


def _write_end(folder: str, reason: str) -> None:
    """In the keeper's place, which is gone; two who try take turns."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with contextlib.suppress(BlockingIOError):  # somebody just looks, or has it from a fork
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.access(END, os.F_OK, dir_fd=descriptor):
            size = ProcessLog(folder).size
            write_end(descriptor, {"ended": time.time(), "exit_code": None, "reason": reason, "size": size})
    finally:
        os.close(descriptor)
