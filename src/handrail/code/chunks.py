"""Splits files into chunks, the parts that a search finds: a definition, or lines outside of definitions."""

import re
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from handrail.code.languages import find_language
from handrail.code.symbols import Symbol, list_symbols
from handrail.protocol.errors import ToolError

_WORD = re.compile(r"[^\W\d]\w*|\d{2,}")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
_CONTAINERS = frozenset(
    ("class", "enum", "heading", "impl", "interface", "module", "namespace", "record", "rule", "struct", "trait")
)
"""Definitions that hold others. Their chunk ends where the first one begins."""
_LEAVES = frozenset(("constructor", "function", "macro", "method", "type", "union"))
_ABOVE = ("@", "#", "//", "/*", "*", "--")
"""Starts of lines that belong to the definition below: decorators, attributes, comments."""
_MAX_PLAIN_LINES = 60
"""Lines of a chunk without a definition."""
_MAX_CHUNK_CHARS = 40_000
_MAX_WORD_CHARS = 64
"""Longer words are data."""


class Chunk(NamedTuple):
    """A part of a file."""

    line: int
    """The first line, from 1."""
    end_line: int
    name: str
    """The name of the definition. Empty if it has none, like the next three."""
    kind: str
    parent: str
    signature: str
    text: str


def split_words(text: str) -> str:
    """The words of code. An identifier is followed by its parts: `getName` is `getName get Name`. SQLite folds case."""
    return " ".join(filter(None, map(_split_word, _WORD.findall(text))))


@lru_cache(maxsize=1 << 16)
def _split_word(word: str) -> str:
    if len(word) > _MAX_WORD_CHARS:
        return ""
    parts = _PART.findall(word)
    words = " ".join((word, *parts)) if len(parts) > 1 else word.strip("_")
    return words if words.isascii() else words.lower()


def split_file(path: str, text: str) -> list[Chunk]:
    """The chunks of a text. If the grammar of its language is missing, none of them has a name."""
    lines = text.split("\n")
    chunks: list[Chunk] = []
    taken = bytearray(len(lines) + 2)
    for symbol, end in _list_spans(_find_symbols(path, text)):
        start = symbol.line
        while start > 1 and not taken[start - 1] and lines[start - 2].lstrip().startswith(_ABOVE):
            start -= 1
        taken[start : end + 1] = b"\1" * (end + 1 - start)
        own = (symbol.name, symbol.kind, symbol.parent or "", symbol.signature)
        chunks.append(Chunk(start, end, *own, _join(lines, start, end)))
    chunks += _list_plain(lines, taken)
    return chunks


def _find_symbols(path: str, text: str) -> Sequence[Symbol]:
    language = find_language(path)
    if language is None:
        return ()
    try:
        return list_symbols(text.encode(), language, has_docs=False)
    except ToolError:  # no grammar, or the text takes too long to parse
        return ()


def _list_spans(symbols: Sequence[Symbol]) -> Iterator[tuple[Symbol, int]]:
    """The definitions that become chunks, with their last lines. Definitions within functions are part of these."""
    kept: list[Symbol] = []
    after = 0
    for symbol in symbols:
        if symbol.line <= after or symbol.kind not in _CONTAINERS | _LEAVES:
            continue
        kept.append(symbol)
        after = symbol.end_line if symbol.kind in _LEAVES else symbol.line
    for symbol, begin in zip(kept, [*(one.line for one in kept[1:]), sys.maxsize], strict=False):
        yield symbol, min(symbol.end_line, begin - 1)


def _list_plain(lines: list[str], taken: bytearray) -> Iterator[Chunk]:
    """The lines that are in no definition."""
    start = 0
    for number in range(1, len(lines) + 2):
        is_free = number <= len(lines) and not taken[number]
        if start and (not is_free or number - start >= _MAX_PLAIN_LINES):
            text = _join(lines, start, number - 1)
            if not text.isspace() and text:
                yield Chunk(start, number - 1, "", "", "", "", text)
            start = 0
        if is_free and not start:
            start = number


def _join(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[start - 1 : end])[:_MAX_CHUNK_CHARS]
