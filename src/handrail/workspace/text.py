"""Encodings of text files."""

import codecs
import re
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from handrail.edit.lines import LineEnding, Replacement, detect_line_ending

# § [workspace.text] Bytes to text and back, so that what was not meant to change does not: encoding, byte order
# § mark, line endings.

Encoding = Literal["utf-8", "utf-8-sig", "utf-16-le", "utf-16-be", "latin-1"]
SAMPLE_BYTES = 8192

_MARKS: tuple[tuple[bytes, Encoding], ...] = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


_CONTROLS = bytes(set(range(32)) - set(b"\a\b\t\n\v\f\r\x1b"))
_MARK_STARTS = frozenset(mark[:1] for mark, _ in _MARKS)


class DecodedText(msgspec.Struct, frozen=True):
    """Decoded text, its lines ended by a newline, and what it takes to write it back."""

    text: str
    encoding: Encoding
    line_ending: LineEnding
    damaged: int = 0
    """Bytes that are not valid in the encoding; shown as U+FFFD."""


def detect_encoding(data: bytes) -> Encoding | None:
    """The encoding that bytes speak for; None when they are not text."""
    for mark, encoding in _MARKS:
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
    """The same by the first bytes of a file, which may end inside a character."""
    return detect_encoding(trim_cut_character(sample))


def trim_cut_character(data: bytes) -> bytes:
    """UTF-8 without the character at its end, if that may have been cut through."""
    for back in range(1, min(4, len(data) + 1)):
        if data[-back] >= 0xC0:
            return data[:-back]
    return data


def decode_text(data: bytes) -> DecodedText | None:
    """The text of a whole file; None when it is not text."""
    plain = decode_plain_utf8(data)
    encoding = "utf-8" if plain is not None else detect_encoding(data)
    if encoding is None:
        return None
    text, damaged = (
        (plain, 0) if plain is not None else _decode(data.removeprefix(find_byte_order_mark(encoding)), encoding)
    )
    ending = detect_line_ending(text)
    return DecodedText(text if ending in {"lf", "none"} else text.replace("\r\n", "\n"), encoding, ending, damaged)


def decode_page(data: bytes, encoding: Encoding) -> tuple[str, int]:
    """A part of a file, without its mark, that begins and ends between characters; and how many bytes are damaged."""
    return _decode(data, encoding)


def find_byte_order_mark(encoding: Encoding) -> bytes:
    """The byte order mark that a file in this encoding begins with."""
    return next((mark for mark, name in _MARKS if name == encoding), b"")


def encode_text(text: str, encoding: Encoding, line_ending: LineEnding) -> bytes:
    """Text as the file had it; UnicodeEncodeError when the encoding has no such character."""
    if line_ending == "crlf":
        text = text.replace("\r\n", "\n").replace("\n", "\r\n")
    return find_byte_order_mark(encoding) + text.encode("utf-8" if encoding == "utf-8-sig" else encoding)


def decode_plain_utf8(data: bytes) -> str | None:
    """The text of nearly every file, decoded once."""
    if data[:1] in _MARK_STARTS or data.find(b"\0", 0, SAMPLE_BYTES) >= 0:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _decode(data: bytes, encoding: Encoding) -> tuple[str, int]:
    name = "utf-8" if encoding == "utf-8-sig" else encoding
    try:
        return data.decode(name), 0
    except UnicodeDecodeError:
        text = data.decode(name, "replace")
        return text, max(1, text.count("\ufffd") - data.count("\ufffd".encode()))


def _is_binary(sample: bytes) -> bool:
    """Not UTF-8 and full of control characters: compressed or compiled, though it happens to hold no zero."""
    return (len(sample) - len(sample.translate(None, _CONTROLS))) * 32 > len(sample)


def _has_utf8(data: bytes) -> bool:
    """Damaged, but with characters that only UTF-8 writes this way: so not some one-byte encoding."""
    return any(ord(character) > 127 for character in data.decode("utf-8", "ignore"))


# § [workspace.lossless] A file's text in which every byte can be told, also those that are no text, so that a part
# § can be exchanged.


class LosslessText(msgspec.Struct, frozen=True):
    """The bytes, and the text they are, line endings as they are."""

    data: bytes
    text: str
    """Bytes that are not valid in the encoding are lone surrogates, which no other text has."""
    encoding: Encoding
    line_ending: LineEnding
    damaged: bool = False
    """Whether there are such bytes."""


def decode_lossless(data: bytes) -> LosslessText | None:
    """The text of a whole file; None when it is not text."""
    plain = decode_plain_utf8(data)
    if plain is not None:
        return LosslessText(data, plain, "utf-8", detect_line_ending(plain))
    encoding = detect_encoding(data)
    if encoding is None:
        return None
    codec, errors = _codec(encoding)
    # A single byte at the end of UTF-16 is half a character: it stays where it is.
    end = len(data) - len(data) % (2 if encoding.startswith("utf-16") else 1)
    text = str(memoryview(data)[len(find_byte_order_mark(encoding)) : end], codec, errors)
    return LosslessText(data, text, encoding, detect_line_ending(text), damaged=replace_surrogates(text) != text)


def splice_bytes(file: LosslessText, replacements: Iterable[Replacement]) -> bytes:
    """The bytes with parts of the text replaced, in order; UnicodeEncodeError where the encoding lacks a character.

    All other bytes are copied, not encoded again.
    """
    return b"".join(_parts(file, replacements))


def replace_surrogates(text: str) -> str:
    """The text as `read` shows it, of the same length: what is no character is U+FFFD."""
    return text if text.isascii() else re.sub("[\ud800-\udfff]", "\ufffd", text)


def _parts(file: LosslessText, replacements: Iterable[Replacement]) -> Iterator[bytes | memoryview]:
    codec, _ = _codec(file.encoding)
    view = memoryview(file.data)
    at = copied = 0
    here = len(find_byte_order_mark(file.encoding))
    for start, end, text in replacements:
        here += _size(file, at, start)
        yield view[copied:here]
        yield text.encode(codec)
        copied = here = here + _size(file, start, end)
        at = end
    yield view[copied:]


def _size(file: LosslessText, start: int, end: int) -> int:
    """How many bytes a part of the text is."""
    if file.encoding == "latin-1" or (file.text.isascii() and not file.encoding.startswith("utf-16")):
        return end - start
    return len(file.text[start:end].encode(*_codec(file.encoding)))


def _codec(encoding: Encoding) -> tuple[str, str]:
    """The name Python has for it, and how bytes that are not valid in it get through."""
    if encoding.startswith("utf-16"):
        return encoding, "surrogatepass"
    return ("latin-1", "strict") if encoding == "latin-1" else ("utf-8", "surrogateescape")
