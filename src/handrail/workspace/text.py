"""Text files: their encoding, their line endings, replacements that leave other bytes alone."""

import codecs
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, Self

import msgspec

from handrail.edit.lines import Replacement, apply_replacements, count_common_end, count_common_start

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
    text, damaged = _decode_plain_utf8(data), 0
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


class LosslessText(msgspec.Struct, frozen=True):
    """Text that stands for every byte of a file, invalid ones too, so that a part can be replaced."""

    data: bytes
    text: str
    """With its own line endings. Invalid bytes are lone surrogates, which no valid text has."""
    encoding: Encoding
    line_ending: LineEnding
    damaged: bool = False
    """Whether there are invalid bytes."""

    @classmethod
    def decode(cls, data: bytes) -> Self | None:
        """The text of a file. None if it is not text."""
        plain = _decode_plain_utf8(data)
        if plain is not None:
            return cls(data, plain, "utf-8", detect_line_ending(plain))
        encoding = detect_encoding(data)
        if encoding is None:
            return None
        codec, errors = _find_codec(encoding)
        # An odd byte at the end of UTF-16 is half a character, and stays.
        end = len(data) - len(data) % (2 if encoding.startswith("utf-16") else 1)
        text = str(memoryview(data)[len(find_byte_order_mark(encoding)) : end], codec, errors)
        return cls(data, text, encoding, detect_line_ending(text), damaged=replace_surrogates(text) != text)

    def splice(self, replacements: Iterable[Replacement]) -> bytes:
        """Replaces parts of the text, in order, and copies all other bytes.

        UnicodeEncodeError if the encoding lacks a character.
        """
        return b"".join(_splice_parts(self, replacements))

    def restore_newlines(self, text: str, replacements: Sequence[Replacement], sent: str) -> Iterator[Replacement]:
        """Translate ordered replacements in the normalized `text` to this text with its own line endings.

        If this text has no newline, new lines take the line ending of the text that was `sent`.
        """
        if self.line_ending == "crlf":
            yield from _restore_crlf(text, replacements)
        elif self.line_ending == "mixed":
            yield from _restore_mixed(self.text, text, replacements)
        elif self.line_ending == "none" and detect_line_ending(sent) == "crlf":
            yield from (Replacement(start, end, _to_crlf(new)) for start, end, new in replacements)
        else:
            yield from replacements

    def predict_line_ending(self, replacements: Sequence[Replacement]) -> LineEnding:
        """The line ending after replacements from `restore_newlines`."""
        raw, ending = self.text, self.line_ending
        simple = ending == "crlf" or not ("\r" in raw or any("\r" in text for _, _, text in replacements))
        if not simple:
            return detect_line_ending(apply_replacements(raw, replacements))
        ends = (0, *(end for _, end, _ in replacements))
        starts = (*(start for start, _, _ in replacements), len(raw))
        keeps_newline = any(raw.find("\n", end, start) >= 0 for end, start in zip(ends, starts, strict=True))
        if not keeps_newline and not any("\n" in text for _, _, text in replacements):
            return "none"
        return "crlf" if ending == "crlf" else "lf"


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


def detect_line_ending(text: str) -> LineEnding:
    if "\r" not in text:  # much faster than counting
        return "lf" if "\n" in text else "none"
    newlines = text.count("\n")
    if not newlines:
        return "none"
    pairs = text.count("\r\n")
    return "crlf" if pairs == newlines else "mixed" if pairs else "lf"


def _to_crlf(text: str) -> str:
    return text.replace("\n", "\r\n")


def _restore_crlf(text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Shift each replacement by the newlines before it: each is one character longer in the raw text."""
    at = shift = 0
    for start, end, new in replacements:
        shift += text.count("\n", at, start)
        inner = text.count("\n", start, end)
        yield Replacement(start + shift, end + shift + inner, _to_crlf(new))
        at, shift = end, shift + inner


def _restore_mixed(raw: str, text: str, replacements: Sequence[Replacement]) -> Iterator[Replacement]:
    """Keep the endings of unchanged lines. New lines take the endings of the lines that they replace."""
    pairs = [match.start() - number for number, match in enumerate(re.finditer("\r\n", raw))]
    line_end, ending = -1, "\n"
    for replacement in replacements:
        start, end, new = _trim_common(text, replacement)
        first, last = start + bisect_left(pairs, start), end + bisect_left(pairs, end)
        if line_end < last and "\n" in new:  # searched once a line, which can be the whole file
            line_end, ending = _find_ending(raw, last)
        yield Replacement(first, last, _copy_endings(new, raw[first:last], ending))


def _trim_common(text: str, replacement: Replacement) -> Replacement:
    start, end, new = replacement
    old = text[start:end]
    head = count_common_start(old, new)
    tail = count_common_end(old[head:], new[head:])
    return Replacement(start + head, end - tail, new[head : len(new) - tail])


def _copy_endings(new: str, old: str, default: str) -> str:
    """End the new lines like the old lines, or with `default` if there are none."""
    endings: list[str] = re.findall("\r?\n", old) or [default]
    *lines, rest = new.split("\n")
    last = len(endings) - 1
    return "".join(f"{line}{endings[min(number, last)]}" for number, line in enumerate(lines)) + rest


def _find_ending(raw: str, position: int) -> tuple[int, str]:
    """Return where the line of a position ends, and its ending. The last line has that of the line before it."""
    at = raw.find("\n", position)
    last = raw.rfind("\n", 0, position) if at < 0 else at
    return len(raw) if at < 0 else at, "\r\n" if last > 0 and raw[last - 1] == "\r" else "\n"
