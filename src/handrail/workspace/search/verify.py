"""Checks that results of an engine hold: inside the folder, now, with the same bytes."""

import codecs
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import groupby

from handrail.workspace.resolve import LIST_FOLDER, READ_FILE, open_beneath
from handrail.workspace.search.engine import FileHits, HitLine, SearchScope
from handrail.workspace.text import UTF16_MARKS

_MAX_SINGLE_LOOKUPS = 8
"""Names of one folder that are looked up one by one. For more, the folder is listed."""
_MAX_SPAN_BYTES = 1 << 16
"""Lines within so many bytes are read at once."""
_PIECE_BYTES = 1 << 20


def verify_names(scope: SearchScope, paths: Sequence[bytes]) -> Iterator[bytes]:
    """Yield the paths that are regular files. `paths` are in order: each folder is opened once."""
    for parent, group in groupby(paths, key=lambda path: path.rpartition(b"/")[0]):
        names = {path.rpartition(b"/")[2]: path for path in group}
        try:
            descriptor = open_beneath(scope.folder, os.fsdecode(parent) or ".", LIST_FOLDER, kernel=scope.kernel)
        except OSError:
            continue
        try:
            regular = _list_files(descriptor, names)
            yield from (path for name, path in names.items() if name in regular)
        finally:
            os.close(descriptor)


def verify_hits(scope: SearchScope, hits: FileHits, most: int) -> FileHits | None:
    """Return the lines that the file holds at their places. None if there are none, or no such file inside.

    An engine need not read on after more hits than `most`. Then the rest of the file is checked for NULs here. A file
    with only oversized lines stays, without lines.
    """
    try:
        descriptor = open_beneath(scope.folder, os.fsdecode(hits.path), READ_FILE, kernel=scope.kernel)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _is_credential(scope, status):
            return None
        verified = FileHits(hits.path, _verify_lines(descriptor, hits.lines), hits.oversized, hits.unfinished)
        count = verified.count_hits()
        if (hits.unfinished or count > most) and _has_nul(descriptor):
            return None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if count:
        return verified
    return FileHits(hits.path, (), hits.oversized) if hits.oversized else None


def _list_files(folder: int, names: dict[bytes, bytes]) -> set[bytes]:
    if len(names) <= _MAX_SINGLE_LOOKUPS:
        return {name for name in names if _is_file(folder, name)}
    with os.scandir(folder) as entries:
        return {os.fsencode(entry.name) for entry in entries if entry.is_file(follow_symlinks=False)}


def _is_file(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_credential(scope: SearchScope, status: os.stat_result) -> bool:
    """Whether a file is a credential under another name."""
    return status.st_nlink > 1 and (status.st_dev, status.st_ino) in scope.credential_files()


def _verify_lines(descriptor: int, lines: tuple[HitLine, ...]) -> tuple[HitLine, ...]:
    mark = os.pread(descriptor, 3, 0)
    if mark[:2] in UTF16_MARKS:
        texts = codecs.iterdecode(_read_pieces(descriptor, 2), UTF16_MARKS[mark[:2]], "replace")
        return tuple(_verify_decoded((text.encode() for text in texts), lines))
    if not lines:
        return ()
    start, end = lines[0].offset, lines[-1].offset + len(lines[-1].data)
    shift = len(codecs.BOM_UTF8) if mark == codecs.BOM_UTF8 else 0
    if end - start <= _MAX_SPAN_BYTES:
        data = os.pread(descriptor, end - start, start + shift)
        return tuple(line for line in lines if data.startswith(line.data, line.offset - start))
    return tuple(line for line in lines if os.pread(descriptor, len(line.data), line.offset + shift) == line.data)


def _verify_decoded(pieces: Iterator[bytes], lines: Sequence[HitLine]) -> Iterator[HitLine]:
    """Yield the lines, which are in the file's order, that the text in UTF-8 holds."""
    text, start = b"", 0
    for line in lines:
        while start + len(text) < line.offset + len(line.data):
            piece = next(pieces, None)
            if piece is None:
                break
            passed = max(0, min(line.offset - start, len(text)))
            text, start = text[passed:] + piece, start + passed
        if line.offset >= start and text.startswith(line.data, line.offset - start):
            yield line


def _has_nul(descriptor: int) -> bool:
    """Whether a file holds a NUL, so is no text. In UTF-16 nearly every character has one."""
    if os.pread(descriptor, 2, 0) in UTF16_MARKS:
        return False
    return any(b"\0" in piece for piece in _read_pieces(descriptor, 0))


def _read_pieces(descriptor: int, offset: int) -> Iterator[bytes]:
    while piece := os.pread(descriptor, _PIECE_BYTES, offset):
        yield piece
        offset += len(piece)
