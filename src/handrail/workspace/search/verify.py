"""Looks again at what an engine named: only what is inside, now, and as it was said to be, is ever shown."""

import codecs
import os
import stat
from collections.abc import Iterator, Sequence
from itertools import groupby

from handrail.workspace.resolve import LIST_FOLDER, READ_FILE, open_beneath
from handrail.workspace.search.engine import FileHits, HitLine, SearchScope
from handrail.workspace.search.python_engine import UTF16

_MAX_SINGLE_LOOKUPS = 8
"""So many names of a folder are looked up one by one; for more, the folder is listed."""
_MAX_SPAN_BYTES = 1 << 16
"""Lines that lie together in so many bytes are read at once."""


def verify_names(where: SearchScope, paths: Sequence[bytes]) -> Iterator[bytes]:
    """Of paths below an open folder, in order, those that are regular files; each folder is opened once."""
    for parent, group in groupby(paths, key=lambda path: path.rpartition(b"/")[0]):
        names = {path.rpartition(b"/")[2]: path for path in group}
        try:
            descriptor = open_beneath(where.folder, os.fsdecode(parent) or ".", LIST_FOLDER, kernel=where.kernel)
        except OSError:
            continue
        try:
            yield from _files_among(descriptor, names)
        finally:
            os.close(descriptor)


def verify_hits(where: SearchScope, found: FileHits, most: int) -> FileHits | None:
    """The lines that the file really holds at their places; None where there are none, or no such file inside.

    An engine need not have read on after more hits than `most`, so whether such a file is text is looked up. A file
    with nothing but lines too long to be taken in stays, without lines.
    """
    try:
        descriptor = open_beneath(where.folder, os.fsdecode(found.path), READ_FILE, kernel=where.kernel)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or _is_credential(where, status):
            return None
        lines = _true_lines(descriptor, found.lines)
        read_on = not found.unfinished and sum(1 for line in lines if line.spans) <= most
        if not read_on and _has_nul(descriptor):
            return None
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if not any(line.spans for line in lines):
        return FileHits(found.path, (), found.oversized) if found.oversized else None
    return FileHits(found.path, lines, found.oversized, found.unfinished)


def _files_among(folder: int, names: dict[bytes, bytes]) -> Iterator[bytes]:
    if len(names) <= _MAX_SINGLE_LOOKUPS:
        there = {name for name in names if _is_file(folder, name)}
    else:
        with os.scandir(folder) as entries:
            there = {os.fsencode(entry.name) for entry in entries if entry.is_file(follow_symlinks=False)}
    return (path for name, path in names.items() if name in there)


def _is_file(folder: int, name: bytes) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_credential(where: SearchScope, status: os.stat_result) -> bool:
    """Whether a file is a credential under another name."""
    return status.st_nlink > 1 and (status.st_dev, status.st_ino) in where.credential_files()


def _true_lines(descriptor: int, lines: tuple[HitLine, ...]) -> tuple[HitLine, ...]:
    mark = os.pread(descriptor, 3, 0)
    if mark[:2] in UTF16:
        return tuple(_true_decoded(descriptor, UTF16[mark[:2]], lines))
    if not lines:
        return ()
    start, end = lines[0].offset, lines[-1].offset + len(lines[-1].data)
    shift = len(codecs.BOM_UTF8) if mark == codecs.BOM_UTF8 else 0
    if end - start <= _MAX_SPAN_BYTES:
        near = os.pread(descriptor, end - start, start + shift)
        return tuple(line for line in lines if near.startswith(line.data, line.offset - start))
    return tuple(line for line in lines if os.pread(descriptor, len(line.data), line.offset + shift) == line.data)


def _has_nul(descriptor: int) -> bool:
    """Whether a file holds a NUL, and is therefore no text; in UTF-16 nearly every character has one."""
    offset = 0
    while piece := os.pread(descriptor, 1 << 20, offset):
        if offset == 0 and piece[:2] in UTF16:
            return False
        if b"\0" in piece:
            return True
        offset += len(piece)
    return False


def _true_decoded(descriptor: int, encoding: str, lines: Sequence[HitLine]) -> Iterator[HitLine]:
    """Of lines in the file's order, those that are in the text as ripgrep saw it: without its mark, in UTF-8."""
    pieces = _decoded(descriptor, encoding)
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


def _decoded(descriptor: int, encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    offset = 2
    while piece := os.pread(descriptor, 1 << 20, offset):
        yield decoder.decode(piece).encode()
        offset += len(piece)
    yield decoder.decode(b"", final=True).encode()
