"""A session's store in PostgreSQL: what other machines need to go on with it.

The journal and the change log are `PostgresDatabase`. Here are the audit, which has one chain for each session, and the
contents of files. The folder of the session on this machine is only a cache.
"""

import os
import stat
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, suppress
from functools import cached_property

import msgspec

from handrail.protocol.changes import State
from handrail.protocol.digest import sha256
from handrail.protocol.errors import StoreError
from handrail.protocol.records import AuditRecord
from handrail.protocol.wire import decode_msgpack
from handrail.store.audit import (
    AuditChain,
    FinishedCalls,
    Verification,
    build_outcome,
    decode_record,
    seal_record,
    verify_chain,
)
from handrail.store.blobs import Blobs
from handrail.store.change_log import ChangeLog, ChangeSetRecord
from handrail.store.database import CHANGES, Database
from handrail.store.journal import PendingEvent, SessionJournal
from handrail.store.postgres import PostgresDatabase, SessionScope, StaleWorkerError
from handrail.store.postgres_schema import AUDIT
from handrail.store.runner import mark_dead
from handrail.store.state_dir import AT_WORK, make_private, open_private

_FIRST_HASH = "0" * 64
_PART_BYTES = 1 << 20
_LAST_LINE = "SELECT seq, line FROM audit_line ORDER BY seq DESC LIMIT 1"
_HAS_BLOB = "SELECT 1 FROM handrail.blob WHERE hash = ? AND part = 0"
_INSERT_PART = "INSERT INTO handrail.blob VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_READ_PART = "SELECT data FROM handrail.blob WHERE hash = ? AND part = ?"
_ADD_RUNNER = "UPDATE handrail.session SET runners = runners || ? WHERE id = ? AND epoch = ? RETURNING runners"
_SAVE_FOLDER = (
    "INSERT INTO handrail.folder VALUES (?, ?, ?) ON CONFLICT (session, name) DO UPDATE SET files = excluded.files"
)
_READ_FOLDER = "SELECT files FROM handrail.folder WHERE session = ? AND name = ?"
_DROP_FOLDER = "DELETE FROM handrail.folder WHERE session = ? AND name = ?"


class _SavedFile(msgspec.Struct, frozen=True, array_like=True):
    path: str
    mode: int
    blob: str


