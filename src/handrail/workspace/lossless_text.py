"""Text of a file whose parts can be replaced without a change to its other bytes."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import msgspec

from handrail.edit.lines import Replacement, apply_replacements, count_common_end, count_common_start
from handrail.workspace.text import (
    Encoding,
    LineEnding,
    decode_plain_utf8,
    detect_encoding,
    detect_line_ending,
    find_byte_order_mark,
)


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
        plain = decode_plain_utf8(data)
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
