"""The change log of a workspace: the numbered change sets of all sessions, with the states to undo them.

A change set is stored as begun before the first file changes, and as done after the last. Recovery settles the sets
that a killed process left begun.
"""

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache

import msgspec

from handrail.protocol.changes import Change, ChangeRecord, Kind, State
from handrail.protocol.errors import StoreError
from handrail.protocol.wire import UNREADABLE, get_msgpack_decoder
from handrail.store.database import Database, Row


class Step(msgspec.Struct, frozen=True):
    path: bytes
    """Relative in the workspace, absolute in an extra root."""
    before: State | None
    after: State | None

    @property
    def kind(self) -> Kind:
        """The kind of the new state, or of the old one if the path is removed."""
        state = self.after or self.before
        return state.kind if state is not None else "file"


class FileExtras(msgspec.Struct, frozen=True):
    """Properties of a file before the change, besides its state."""

    path: bytes
    attributes: dict[str, bytes] = {}
    """Extended attributes of the user namespace."""
    linked_to: bytes | None = None
    """Another path of the same file."""


class ChangeSetRecord(msgspec.Struct, frozen=True):
    """A change set as it is stored, besides its columns."""

    tool: str
    summary: str
    steps: tuple[Step, ...]
    changes: tuple[Change, ...]
    """The steps as people and models see them."""
    undoes: tuple[int, ...] = ()
    undoable: bool = True
    """Whether all contents to undo it are kept."""
    certain: bool = True
    """False if a crash and a later change by others leave open whether it was made."""
    not_covered: tuple[str, ...] = ()
    """Effects of the call that undo does not cover, in words."""
    unlinked_paths: tuple[bytes, ...] = msgspec.field(default=(), name="apart")
    """Paths that became another name of a file, and had a file of their own before."""
    was: tuple[FileExtras, ...] = ()
    opened: tuple[tuple[bytes, int], ...] = ()
    """Folders that were made writable for the change, with their former modes."""


class LoggedChangeSet(msgspec.Struct, frozen=True):
    number: int
    session: str
    call_id: str
    turn: str
    runner: str
    state: str
    """begun or done."""
    time: datetime
    undone_by: int | None
    body: ChangeSetRecord

    @property
    def in_effect(self) -> bool:
        return self.state == "done" and self.undone_by is None

    def to_record(self) -> ChangeRecord:
        return ChangeRecord(
            number=self.number,
            session_id=self.session,
            tool_call_id=self.call_id,
            tool=self.body.tool,
            summary=self.body.summary,
            time=self.time,
            in_effect=self.in_effect,
            undone_by=self.undone_by,
            undoes=self.body.undoes,
            undoable=self.body.undoable,
            changes=self.body.changes,
            not_covered=self.body.not_covered,
        )


_encode = msgspec.msgpack.Encoder().encode
_decode = get_msgpack_decoder(ChangeSetRecord).decode
_decode_diffs = get_msgpack_decoder(tuple[str, ...]).decode
_UNREADABLE = ChangeSetRecord("unknown", "(this change cannot be read)", (), (), undoable=False)
_COLUMNS = "number, session, call_id, turn, runner, state, time, undone_by, data"
_SELECT = f"SELECT {_COLUMNS} FROM change_set"  # noqa: S608  a constant
_INSERT = (
    "INSERT INTO change_set (session, call_id, turn, runner, state, time, data, diff) "
    "VALUES (?, ?, ?, ?, 'begun', ?, ?, ?)"
)
_LAST = "SELECT data FROM change_set ORDER BY number DESC LIMIT ?"
_DELETED = _encode({"action": "deleted"})[1:]
"""A deletion, as a stored set has it."""


class ChangeLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    # Writing

    def begin(
        self, *, session: str, call_id: str, turn: str, runner: str, body: ChangeSetRecord, diffs: tuple[str, ...]
    ) -> int:
        """Stores a set as begun, with a diff for each step. Returns its number."""
        execute = self._database.execute
        now = datetime.now(UTC).isoformat()
        with self._database.lock, self._database.transaction:
            row = (session, call_id, turn, runner, now, _encode(body), _pack_diffs(diffs))
            number = self._database.insert(_INSERT, row)
            for path in {step.path for step in body.steps}:
                execute("INSERT INTO touched VALUES (?, ?)", (path, number))
        return number

    def finish(self, number: int, body: ChangeSetRecord, diffs: tuple[str, ...] | None = None) -> None:
        """Stores a set as done. The sets that it undoes stop being in effect in the same transaction."""
        execute = self._database.execute
        packed = _pack_diffs(diffs) if diffs is not None else None
        with self._database.lock, self._database.transaction:
            update = "UPDATE change_set SET state = 'done', data = ?, diff = coalesce(?, diff)"
            if execute(f"{update} WHERE number = ? AND state = 'begun'", (_encode(body), packed, number)).rowcount != 1:
                raise StoreError(f"change {number} was not begun")
            for path in {step.path for step in body.steps}:  # those of a command are known only now
                execute("INSERT OR IGNORE INTO touched VALUES (?, ?)", (path, number))
            for undone in body.undoes:
                self._mark_undone(undone, number)

    def drop(self, number: int) -> None:
        """Removes a begun set before its first change."""
        with self._database.lock, self._database.transaction:
            delete = "DELETE FROM change_set WHERE number = ? AND state = 'begun'"
            if self._database.execute(delete, (number,)).rowcount:
                self._database.execute("DELETE FROM touched WHERE number = ?", (number,))

    def forget_before(self, time: datetime) -> None:
        """Marks the sets of before a time as not undoable, so that their contents can be removed."""
        query = f"{_SELECT} WHERE state = 'done' AND time < ?"
        with self._database.lock, self._database.transaction:
            for row in self._database.execute(query, (time.isoformat(),)).fetchall():
                entry = _read_entry(row)
                if entry.body.undoable:
                    body = msgspec.structs.replace(entry.body, undoable=False)
                    update = "UPDATE change_set SET data = ?, diff = NULL WHERE number = ?"
                    self._database.execute(update, (_encode(body), entry.number))

    def _mark_undone(self, number: int, by: int | None) -> None:
        """Marks a set as undone, or as in effect again. The sets that it undoes itself get the opposite."""
        self._database.execute("UPDATE change_set SET undone_by = ? WHERE number = ?", (by, number))
        row = self._database.execute("SELECT data FROM change_set WHERE number = ?", (number,)).fetchone()
        for other in _read_record(row[0]).undoes if row else ():
            self._mark_undone(other, number if by is None else None)

    # Reading

    def entry(self, number: int) -> LoggedChangeSet | None:
        row = self._database.row(f"{_SELECT} WHERE number = ?", (number,))
        return _read_entry(row) if row else None

    def find_by_call(self, session: str, call_id: str) -> LoggedChangeSet | None:
        where = "WHERE session = ? AND call_id = ? ORDER BY number DESC"
        row = self._database.row(f"{_SELECT} {where}", (session, call_id))
        return _read_entry(row) if row else None

    def latest(self) -> Iterator[LoggedChangeSet]:
        query = f"{_SELECT} WHERE number < ? ORDER BY number DESC LIMIT 100"
        return map(_read_entry, self._database.pages(query, 1 << 62))

    def list_begun(self) -> list[LoggedChangeSet]:
        return [_read_entry(row) for row in self._database.rows(f"{_SELECT} WHERE state = 'begun' ORDER BY number")]

    def list_numbers(self, path: bytes, after: int) -> list[int]:
        """The numbers of later sets that touched a path, begun or done, oldest first."""
        query = "SELECT number FROM touched WHERE path = ? AND number > ? ORDER BY number"
        return [row[0] for row in self._database.rows(query, (path, after))]

    def count_last(self, most: int) -> int:
        """The number of sets, at most so many."""
        return self._database.rows(f"SELECT count(*) FROM ({_LAST}) AS latest", (most,))[0][0]  # noqa: S608  a constant

    def has_deletion(self, most: int) -> bool:
        """Whether one of the last sets deleted a path."""
        query = f"SELECT 1 FROM ({_LAST}) AS latest WHERE instr(data, ?) > 0 LIMIT 1"  # noqa: S608  a constant
        return self._database.row(query, (most, _DELETED)) is not None

    def has_touched(self, folder: bytes) -> bool:
        """Whether a set touched a path in a folder, whose name ends in a slash."""
        query = "SELECT 1 FROM touched WHERE path >= ? AND path < ? LIMIT 1"
        return self._database.row(query, (folder, folder[:-1] + b"0")) is not None  # 0 comes after the slash

    def diffs(self, number: int) -> tuple[str, ...] | None:
        """The diffs of a set, one for each step. None if they are no longer kept."""
        row = self._database.row("SELECT diff FROM change_set WHERE number = ?", (number,))
        try:
            return _unpack_diffs(row[0]) if row and row[0] is not None else None
        except (zlib.error, *UNREADABLE):
            return None

    def contents(self) -> set[str]:
        entries = (entry for entry in self.latest() if entry.body.undoable)
        states = (state for entry in entries for step in entry.body.steps for state in (step.before, step.after))
        return {state.hash for state in states if state is not None}

    def check(self) -> None:
        """Reads all sets. StoreError if one or its diffs cannot be read."""
        self._database.check()
        for entry in self.latest():
            row = self._database.row("SELECT diff FROM change_set WHERE number = ?", (entry.number,))
            if entry.body == _UNREADABLE or (row and row[0] is not None and self.diffs(entry.number) is None):
                raise StoreError(f"change {entry.number} cannot be read")

    def close(self) -> None:
        self._database.close()


def _pack_diffs(diffs: tuple[str, ...]) -> bytes:
    return zlib.compress(_encode(diffs), 1)


@lru_cache(maxsize=4)
def _unpack_diffs(packed: bytes) -> tuple[str, ...]:
    """Cached, because the diffs of one set are mostly read one after the other."""
    return _decode_diffs(zlib.decompress(packed))


def _read_entry(row: Row) -> LoggedChangeSet:
    number, session, call_id, turn, runner, state, time, undone_by, data = row
    try:
        when = datetime.fromisoformat(time)
    except (ValueError, TypeError):
        raise StoreError(f"the change log is damaged: change {number} has no time") from None
    return LoggedChangeSet(number, session, call_id, turn, runner, state, when, undone_by, _read_record(data))


@lru_cache(maxsize=8)
def _read_record(data: bytes) -> ChangeSetRecord:
    try:
        return _decode(data)
    except UNREADABLE:
        return _UNREADABLE