class SharedStore:
    """The store of one session. `workspace` names its change log: sessions of one shared folder have one together.

    `root` is a workspace that only this worker has: the log then keeps the new contents of files too.
    """

    def __init__(self, scope: SessionScope, workspace: str = "", root: str | None = None) -> None:
        self.scope = scope
        self._workspace = workspace or scope.session
        self._root = root

    @cached_property
    def _database(self) -> Database:
        """The connection for the audit and contents. Journal and change log have their own."""
        return PostgresDatabase(self.scope, "", AUDIT)

    def open_journal(self, path: str) -> Database:
        return PostgresDatabase(self.scope, path)

    def open_log(self, path: str) -> ChangeLog:
        database = PostgresDatabase(self.scope, path, CHANGES, owner=self._workspace)
        return ChangeLog(database) if self._root is None else _FollowedLog(database, self, self._root)

    def open_audit(self) -> "SharedAudit":
        return SharedAudit(self._database)

    def open_blobs(self, folder: str) -> "SharedBlobs":
        return SharedBlobs(folder, self)

    def begin_runner(self, runner: str, folder: str, changes: str) -> None:
        """Notes the runner of this worker. Runners of earlier workers get the marks of dead ones in the folders of the
        session and of the change log, so that recovery settles what they left."""
        if self.scope.epoch is None:
            return
        with self._database.lock, self._database.transaction:
            values = (f"{runner} ", self.scope.session, self.scope.epoch)
            row = self._database.execute(_ADD_RUNNER, values).fetchone()
        if row is None:
            raise StaleWorkerError("another worker has taken over this session")
        for other in row[0].split():
            if other != runner:
                mark_dead(folder, other)
                with open(os.path.join(changes, f"{other}{AT_WORK}"), "w", opener=open_private) as marker:
                    marker.write(os.path.basename(folder))

    def append_event(self, *pending: PendingEvent) -> None:
        """Appends events without opening the session."""
        with closing(self.open_journal("")) as database:
            SessionJournal(database, self.scope.session, f"fleet-{os.urandom(6).hex()}").append(*pending)

    def verify(self) -> Verification:
        """Compares the chain of the session with its journal. A call that just ended may lack its record yet."""
        session = self.scope.session
        with closing(self.open_journal("")) as database:
            results = SessionJournal(database, session, "").list_finished()
            outcomes = {(session, call): [build_outcome(result)] for call, result in results}
        calls = FinishedCalls(outcomes, {session}, Counter())
        return verify_chain(_read_audit_lines(self._database), calls, ())

    def close(self) -> None:
        """Closes the connection for the audit and contents."""
        database = vars(self).pop("_database", None)
        if database is not None:
            database.close()

    # Contents, by a hash or another name that is never used again

    def has_blob(self, name: str) -> bool:
        return self._database.row(_HAS_BLOB, (name,)) is not None

    def save_blob(self, name: str, pieces: Iterable[bytes]) -> None:
        if self.has_blob(name):
            return
        with self._database.lock, self._database.transaction:
            number = -1
            for number, part in enumerate(_split(pieces)):
                self._database.execute(_INSERT_PART, (name, number, part))
            if number < 0:
                self._database.execute(_INSERT_PART, (name, 0, b""))

    def read_blob(self, name: str) -> Iterator[bytes]:
        number = 0
        while (row := self._database.row(_READ_PART, (name, number))) is not None:
            yield row[0]
            number += 1

    # Folders of small files

    def save_folder(self, name: str, folder: str, is_left_out: Callable[[str], bool] = lambda _: False) -> None:
        """Stores the regular files of a folder under a name, in place of those stored before."""
        files: list[_SavedFile] = []
        for around, folders, names in os.walk(folder):
            folders[:] = [inner for inner in folders if not is_left_out(inner)]
            for path in (os.path.join(around, inner) for inner in names if not is_left_out(inner)):
                with suppress(FileNotFoundError):  # it was removed meanwhile
                    status = os.lstat(path)
                    if stat.S_ISREG(status.st_mode):
                        blob = self._save_file(path)
                        files.append(_SavedFile(os.path.relpath(path, folder), status.st_mode & 0o777, blob))
        self._database.run(_SAVE_FOLDER, (self.scope.session, name, msgspec.msgpack.encode(files)))

    def restore_folder(self, name: str, folder: str) -> bool:
        """Writes the stored files of a name into a folder. Returns whether there are any."""
        row = self._database.row(_READ_FOLDER, (self.scope.session, name))
        for file in decode_msgpack(row[0], list[_SavedFile]) if row else []:
            path = os.path.join(folder, file.path)
            make_private(os.path.dirname(path))
            with open(path, "wb", opener=open_private) as out:
                out.writelines(self.read_blob(file.blob))
            os.chmod(path, file.mode)
        return row is not None

    def drop_folder(self, name: str) -> None:
        self._database.run(_DROP_FOLDER, (self.scope.session, name))

    def _save_file(self, path: str) -> str:
        with open(path, "rb") as file:
            digest = sha256()
            while chunk := file.read(_PART_BYTES):
                digest.update(chunk)
            file.seek(0)
            self.save_blob(digest.hexdigest(), iter(lambda: file.read(_PART_BYTES), b""))
        return digest.hexdigest()


