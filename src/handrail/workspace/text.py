"""Bytes to text and back, so that what was not meant to change does not: encoding, byte order mark, line endings."""

import codecs
from typing import Literal

import msgspec

LineEnding = Literal["lf", "crlf", "mixed", "none"]
Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]
SAMPLE = 8192

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


_MARK_STARTS = frozenset(mark[:1] for mark, _ in _MARKS)


class Text(msgspec.Struct, frozen=True):
    """Decoded text, its lines ended by a newline, and what it takes to write it back."""

    text: str
    encoding: Encoding
    line_ending: LineEnding
    damaged: int = 0
    """Bytes that are not valid in the encoding; shown as U+FFFD."""


def encoding_of(sample: bytes) -> Encoding | None:
    """The encoding a file's first bytes speak for; None when they are not text."""
    for mark, encoding in _MARKS:
        if sample.startswith(mark):
            return encoding
    if b"\0" in sample[:SAMPLE]:
        return None
    return "utf-8" if _speaks_utf8(sample) else "latin-1"


def decoded(data: bytes) -> Text | None:
    """The text of a whole file; None when it is not text."""
    plain = _plain_utf8(data)
    encoding = "utf-8" if plain is not None else encoding_of(data)
    if encoding is None:
        return None
    text, damaged = (plain, 0) if plain is not None else _decode(_without_mark(data, encoding), encoding)
    ending = line_ending_of(text)
    return Text(text if ending in {"lf", "none"} else text.replace("\r\n", "\n"), encoding, ending, damaged)


def decoded_page(data: bytes, encoding: Encoding) -> tuple[str, int]:
    """A part of a file that begins and ends between characters."""
    return _decode(_without_mark(data, encoding), encoding)


def encoded(text: str, encoding: Encoding, line_ending: LineEnding) -> bytes:
    """Text as the file had it; UnicodeEncodeError when the encoding has no such character."""
    if line_ending == "crlf" and "\r\n" not in text:
        text = text.replace("\n", "\r\n")
    mark = next((mark for mark, name in _MARKS if name == encoding), b"")
    return mark + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


def line_ending_of(text: str) -> LineEnding:
    """How the lines end."""
    newlines = text.count("\n")
    if not newlines:
        return "none"
    pairs = text.count("\r\n")
    return "crlf" if pairs == newlines else "mixed" if pairs else "lf"


def _plain_utf8(data: bytes) -> str | None:
    """The text of nearly every file, decoded once."""
    if data[:1] in _MARK_STARTS or data.find(b"\0", 0, SAMPLE) >= 0:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _without_mark(data: bytes, encoding: Encoding) -> bytes:
    mark = next((mark for mark, name in _MARKS if name == encoding), b"")
    return data.removeprefix(mark)


def _decode(data: bytes, encoding: Encoding) -> tuple[str, int]:
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        return data.decode(name), 0
    except UnicodeDecodeError:
        text = data.decode(name, "replace")
        return text, max(1, text.count("\ufffd") - data.count("\ufffd".encode()))


def _speaks_utf8(sample: bytes) -> bool:
    """Valid, or damaged but with characters that only UTF-8 writes this way: then not some one-byte encoding."""
    try:
        sample.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(sample) and error.reason == "unexpected end of data" and error.start >= len(sample) - 3:
            return True
        return any(ord(character) > 127 for character in sample.decode("utf-8", "ignore"))
    return True
