"""A file's text in which every byte can be told, also those that are no text, so that a part can be exchanged."""

import re
from collections.abc import Iterable, Iterator

import msgspec

from handrail.edit.newlines import LineEnding, Replacement, detect_line_ending
from handrail.workspace.text import Encoding, decode_plain_utf8, detect_encoding, find_byte_order_mark


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
