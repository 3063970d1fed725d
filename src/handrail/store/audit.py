"""The audit: one record a call, each sealed with the hash of the record before it.

A changed, inserted or removed line breaks the chain. A cut end is detected by the journals, which know their finished
calls. An attacker who can write the chain and all journals is not detected. Old records move to archive files beside
the audit, each named by the number of its first record.
"""

import errno
import fcntl
import os
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from datetime import datetime
from threading import Lock
from typing import Any

import msgspec

from handrail.protocol.digest import short_sha256
from handrail.protocol.errors import StoreError
from handrail.protocol.receipt import ChainedRecord
from handrail.protocol.records import AuditRecord
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store.journal import SessionJournal
from handrail.store.state_dir import make_private, write_private

_FIRST_HASH = "0" * 64
_TAIL_BYTES = 64 * 1024
_SEAL = b',"hash":"'
_MAX_NAMED_CALLS = 10


class AuditChain:
    """The audit file, shared by every session and process of the state folder."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = Lock()
        self._end = -1
        self._seq = 0
        self._head = _FIRST_HASH
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            if os.fstat(self._descriptor).st_mode & 0o077:
                os.fchmod(self._descriptor, 0o600)
        except OSError as error:
            raise StoreError(f"the audit {path} cannot be opened: {error.strerror}") from error

    @property
    def known_size(self) -> int:
        """The size of the file when this process last read or wrote it."""
        return max(0, self._end)

    def append(self, record: AuditRecord) -> None:
        with self._lock:
            if self._descriptor < 0:
                raise StoreError(f"the audit {self.path} was closed")
            try:
                try:
                    fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                    if os.lseek(self._descriptor, 0, os.SEEK_END) != self._end:  # a third of what fstat costs
                        self._find_end()
                    line, digest = seal_record(record, self._seq + 1, self._head)
                    self._write(line)
                    self._seq, self._head, self._end = self._seq + 1, digest, self._end + len(line)
                finally:
                    fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            except OSError as error:
                raise StoreError(f"the audit {self.path} cannot be written: {error.strerror}") from error

    def contains(self, session_id: str, calls: set[str], start: int) -> set[str]:
        """The calls of a session that have a complete record after a position. An archive makes positions void."""
        lines = _read_audit_lines(self.path, 0 if list_archives(self.path) else start)
        records = (record[0] for line in lines if (record := decode_record(line)))
        return calls & {record.tool_call_id for record in records if record.session_id == session_id}

    def archive(self, before: datetime) -> None:
        """Moves all records to the archive if the first of them is from before a time."""
        with self._lock, open(self.path, "rb") as lines:
            try:
                fcntl.flock(self._descriptor, fcntl.LOCK_EX)
                first = decode_record(lines.readline())
                if first is None or first[0].time >= before:
                    return
                self._find_end()
                lines.seek(0)
                make_private(_build_archive_path(self.path))
                name = os.path.join(_build_archive_path(self.path), f"{first[0].seq:012d}.jsonl")
                write_private(name, lines.read(), ".new")  # killed now: the records are in both, and count once
                os.ftruncate(self._descriptor, 0)
            finally:
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        """Closes the file. Later appends fail."""
        with self._lock:
            descriptor, self._descriptor = self._descriptor, -1
            if descriptor >= 0:
                os.close(descriptor)

    def _find_end(self) -> None:
        """Reads the last complete line after another process wrote, and drops a torn one."""
        size = os.fstat(self._descriptor).st_size
        if size == 0:
            last = decode_record(deque(_read_audit_lines(self.path), maxlen=1)[0]) if list_archives(self.path) else None
            self._end, self._seq, self._head = (0, last[0].seq, last[1]) if last else (0, 0, _FIRST_HASH)
            return
        start, line = self._find_last_line(size)
        if start + len(line) < size:
            os.ftruncate(self._descriptor, start + len(line))
        record = decode_record(line) if line else None
        self._seq, self._head = (record[0].seq, record[1]) if record else (0, _FIRST_HASH)
        self._end = start + len(line)

    def _find_last_line(self, size: int) -> tuple[int, bytes]:
        """The start of the last line that ends in a newline, and the line."""
        window = _TAIL_BYTES
        while True:
            start = max(0, size - window)
            data = os.pread(self._descriptor, size - start, start)
            end = data.rfind(b"\n") + 1
            begin = data.rfind(b"\n", 0, max(0, end - 1)) + 1
            if begin > 0 or start == 0:
                return start + begin, data[begin:end]
            window *= 4

    def _write(self, line: bytes) -> None:
        written = os.write(self._descriptor, line)
        if written < len(line):
            os.ftruncate(self._descriptor, self._end)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)


def _read_audit_lines(path: str, start: int = 0) -> Iterator[bytes]:
    """The lines of an audit: first those of its archive, then those of its file from a position on. The last one has no
    newline if it is torn or being written."""
    try:
        with open(path, "rb") as lines:
            first = decode_record(lines.readline())
            lines.seek(max(0, start))
            for old in list_archives(path):
                if first is None or int(os.path.basename(old)[:12]) < first[0].seq:
                    with open(old, "rb") as archived:
                        yield from archived
            yield from lines
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"the audit {path} cannot be read: {error.strerror}") from error


def list_archives(path: str) -> list[str]:
    folder = _build_archive_path(path)
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return [os.path.join(folder, name) for name in sorted(names) if name[:12].isdigit() and name.endswith(".jsonl")]


def _build_archive_path(path: str) -> str:
    return f"{path.removesuffix('.jsonl')}-archive"


def seal_record(record: AuditRecord, seq: int, prev: str) -> tuple[bytes, str]:
    """The line of a record, which is its JSON with the hash of that JSON at its end, and the hash."""
    body = b"".join((encode(record)[:-1], b',"seq":%d,"prev":"' % seq, prev.encode(), b'"'))
    digest = short_sha256(body + b"}").hexdigest()
    return b"".join((body, _SEAL, digest.encode(), b'"}\n')), digest


def decode_record(line: bytes) -> tuple[ChainedRecord, str] | None:
    """The record of a line and its hash. None if the line was changed."""
    body, seal, rest = line.rpartition(_SEAL)
    sealed = body + b"}"
    digest = short_sha256(sealed).hexdigest()
    if not seal or rest != digest.encode() + b'"}\n':
        return None
    try:
        return decode_json(sealed, ChainedRecord), digest
    except UNREADABLE:
        return None


def read_chain(path: str) -> Iterator[tuple[ChainedRecord, str]]:
    """The records of an audit with their hashes, up to the first that is not sound."""
    head = _FIRST_HASH
    for number, line in enumerate(_read_audit_lines(path), start=1):
        found = decode_record(line)
        if found is None or (found[0].prev, found[0].seq) != (head, number):
            return
        head = found[1]
        yield found


def read_last_records(path: str, limit: int) -> list[ChainedRecord | None]:
    """The last records of an audit, oldest first. None for a changed line."""
    lines = [line for line in deque(_read_audit_lines(path), maxlen=limit) if line.endswith(b"\n")]
    return [found[0] if (found := decode_record(line)) else None for line in lines]


# Table `runner` of a journal notes up to where the finished calls of a runner have their records.


def note_audited(journal: SessionJournal, size: int) -> None:
    """Notes that every call this runner finished has its record, before a size of the audit."""
    journal.database.run("INSERT OR REPLACE INTO runner VALUES (?, ?, ?)", (journal.runner, journal.seq, size))


def list_unaudited(journal: SessionJournal, runner: str) -> tuple[list[str], int]:
    """The calls a runner finished after its last note, and the size of the audit then."""
    seq, size = journal.database.row("SELECT audited, audit_size FROM runner WHERE id = ?", (runner,)) or (0, 0)
    return journal.list_finished_by(runner, seq), int(size)


def forget_runner(journal: SessionJournal, runner: str) -> None:
    journal.database.run("DELETE FROM runner WHERE id = ?", (runner,))


def redact_commands(commands: tuple[str, ...]) -> tuple[str, ...]:
    """The names of the programs that commands start."""
    if not commands:
        return ()
    from handrail.policy.parse import parse_command  # noqa: PLC0415  the tables are only for commands

    return tuple(dict.fromkeys(program for text in commands for program in parse_command(text, ".").programs))


_Outcome = tuple[object, ...] | None
"""The facts that journal and audit both have about a result. None if the journal cannot be read."""


class FinishedCalls(msgspec.Struct, frozen=True):
    """The calls that the audit must have, as the journals know them."""

    outcomes: dict[tuple[str, str], list[_Outcome]]
    """By session and call. Sessions of several workspaces may share a name, so there may be several."""
    sessions: set[str]
    """The sessions whose calls are all known."""
    removed: Counter[str]
    """The number of calls of removed sessions that the audit may have, by session."""


class Verification(msgspec.Struct, frozen=True):
    records: int
    head: str
    problems: tuple[str, ...]
    unread: tuple[str, ...] = ()
    """Journals that could not be read. Their calls were not checked, which breaks no chain."""

    @property
    def intact(self) -> bool:
        """Whether no record was changed, and none is missing as far as journals could be read."""
        return not self.problems


def build_outcome(result: ToolResult[Any] | None) -> _Outcome:
    if result is None:
        return None
    code = result.error.code if result.error else None
    artifacts = result.artifacts
    commands = redact_commands(artifacts.commands_run)
    return result.name, result.ok, code, result.duration_ms, artifacts.files_changed, commands


def verify_chain(source: str | Iterable[bytes], calls: FinishedCalls, unread: tuple[str, ...]) -> Verification:
    """Reads a whole chain, a file or its lines, and crosses out the calls that it has.

    A hash only shows that a line was changed: an attacker who can write the file can also seal it anew.
    """
    head, count, problems = _FIRST_HASH, 0, list[str]()
    lines = _read_audit_lines(source) if isinstance(source, str) else source
    for number, line in enumerate(lines, start=1):
        if not line.endswith(b"\n"):
            break  # a crash tore it; the journal knows the call, and the record is written again
        problem, digest = _check_line(line, number, head, calls)
        if problem:
            problems.append(f"Record {number} {problem}; {count} before it are sound.")
            break
        head, count = digest, number
    if not problems:
        problems += _describe_missing([key for key, left in calls.outcomes.items() if left])
    return Verification(count, head, tuple(problems), unread)


def _check_line(line: bytes, number: int, head: str, calls: FinishedCalls) -> tuple[str | None, str]:
    """The problem of a line, if there is one, and its hash. Its outcome is crossed out."""
    decoded = decode_record(line)
    if decoded is None:
        return "was changed or removed", ""
    record, digest = decoded
    if record.prev != head or record.seq != number:
        return "was changed or removed" if record.seq > number else "was inserted or changed", ""
    recorded = calls.outcomes.get((record.session_id, record.tool_call_id))
    if not recorded:  # its journal was removed or moved away, or cannot be read
        calls.removed[record.session_id] -= 1
        is_unknown = record.session_id in calls.sessions and calls.removed[record.session_id] < 0
        return ("belongs to a call that its journal does not have" if is_unknown else None), digest
    facts = (record.name, record.ok, record.error_code, record.duration_ms, record.files_changed, record.commands_run)
    for outcome in recorded:
        if outcome is None or outcome == facts:
            recorded.remove(outcome)
            return None, digest
    return "differs from the journal", digest


def _describe_missing(calls: list[tuple[str, str]]) -> list[str]:
    named = calls[:_MAX_NAMED_CALLS]
    problems = [f"The end was cut: call {call} of session {session} has no record." for session, call in named]
    if len(calls) > _MAX_NAMED_CALLS:
        problems.append(f"{len(calls) - _MAX_NAMED_CALLS} more calls have no record.")
    return problems
