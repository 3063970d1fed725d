"""The encoding of text files, which keeps untouched bytes as they are."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from handrail.edit.lines import LineEnding, Replacement, detect_line_ending

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]
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
    plain = _decode_plain_utf8(data)
    encoding = "utf-8" if plain is not None else detect_encoding(data)
    if encoding is None:
        return None
    mark = find_byte_order_mark(encoding)
    text, damaged = (plain, 0) if plain is not None else decode_page(data.removeprefix(mark), encoding)
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


class LosslessText(msgspec.Struct, frozen=True):
    """Text that stands for every byte of a file, invalid ones too, so that a part can be replaced."""

    data: bytes
    text: str
    """With its own line endings. Invalid bytes are lone surrogates, which no valid text has."""
    encoding: Encoding
    line_ending: LineEnding
    damaged: bool = False
    """Whether there are invalid bytes."""


def decode_lossless(data: bytes) -> LosslessText | None:
    """The text of a file. None if it is not text."""
    plain = _decode_plain_utf8(data)
    if plain is not None:
        return LosslessText(data, plain, "utf-8", detect_line_ending(plain))
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    codec, errors = _find_codec(encoding)
    # An odd byte at the end of UTF-16 is half a character, and stays.
    end = len(data) - len(data) % (2 if encoding.startswith("utf-16") else 1)
    text = str(memoryview(data)[len(find_byte_order_mark(encoding)) : end], codec, errors)
    return LosslessText(data, text, encoding, detect_line_ending(text), damaged=replace_surrogates(text) != text)


def splice_bytes(file: LosslessText, replacements: Iterable[Replacement]) -> bytes:
    """Replaces parts of the text, in order, and copies all other bytes.

    UnicodeEncodeError if the encoding lacks a character.
    """
    return b"".join(_splice_parts(file, replacements))


def replace_surrogates(text: str) -> str:
    """The text as `read` shows it, of the same length, with U+FFFD for lone surrogates."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def _decode_plain_utf8(data: bytes) -> str | None:
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


def _splice_parts(file: LosslessText, replacements: Iterable[Replacement]) -> Iterator[bytes | memoryview]:
    codec, _ = _find_codec(file.encoding)
    view = memoryview(file.data)
    at = copied = 0
    here = len(find_byte_order_mark(file.encoding))
    for start, end, text in replacements:
        here += _count_bytes(file, at, start)
        yield view[copied:here]
        yield text.encode(codec)
        copied = here = here + _count_bytes(file, start, end)
        at = end
    yield view[copied:]


def _count_bytes(file: LosslessText, start: int, end: int) -> int:
    if file.encoding == "latin-1" or (file.text.isascii() and not file.encoding.startswith("utf-16")):
        return end - start
    return len(file.text[start:end].encode(*_find_codec(file.encoding)))


def _find_codec(encoding: Encoding) -> tuple[str, str]:
    """Python's name of the codec, and its error handler for invalid bytes."""
    if encoding.startswith("utf-16"):
        return encoding, "surrogatepass"
    return ("latin-1", "strict") if encoding == "latin-1" else ("utf-8", "surrogateescape")
