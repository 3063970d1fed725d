"""The index of the code of a folder: files, chunks, words."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from handrail.protocol.errors import StoreError
from handrail.store.database import Database, Schema

CODE_INDEX = Schema(
    "code index",
    "your files",
    (
        """
        CREATE TABLE source_file (
            id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, changed INTEGER NOT NULL,
            hash BLOB NOT NULL
        );
        CREATE TABLE chunk (
            id INTEGER PRIMARY KEY, file INTEGER NOT NULL, line INTEGER NOT NULL, end_line INTEGER NOT NULL,
            name TEXT NOT NULL, kind TEXT NOT NULL, parent TEXT NOT NULL, signature TEXT NOT NULL
        );
        CREATE INDEX chunk_file ON chunk (file);
        CREATE VIRTUAL TABLE chunk_text USING fts5 (name, parent, path, body, tokenize = 'porter ascii');
        CREATE VIRTUAL TABLE chunk_name USING fts5 (name, parent, tokenize = 'porter ascii');
        CREATE TABLE chunk_vector (chunk INTEGER PRIMARY KEY, model TEXT NOT NULL, data BLOB NOT NULL);
        """,
    ),
    checkpoint_pages=16_000,
)
# The numbers are weights: of the name, the parent, the path and the text.
_RANK_TEXT = "SELECT rowid, -bm25(chunk_text, 2.0, 1.0, 1.0, 1.0) AS score FROM chunk_text WHERE chunk_text MATCH ?"
_RANK_NAMES = "SELECT rowid, -bm25(chunk_name, 1.0, 0.3) AS score FROM chunk_name WHERE chunk_name MATCH ?"
_CHUNKS_OF_FILES = "SELECT chunk.id FROM chunk JOIN source_file ON source_file.id = chunk.file"
_IN_SCOPE = "path = ? OR (path >= ? AND path < ?)"
_CHUNK_ROWS = (
    "SELECT chunk.id, path, line, end_line, name, kind, parent, signature, file"
    " FROM chunk JOIN source_file ON source_file.id = chunk.file"
)
_MAX_VALUES = 500
"""Values of one statement. SQLite has a limit."""


FileState = tuple[bytes, int, int]
"""The path of a file, its size, its change time. The index has 0 for a time that a later change may share."""
ChunkRow = tuple[int, int, str, str, str, str, str, str, str, str]
"""The columns of a chunk from its line to its signature, then the words of its name, parent, path and text."""


class IndexedChunk(NamedTuple):
    """A chunk with its file."""

    id: int
    path: bytes
    line: int
    end_line: int
    name: str
    kind: str
    parent: str
    signature: str
    file: int


class CodeIndex:
    """One database. Everything in it follows from the files, so a damaged one is made again."""

    def __init__(self, folder: str) -> None:
        path = os.path.join(folder, "index.db")
        try:
            self._database = Database(path, "crash", CODE_INDEX)
        except StoreError:
            for ending in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    os.unlink(path + ending)
            self._database = Database(path, "crash", CODE_INDEX)

    def close(self) -> None:
        self._database.close()

    def list_states(self) -> set[FileState]:
        return set(self._database.rows("SELECT path, size, changed FROM source_file"))

    def get_hash(self, path: bytes) -> bytes:
        row = self._database.row("SELECT hash FROM source_file WHERE path = ?", (path,))
        return row[0] if row else b""

    def put_files(self, files: Iterable[tuple[bytes, int, int, bytes, Sequence[ChunkRow]]]) -> None:
        """Stores files with their size, change time, hash and chunks, in place of what was known of them."""
        database = self._database
        with database.lock, database.transaction:
            [(file, number)] = database.rows(
                "SELECT (SELECT coalesce(max(id), 0) FROM source_file), (SELECT coalesce(max(id), 0) FROM chunk)"
            )
            rows: list[tuple[int, int, ChunkRow]] = []
            for path, size, changed, digest, chunks in files:
                if database.row("SELECT 1 FROM source_file WHERE path = ?", (path,)) is not None:
                    self._drop(path)
                file += 1
                database.execute("INSERT INTO source_file VALUES (?, ?, ?, ?, ?)", (file, path, size, changed, digest))
                rows += [(number + place, file, chunk) for place, chunk in enumerate(chunks, 1)]
                number += len(chunks)
            self._add_chunks(rows)

    def set_time(self, path: bytes, changed: int) -> None:
        """Notes a new change time of a file whose content is the same."""
        self._database.run("UPDATE source_file SET changed = ? WHERE path = ?", (changed, path))

    def drop_files(self, paths: Iterable[bytes]) -> None:
        with self._database.lock, self._database.transaction:
            for path in paths:
                self._drop(path)

    def _add_chunks(self, rows: Sequence[tuple[int, int, ChunkRow]]) -> None:
        """Stores chunks with their ids and those of their files."""
        insert = self._database.connection.executemany
        insert("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?)", ((id_, file, *one[:6]) for id_, file, one in rows))
        insert(
            "INSERT INTO chunk_text (rowid, name, parent, path, body) VALUES (?, ?, ?, ?, ?)",
            ((id_, *one[6:]) for id_, _, one in rows),
        )
        named = ((id_, *one[6:8]) for id_, _, one in rows if one[2])
        insert("INSERT INTO chunk_name (rowid, name, parent) VALUES (?, ?, ?)", named)

    def _drop(self, path: bytes) -> None:
        execute = self._database.execute
        inside = f"IN ({_CHUNKS_OF_FILES} WHERE path = ?)"
        execute(f"DELETE FROM chunk_text WHERE rowid {inside}", (path,))  # noqa: S608  our own words
        execute(f"DELETE FROM chunk_name WHERE rowid {inside}", (path,))  # noqa: S608  as above
        execute(f"DELETE FROM chunk_vector WHERE chunk {inside}", (path,))  # noqa: S608  as above
        execute("DELETE FROM chunk WHERE file = (SELECT id FROM source_file WHERE path = ?)", (path,))
        execute("DELETE FROM source_file WHERE path = ?", (path,))

    def rank_text(self, match: str, scopes: Sequence[bytes], most: int) -> list[tuple[int, float]]:
        """The ids of the best chunks by their words with scores, the best first. `scopes` are files and folders."""
        return self._rank(_RANK_TEXT, match, scopes, most)

    def rank_names(self, match: str, scopes: Sequence[bytes], most: int) -> list[tuple[int, float]]:
        """The same by the names of definitions."""
        return self._rank(_RANK_NAMES, match, scopes, most)

    def _rank(self, statement: str, match: str, scopes: Sequence[bytes], most: int) -> list[tuple[int, float]]:
        values = list[bytes]()
        if b"." not in scopes:
            either = " OR ".join([_IN_SCOPE] * len(scopes))
            statement += f" AND rowid IN ({_CHUNKS_OF_FILES} WHERE {either})"
            values = [bound for scope in scopes for bound in (scope, scope + b"/", scope + b"0")]
        rows = self._database.rows(f"{statement} ORDER BY score DESC LIMIT ?", (match, *values, most))
        return [(row[0], row[1]) for row in rows]

    def get_chunks(self, ids: Sequence[int]) -> dict[int, IndexedChunk]:
        found: dict[int, IndexedChunk] = {}
        for start in range(0, len(ids), _MAX_VALUES):
            some = tuple(ids[start : start + _MAX_VALUES])
            statement = f"{_CHUNK_ROWS} WHERE chunk.id IN ({','.join('?' * len(some))})"
            found.update((row[0], IndexedChunk(*row)) for row in self._database.rows(statement, some))
        return found

    def get_words(self, chunk: int) -> str:
        row = self._database.row("SELECT body FROM chunk_text WHERE rowid = ?", (chunk,))
        return row[0] if row else ""

    def list_definitions(self, kinds: Sequence[str]) -> list[IndexedChunk]:
        """All definitions of these kinds, in the order of their paths and lines."""
        statement = f"{_CHUNK_ROWS} WHERE name != '' AND kind IN ({','.join('?' * len(kinds))}) ORDER BY path, line"
        return [IndexedChunk(*row) for row in self._database.rows(statement, tuple(kinds))]

    def read_bodies(self) -> Iterator[tuple[int, str]]:
        """The file and the words of each chunk, in the order of their ids."""
        statement = (
            "SELECT chunk.id, file, body FROM chunk JOIN chunk_text ON chunk_text.rowid = chunk.id"
            " WHERE chunk.id > ? ORDER BY chunk.id LIMIT 1000"
        )
        return ((file, body) for _, file, body in self._database.pages(statement, 0))

    def count_matches(self, match: str) -> int:
        """The number of chunks whose words match."""
        [(count,)] = self._database.rows("SELECT count(*) FROM chunk_text WHERE chunk_text MATCH ?", (match,))
        return count

    def count_chunks(self) -> int:
        """About how many chunks there are."""
        [(count,)] = self._database.rows("SELECT coalesce(max(id), 0) FROM chunk")
        return count

    def get_vectors(self, ids: Sequence[int], model: str) -> dict[int, bytes]:
        statement = f"SELECT chunk, data FROM chunk_vector WHERE model = ? AND chunk IN ({','.join('?' * len(ids))})"  # noqa: S608  our own words
        return dict(self._database.rows(statement, (model, *ids)))

    def put_vectors(self, vectors: Iterable[tuple[int, bytes]], model: str) -> None:
        with self._database.lock, self._database.transaction:
            for chunk, data in vectors:
                self._database.execute("INSERT OR REPLACE INTO chunk_vector VALUES (?, ?, ?)", (chunk, model, data))
