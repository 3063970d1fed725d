"""Brings the code index of a folder up to date with its files."""

import os
import stat
import time
from collections.abc import Callable, Iterator

import msgspec

from handrail.code.chunks import Chunk, split_file, split_words
from handrail.protocol.digest import short_sha256
from handrail.store.code_index import ChunkRow, CodeIndex, FileState
from handrail.workspace.file_state import read_start
from handrail.workspace.resolve import READ_FILE, closing_descriptor, open_beneath
from handrail.workspace.search.engine import Engine, SearchScope
from handrail.workspace.text import decode_text

MAX_FILE_BYTES = 1 << 20
"""Larger files are listed without chunks."""
_BATCH_FILES = 100
"""Files that are stored in one transaction."""
_SETTLED_NANOSECONDS = 50_000_000
"""How long after a change a second one may have the same time."""
_Row = tuple[bytes, int, int, bytes, list[ChunkRow]]


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

    known, current = index.list_states(), set(_list_states(engine, scope, stop))
    walked = not is_late
    outdated = [path for path, _, _ in current - known]
    before = {path for path, _, _ in known - current}
    if walked and (gone := before.difference(outdated)):
        index.drop_files(gone)
    outdated.sort(key=_build_order(before, query))
    done = 0
    for batch in _read_batches(index, scope, before, outdated, stop):
        index.put_files(rows for rows in batch if rows is not None)
        done += len(batch)
    return Coverage(len(current) - len(outdated) + done, len(current), walked)


def _list_states(engine: Engine, scope: SearchScope, stop: Callable[[], bool]) -> Iterator[FileState]:
    """The regular files that are neither ignored nor credentials, while the engine still walks.

    A folder that became a link meanwhile is followed here. Content is read without following links.
    """
    for paths in engine.files(scope, stop):
        for path in paths:
            try:
                status = os.stat(path, dir_fd=scope.folder, follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode):
                yield path, status.st_size, status.st_ctime_ns


def _build_order(changed: set[bytes], query: str) -> Callable[[bytes], tuple[bool, int, int, bytes]]:
    wanted = set(split_words(query).lower().split())

    def order(path: bytes) -> tuple[bool, int, int, bytes]:
        shared = len(wanted.intersection(split_words(os.fsdecode(path)).lower().split())) if wanted else 0
        return path not in changed, -shared, path.count(b"/"), path

    return order


def _read_batches(
    index: CodeIndex,
    scope: SearchScope,
    changed: set[bytes],
    paths: list[bytes],
    stop: Callable[[], bool],
) -> Iterator[list[_Row | None]]:
    """The rows of files in batches. None for a file that needs none."""
    batch: list[_Row | None] = []
    for path in paths:
        if stop():
            break
        row = _read_file(scope, path)
        if row is not None and path in changed and row[3] == index.get_hash(path):
            index.set_time(path, row[2])
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
    words = split_words(os.path.splitext(path)[0].decode(errors="replace"))
    chunks = split_file(os.fsdecode(path), decoded.text) if decoded is not None else []
    rows = [_build_row(chunk, words) for chunk in chunks]
    return path, status.st_size, status.st_ctime_ns if is_settled else 0, short_sha256(data).digest(), rows


def _build_row(chunk: Chunk, path_words: str) -> ChunkRow:
    words = (split_words(chunk.name), split_words(chunk.parent), path_words, split_words(chunk.text))
    return (*chunk[:6], *words)