class SharedAudit(AuditChain):
    """The chain of one session. Only the worker that runs the session appends."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._read_end()

    @property
    def known_size(self) -> int:
        """The number of records when this process last read or wrote the chain."""
        return self._seq

    def append(self, record: AuditRecord) -> None:
        with self._database.lock:
            try:
                self._append(record)
            except StaleWorkerError:
                raise
            except StoreError:  # a lost connection: the record may be stored
                self._read_end()
                if self._last_call != (record.session_id, record.tool_call_id, record.time):
                    self._append(record)

    def contains(self, session_id: str, calls: set[str], start: int) -> set[str]:
        del session_id
        rows = self._database.rows("SELECT call_id FROM audit_line WHERE seq > ?", (start,))
        return calls & {row[0] for row in rows}

    def close(self) -> None:
        """The store closes the connection."""

    def _append(self, record: AuditRecord) -> None:
        line, digest = seal_record(record, self._seq + 1, self._head)
        values = (self._seq + 1, record.tool_call_id, line)
        self._database.run("INSERT INTO audit_line VALUES (?, ?, ?)", values)
        self._seq, self._head = self._seq + 1, digest

    def _read_end(self) -> None:
        self._seq, self._head = 0, _FIRST_HASH
        self._last_call: tuple[object, ...] = ()
        if (row := self._database.row(_LAST_LINE)) is None:
            return
        self._seq, found = row[0], decode_record(row[1])
        if found is not None:
            self._head = found[1]
            self._last_call = (found[0].session_id, found[0].tool_call_id, found[0].time)


def _read_audit_lines(database: Database) -> Iterator[bytes]:
    """The lines of the chain of a session, as a file would have them."""
    for row in database.pages("SELECT seq, line FROM audit_line WHERE seq > ? ORDER BY seq LIMIT 500", 0):
        yield row[1]


class SharedBlobs(Blobs):
    """A folder of blobs that are also in the database. Blobs of other machines are fetched when they are read."""

    def __init__(self, folder: str, store: SharedStore) -> None:
        super().__init__(folder, "none")
        self._store_shared = store

    def keep(self, digest: str, data: bytes, *, pack: bool = False) -> None:
        super().keep(digest, data, pack=pack)
        self._store_shared.save_blob(digest, [data])

    def keep_all(self, contents: Iterable[tuple[str, bytes]]) -> None:
        def upload() -> Iterator[tuple[str, bytes]]:
            for digest, data in contents:
                self._store_shared.save_blob(digest, [data])
                yield digest, data

        super().keep_all(upload())

    def put_pieces(self, pieces: Iterator[bytes]) -> str:
        return self._upload(super().put_pieces(pieces))

    def adopt(self, path: str) -> str:
        return self._upload(super().adopt(path))

    def keep_file(self, digest: str, descriptor: int) -> None:
        super().keep_file(digest, descriptor)
        self._upload(digest)

    def keep_borrowed(self, digest: str) -> None:
        super().keep_borrowed(digest)
        self._upload(digest)

    def open(self, digest: str) -> int:
        self._fetch(digest)
        return super().open(digest)

    def chunks(self, digest: str) -> Iterator[bytes]:
        if digest not in self._lenders:
            self._fetch(digest)
        return super().chunks(digest)

    def has(self, digest: str) -> bool:
        return super().has(digest) or self._store_shared.has_blob(digest)

    def _upload(self, name: str) -> str:
        if not self._store_shared.has_blob(name):
            self._store_shared.save_blob(name, self._read(name))
        return name

    def _fetch(self, name: str) -> None:
        if not super().has(name) and self._store_shared.has_blob(name):
            self._store(self._path(name), self._store_shared.read_blob(name))


class _FollowedLog(ChangeLog):
    """A change log that another worker can repeat in a workspace of its own."""

    def __init__(self, database: Database, store: SharedStore, root: str) -> None:
        super().__init__(database)
        self._store, self._root = store, os.fsencode(root)

    def finish(self, number: int, body: ChangeSetRecord, diffs: tuple[str, ...] | None = None) -> None:
        for step in body.steps:
            if step.after is not None and step.after.kind != "folder" and not self._store.has_blob(step.after.hash):
                self._save_content(os.path.join(self._root, step.path), step.after)
        super().finish(number, body, diffs)

    def _save_content(self, path: bytes, state: State) -> None:
        """Stores the content of a path, unless others changed it meanwhile."""
        try:
            if state.kind == "link":
                pieces = [os.readlink(path)]
            else:
                with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                    pieces = list(iter(lambda: file.read(_PART_BYTES), b""))
        except OSError:
            return
        digest = sha256()
        for piece in pieces:
            digest.update(piece)
        if digest.hexdigest() == state.hash:
            self._store.save_blob(state.hash, pieces)


def _split(pieces: Iterable[bytes]) -> Iterator[bytes]:
    return (piece[start : start + _PART_BYTES] for piece in pieces for start in range(0, len(piece), _PART_BYTES))
