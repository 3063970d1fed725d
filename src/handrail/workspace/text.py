"""Text files: their encoding, their line endings."""

import codecs
from typing import Literal

import msgspec

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]
LineEnding = Literal["lf", "crlf", "mixed", "none"]
SAMPLE_BYTES = 8192

UTF16_MARKS: dict[bytes, Encoding] = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
"""Encodings by their byte order marks."""
_MARKS: dict[bytes, Encoding] = {codecs.BOM_UTF8: "utf-8-sig", **UTF16_MARKS}
_CONTROLS = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b"))
_MARK_STARTS = frozenset(mark[:1] for mark in _MARKS)


class DecodedText(msgspec.Struct, frozen=True):
    """Decoded text with newlines as line endings, and the original form."""

    text: str
    encoding: Encoding
    line_ending: LineEnding
    damaged: int = 0
    """Number of invalid bytes, which are shown as U+FFFD."""


def detect_encoding(data: bytes) -> Encoding | None:
    """The likely encoding of a file. None if it is not text."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return encoding
    if b"\0" in data[:SAMPLE_BYTES]:
        return None
    try:
        data.decode()
    except UnicodeDecodeError:
        return None if _is_binary(data[:SAMPLE_BYTES]) else "utf-8" if _has_utf8(data) else "latin-1"
    return "utf-8"


def detect_start_encoding(sample: bytes) -> Encoding | None:
    """The likely encoding by the first bytes of a file, which may end inside a character."""
    return detect_encoding(trim_cut_character(sample))


def trim_cut_character(data: bytes) -> bytes:
    """UTF-8 without the last character, if that may be incomplete."""
    for back in range(1, min(4, len(data) + 1)):
        if data[-back] >= 0xC0:
            return data[:-back]
    return data


def decode_text(data: bytes) -> DecodedText | None:
    """The text of a file. None if it is not text."""
    encoding: Encoding | None = "utf-8"
    text, damaged = decode_plain_utf8(data), 0
    if text is None:
        encoding = detect_encoding(data)
        if encoding is None:
            return None
        text, damaged = decode_page(data.removeprefix(find_byte_order_mark(encoding)), encoding)
    ending = detect_line_ending(text)
    return DecodedText(text if ending in {"lf", "none"} else text.replace("\r\n", "\n"), encoding, ending, damaged)


def decode_page(data: bytes, encoding: Encoding) -> tuple[str, int]:
    """Decodes whole characters without a byte order mark, and counts the invalid bytes."""
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        return data.decode(name), 0
    except UnicodeDecodeError:
        text = data.decode(name, "replace")
        return text, max(1, text.count("\ufffd") - data.count("\ufffd".encode()))


def find_byte_order_mark(encoding: Encoding) -> bytes:
    """The byte order mark of an encoding. Empty if it has none."""
    return next((mark for mark, name in _MARKS.items() if name == encoding), b"")


def encode_text(text: str, encoding: Encoding, line_ending: LineEnding) -> bytes:
    """Encodes text as the file had it. UnicodeEncodeError if the encoding lacks a character."""
    if line_ending == "crlf":
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return find_byte_order_mark(encoding) + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


def decode_plain_utf8(data: bytes) -> str | None:
    """The text of a UTF-8 file without a mark, as nearly every file is. None for any other file."""
    if data[:1] in _MARK_STARTS or data.find(b"\0", 0, SAMPLE_BYTES) >= 0:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _is_binary(sample: bytes) -> bool:
    """Whether bytes that are no UTF-8 are full of control characters: compressed or compiled, though without a NUL."""
    return (len(sample) - len(sample.translate(None, _CONTROLS))) * 32 > len(sample)


def _has_utf8(data: bytes) -> bool:
    """Whether damaged text has multi-byte characters of UTF-8, so that it is in no one-byte encoding."""
    return any(ord(character) > 127 for character in data.decode("utf-8", "ignore"))


def detect_line_ending(text: str) -> LineEnding:
    if "\r" not in text:  # much faster than counting
        return "lf" if "\n" in text else "none"
    newlines = text.count("\n")
    if not newlines:
        return "none"
    pairs = text.count("\r\n")
    return "crlf" if pairs == newlines else "mixed" if pairs else "lf"
