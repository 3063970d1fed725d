"""A text with positions: characters for handrail, UTF-16 code units for the protocol."""

import os
import re
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

from handrail.edit.lines import Replacement, normalize_newlines
from handrail.lsp.messages import LspPosition, LspRange, LspTextEdit
from handrail.protocol.errors import ToolError
from handrail.protocol.text import escape_control, truncate
from handrail.workspace.lossless_text import LosslessText, replace_surrogates

_LINE_END = re.compile(r"\r\n|\n|\r")
_UNITS = "utf-16-le"
_WORD = re.compile(r"\w+")


class SourceText:
    """The text of a file."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._lines = _LINE_END.split(text)
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    @property
    def line_count(self) -> int:
        return len(self._lines)

    def get_line(self, line: int) -> str:
        """A line without its end. Empty if there is none."""
        return self._lines[line] if line < self.line_count else ""

    def to_lsp(self, line: int, character: int) -> LspPosition:
        """The position of a character. INVALID_ARGUMENT if the text has none there."""
        text = self.get_line(line)
        if line >= self.line_count or character > len(text):
            in_line = f"line {line} has {len(text)} characters"
            has = in_line if line < self.line_count else f"it has {self.line_count} lines"
            message = f"The file has no position {line}:{character}: {has}. Both count from 0."
            raise ToolError("INVALID_ARGUMENT", message)
        return LspPosition(line, len(text[:character].encode(_UNITS, "surrogatepass")) // 2)

    def to_character(self, position: LspPosition) -> int:
        """The character of a position. One past the end of the line is the end."""
        units = self.get_line(position.line).encode(_UNITS, "surrogatepass")[: 2 * position.character]
        return len(units.decode(_UNITS, "ignore"))

    def find_offset(self, position: LspPosition) -> int:
        if position.line >= self.line_count:
            return len(self.text)
        return self._starts[position.line] + self.to_character(position)

    def slice(self, place: LspRange) -> str:
        return self.text[self.find_offset(place.start) : self.find_offset(place.end)]

    def find_word(self, line: int, character: int) -> str:
        """The word at a position, or before it. Empty if there is none."""
        words = _WORD.finditer(self.get_line(line))
        return next((word[0] for word in words if word.start() <= character <= word.end()), "")

    def list_replacements(self, edits: Iterable[LspTextEdit]) -> list[Replacement]:
        """The edits in the order of the text. CONFLICT if two overlap."""
        found = [
            Replacement(self.find_offset(one.range.start), self.find_offset(one.range.end), one.new_text)
            for one in edits
        ]
        found.sort(key=lambda one: one[:2])
        ends = (0, *(one.end for one in found))
        if any(one.start < end or one.end < one.start for one, end in zip(found, ends, strict=False)):
            raise ToolError("CONFLICT", "The language server sent edits that overlap. Nothing was changed.")
        return [one._replace(text=_LINE_END.sub("\n", one.text)) for one in found]


def decode_source(data: bytes) -> SourceText | None:
    """The text as tools edit it: with plain newlines. None if it is not text."""
    file = LosslessText.decode(data)
    return None if file is None else SourceText(replace_surrogates(normalize_newlines(file.text)))


def clean_text(text: str, most: int) -> str:
    """A text of a server with its lines, without control characters."""
    lines = text[: 2 * most].replace("\xa0", " ").strip().splitlines()
    return truncate("\n".join(map(escape_control, lines)), most)


def to_uri(path: str) -> str:
    return f"file://{quote(os.fsencode(path))}"


def parse_uri(uri: str) -> str | None:
    """The path of a file. None for other addresses."""
    if not uri.startswith("file://"):
        return None
    try:
        path = unquote(urlsplit(uri).path, errors="surrogateescape")
    except ValueError:
        return None
    return os.path.normpath(path) if path.startswith("/") and "\0" not in path else None
