"""Brings the code index of a folder up to date with its files."""

import os
import stat
import time
from collections.abc import Callable, Iterator

import msgspec

from handrail.code.chunks import Chunk, split_file, split_words
from handrail.protocol.digest import short_sha256
from handrail.store.code_index import ChunkWords, CodeIndex, IndexedFile
from handrail.workspace.file_state import read_start
from handrail.workspace.resolve import ENTER_FOLDER, READ_FILE, closing_descriptor, open_beneath
from handrail.workspace.search.engine import Engine, SearchScope
from handrail.workspace.text import decode_text

MAX_FILE_BYTES = 1 << 20
"""Larger files are listed without chunks."""
_BATCH_FILES = 100
"""Files that are stored in one transaction."""
_SETTLED_NANOSECONDS = 50_000_000
"""How long after a change a second one may have the same time."""
_Row = tuple[bytes, int, int, bytes, list[ChunkWords]]


class Coverage(msgspec.Struct, frozen=True):
    """How much of a folder is indexed."""

    indexed: int
    files: int
    walked: bool
    """Whether all files were listed. Otherwise `files` is a lower bound."""


def refresh_index(
    index: CodeIndex,
    engine: Engine,
    scope: SearchScope,
    query: str,
    seconds: float,
    cancelled: Callable[[], bool] = lambda: False,
) -> Coverage:
    """Index the files that changed, as many as the time allows. The next call continues.

    Changed files come first, then new ones whose path has words of the query.
    """
    end = time.monotonic() + seconds
    is_late = False

    def stop() -> bool:
        nonlocal is_late
        is_late = is_late or time.monotonic() > end or cancelled()
        return is_late

    known = index.list_files()
    current = dict(_list_files(engine, scope, stop))
    walked = not is_late
    if walked and (gone := known.keys() - current.keys()):
        index.drop_files(gone)
    outdated = [path for path, status in current.items() if not _is_same(known.get(path), status)]
    outdated.sort(key=_build_order(known, query))
    done = 0
    for batch in _read_batches(index, scope, known, outdated, stop):
        index.put_files(rows for rows in batch if rows is not None)
        done += len(batch)
    return Coverage(len(current) - len(outdated) + done, len(current), walked)


def _list_files(engine: Engine, scope: SearchScope, stop: Callable[[], bool]) -> Iterator[tuple[bytes, os.stat_result]]:
    """The regular files that are neither ignored nor credentials, while the engine still walks."""
    for paths in engine.files(scope, stop):
        folders: dict[bytes, list[bytes]] = {}
        for path in paths:
            folders.setdefault(path[: path.rfind(b"/") + 1], []).append(path)
        for folder, inside in folders.items():
            yield from _stat_files(scope, folder, inside)


def _stat_files(scope: SearchScope, folder: bytes, paths: list[bytes]) -> Iterator[tuple[bytes, os.stat_result]]:
    """The regular files in a folder, which ends in a slash and is opened once."""
    start = len(folder)
    try:
        opened = open_beneath(scope.folder, os.fsdecode(folder[:-1]) or ".", ENTER_FOLDER, kernel=scope.kernel)
    except OSError:
        return
    with closing_descriptor(opened):
        for path in paths:
            try:
                status = os.stat(path[start:], dir_fd=opened, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status


def _is_same(known: IndexedFile | None, status: os.stat_result) -> bool:
    return known is not None and (known.size, known.changed) == (status.st_size, status.st_ctime_ns)


def _build_order(known: dict[bytes, IndexedFile], query: str) -> Callable[[bytes], tuple[bool, int, int, bytes]]:
    wanted = set(split_words(query).lower().split())

    def order(path: bytes) -> tuple[bool, int, int, bytes]:
        shared = len(wanted.intersection(split_words(os.fsdecode(path)).lower().split())) if wanted else 0
        return path not in known, -shared, path.count(b"/"), path

    return order


def _read_batches(
    index: CodeIndex,
    scope: SearchScope,
    known: dict[bytes, IndexedFile],
    paths: list[bytes],
    stop: Callable[[], bool],
) -> Iterator[list[_Row | None]]:
    """The rows of files in batches. None for a file that needs none."""
    batch: list[_Row | None] = []
    for path in paths:
        if stop():
            break
        row, before = _read_file(scope, path), known.get(path)
        if row is not None and before is not None and row[3] == before.hash:
            index.set_time(before.id, row[2])
            row = None
        batch.append(row)
        if len(batch) >= _BATCH_FILES:
            yield batch
            batch = []
    if batch:
        yield batch


def _read_file(scope: SearchScope, path: bytes) -> _Row | None:
    """What the index stores of a file. None if it cannot be read, or is a credential under another name."""
    try:
        with closing_descriptor(
            open_beneath(scope.folder, os.fsdecode(path), READ_FILE, kernel=scope.kernel)
        ) as descriptor:
            status = os.fstat(descriptor)
            linked = status.st_nlink > 1 and (status.st_dev, status.st_ino) in scope.credential_files()
            if linked or not stat.S_ISREG(status.st_mode):
                return None
            data = read_start(descriptor, MAX_FILE_BYTES) if status.st_size <= MAX_FILE_BYTES else b""
    except OSError:
        return None
    is_settled = time.time_ns() - status.st_ctime_ns > _SETTLED_NANOSECONDS
    decoded = decode_text(data)
    chunks = split_file(os.fsdecode(path), decoded.text) if decoded is not None else []
    digest = short_sha256(data).digest()
    return path, status.st_size, status.st_ctime_ns if is_settled else 0, digest, _build_words(path, chunks)


def _build_words(path: bytes, chunks: list[Chunk]) -> list[ChunkWords]:
    words = split_words(os.path.splitext(path)[0].decode(errors="replace"))
    return [
        ChunkWords(
            line=chunk.line,
            end_line=chunk.end_line,
            name=chunk.name,
            kind=chunk.kind,
            parent=chunk.parent,
            signature=chunk.signature,
            name_words=split_words(chunk.name),
            parent_words=split_words(chunk.parent),
            path_words=words,
            body_words=split_words(chunk.text),
        )
        for chunk in chunks
    ]
