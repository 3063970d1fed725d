"""What a keeper shares with the runtime: the plan it starts from, the files it writes."""

import contextlib
import json
import marshal
import os
import time
from typing import Any, NamedTuple

VERSION = 1
"""Version of the files and of the socket protocol."""

RECORD = "record.json"
"""Describes the session. Written once, before the keeper reports that it started."""
END = "end.json"
"""Exit record, written once by the keeper. If it is missing and the folder is unlocked, the keeper was killed."""
_END_DRAFT = "ending"
_CRASH = "crash"
SOCKET = "socket"
ASKED = "asked"
"""An empty file. Its modification time says when the output was last asked for."""
ATTEMPTS = "attempts.jsonl"
"""Connection attempts through the proxy, one a line."""
LOG = "log-"
"""Prefix of a log file. The position where it begins follows in 20 digits, so names sort by position."""
CLEARED = "cleared-"
"""Prefix of an empty file. The output before the position in its name was cleared."""

_WRITE = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
_END_BYTES = 1024
_MAX_LOG_FILES = 256
"""Log files after the head. A disk that is full now and then would make many small ones."""
_RETRY_SECONDS = 0.5
"""Pause before writing to a full disk is tried again."""

Json = dict[str, object]


class KeeperPlan(NamedTuple):
    launch: dict[str, Any]
    """Arguments of `Launch`."""
    record: dict[str, str]
    """First fields of the record: id, command, cwd, session_id."""
    memory: int
    processes: int
    threads: int
    disk: int
    uppers: tuple[str, ...]
    idle: float
    """Seconds without output and without a reader after which the command is ended. 0: never."""
    log: dict[str, int]
    """Arguments of `LogWriter`."""
    proxy: tuple[str, tuple[str, ...]] | None
    """The folder of the proxy to run, and its allowlist. None: the command has no network."""
    folder: int = -1
    """Descriptor of the session folder. It holds the folder's lock as long as the keeper lives."""
    ready_fd: int = -1
    """End of a pipe on which the keeper reports once how the start went."""

    def encode(self) -> bytes:
        return marshal.dumps(tuple(self))

    @staticmethod
    def read(descriptor: int) -> "KeeperPlan":
        """The plan behind a descriptor, which is closed."""
        with open(descriptor, "rb") as file:
            # Written a moment ago by this interpreter, into a file that no other program has.
            return KeeperPlan(*marshal.loads(file.read()))  # noqa: S302


def read_boot_id() -> str:
    """The id of this start of the machine. Process numbers are unique only together with it."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        return file.read().strip()


class KeeperFolder(NamedTuple):
    descriptor: int

    def write_record(self, record: Json) -> None:
        """Write the record, and reserve room for the exit record: the disk may be full by then."""
        self.touch(ASKED)
        self._write(_END_DRAFT, b" " * _END_BYTES)
        self._write("record.new", _encode(record))
        self._rename("record.new", RECORD)

    def write_end(self, end: Json) -> None:
        self._write(_END_DRAFT, _encode(end).ljust(_END_BYTES))
        self._rename(_END_DRAFT, END)

    def write_crash(self) -> None:
        """Write the traceback of the current exception. A keeper has no stderr."""
        import traceback  # noqa: PLC0415  hardly ever needed

        self._write(_CRASH, traceback.format_exc().encode("utf-8", "replace"))

    def touch(self, name: str) -> None:
        """Create an empty file, or set its modification time to now."""
        os.close(os.open(name, _WRITE, 0o600, dir_fd=self.descriptor))
        os.utime(name, dir_fd=self.descriptor)

    def remove(self, name: str) -> None:
        """Remove the folder with its files. The record goes first: without it the rest counts as abandoned."""
        for file in sorted(os.listdir(self.descriptor), key=lambda file: file != RECORD):
            os.unlink(file, dir_fd=self.descriptor)
        os.rmdir(os.path.join("..", name), dir_fd=self.descriptor)

    def _rename(self, old: str, new: str) -> None:
        os.rename(old, new, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def _write(self, name: str, data: bytes) -> None:
        """Overwrite in place, so that reserved room is used."""
        with open(os.open(name, _WRITE, 0o600, dir_fd=self.descriptor), "wb", buffering=0) as file:
            while data:
                data = data[file.write(data) :]


def _encode(document: Json) -> bytes:
    return json.dumps({"v": VERSION, **document}).encode()


def format_log_name(position: int) -> str:
    return f"{LOG}{position:020d}"


class LogWriter:
    """Writes the log: its head, then files of the tail, of which old ones are removed.

    If the disk is full or broken, the output of that time is dropped.
    """

    def __init__(self, folder: int, *, head: int, kept: int, segment: int) -> None:
        self.size = 0
        """Bytes so far, dropped ones included."""
        self.trouble: str | None = None
        """Why output was dropped that should have been kept."""
        self._folder = folder
        self._head = head
        self._kept = kept
        self._segment = segment
        self._descriptor = -1
        self._begin = 0
        self._room = 0
        self._tail: list[tuple[int, int]] = []
        """Complete files after the head: begin and length."""
        self._retry_at = 0.0

    def add(self, data: bytes | bytearray) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._write(rest) :]

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, data: memoryview) -> int:
        """The number of bytes that were written or dropped."""
        try:
            if self._descriptor < 0:
                self._open()
            count = os.write(self._descriptor, data[: self._room])
        except OSError as error:
            return self._drop(data, error)
        self.size += count
        self._room -= count
        if not self._room:
            self._finish_file()
        return count

    def _open(self) -> None:
        if time.monotonic() < self._retry_at:
            raise OSError(None, self.trouble)
        new = _WRITE | os.O_EXCL
        self._descriptor = os.open(format_log_name(self.size), new, 0o600, dir_fd=self._folder)
        self._begin = self.size
        self._room = self._head - self.size if self.size < self._head else self._segment

    def _drop(self, data: memoryview, error: OSError) -> int:
        self.trouble = error.strerror or self.trouble or "the disk"
        if time.monotonic() >= self._retry_at:
            self._retry_at = time.monotonic() + _RETRY_SECONDS
        if self._descriptor >= 0:
            self._finish_file()
        self.size += len(data)
        return len(data)

    def _finish_file(self) -> None:
        self.close()
        if self.size == self._begin:
            self._remove(self._begin)
        elif self._begin >= self._head:
            self._tail.append((self._begin, self.size - self._begin))
            total = sum(size for _, size in self._tail)
            # The rest of the tail stays long enough.
            while self._tail and (total - self._tail[0][1] >= self._kept or len(self._tail) > _MAX_LOG_FILES):
                begin, size = self._tail.pop(0)
                total -= size
                self._remove(begin)

    def _remove(self, begin: int) -> None:
        with contextlib.suppress(OSError):  # it was cleared
            os.unlink(format_log_name(begin), dir_fd=self._folder)
