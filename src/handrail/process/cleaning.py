"""Makes what a command printed into text for the model: as a person would see it when it is over.

Sequences for a terminal are left out. Of a line that was written over and over (a progress bar) its last state stays.
Control characters, but for tab and newline, and bytes that are no UTF-8 become U+FFFD.
"""

import codecs
import re

from handrail.process.escapes import count_unfinished_escape, remove_escapes

_MAX_LINE_CHARS = 1 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REPLACED = {code: "�" for code in (*range(32), *range(127, 160)) if code not in b"\t\n"}
# Both are tried where a run or a line begins, and nowhere else: no text makes them take more than linear time.
_RETURNS_AT_END = re.compile(r"(?<!\r)\r++(?=\n|\Z)")
_WRITTEN_OVER = re.compile(r"^[^\n]*\r", re.MULTILINE)


def clean_output(data: bytes) -> str:
    """All of it at once."""
    cleaner = Cleaner()
    return cleaner.feed(data) + cleaner.end()


class Cleaner:
    """The same in pieces, cut anywhere. Gives whole lines; a line over 1 MB in parts."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = ""
        """The beginning of a sequence that is not complete."""
        self._line: list[str] = []
        self._length = 0

    def feed(self, data: bytes) -> str:
        """What can be said by now."""
        return self._take(self._decoder.decode(data))

    def end(self) -> str:
        """The last line; the cleaner is as new then."""
        text = self._take(self._decoder.decode(b"", final=True))
        self._line.append(remove_escapes(self._escape))
        self._escape = ""
        return text + _finished(self._whole_line())

    def _take(self, text: str) -> str:
        text = self._escape + text
        held = count_unfinished_escape(text)
        self._escape = text[len(text) - held :]
        lines, newline, rest = remove_escapes(text[: len(text) - held]).rpartition("\n")
        done = _finished(self._whole_line() + lines) + newline if newline else ""
        self._line.append(rest)
        self._length += len(rest)
        return done + self._too_much() if self._length > _MAX_LINE_CHARS else done

    def _whole_line(self) -> str:
        line = "".join(self._line)
        self._line, self._length = [], 0
        return line

    def _too_much(self) -> str:
        """Passes a line on that is too long to be kept, unless most of it was written over."""
        line = self._whole_line()
        kept = _finished(line)
        if len(kept) * 2 > _MAX_LINE_CHARS:
            return kept
        ends = "\r" if line.endswith("\r") else ""
        self._line, self._length = [kept + ends], len(kept) + 1
        return ""


def _finished(text: str) -> str:
    """Whole lines, as they look in the end."""
    if "\b" in text:
        text = "".join(_without_backspaces(part) for part in re.split("([\r\n])", text))
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = _WRITTEN_OVER.sub("", _RETURNS_AT_END.sub("", text))
    return text.translate(_REPLACED) if _CONTROL.search(text) else text


def _without_backspaces(text: str) -> str:
    if "\b" not in text:
        return text
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)
