"""The most referenced definitions of a code index, within a number of tokens."""

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from handrail.code.chunks import split_words
from handrail.protocol.text import escape_unprintable
from handrail.store.code_index import CodeIndex, IndexedChunk

_KINDS = ("class", "enum", "function", "interface", "macro", "method", "record", "struct", "trait", "type")
_MAX_SAME_NAME = 2
"""A name that more definitions share says little about each."""
_MIN_NAME_CHARS = 4
_MAX_NAMES = 20_000
_CHARS_PER_TOKEN = 4
_MAX_LINE_CHARS = 120


def render_map(index: CodeIndex, tokens: int) -> str:
    """The map as text. Empty if no definition is referenced. The same index gives the same bytes."""
    definitions = index.list_definitions(_KINDS)
    counts = Counter(one.name for one in definitions)
    telling = [
        one for one in definitions if counts[one.name] <= _MAX_SAME_NAME and len(one.name.strip("_")) >= _MIN_NAME_CHARS
    ][:_MAX_NAMES]
    references = {
        one.name: index.count_matches(f'body : "{split_words(one.name).split()[0]}"') - counts[one.name]
        for one in telling
        if split_words(one.name)
    }
    return arrange_map(telling, lambda one: references.get(one.name, 0), tokens)


def arrange_map(definitions: Sequence[IndexedChunk], count: Callable[[IndexedChunk], int], tokens: int) -> str:
    """The definitions with the most references that fit, below the names of their files."""
    room = tokens * _CHARS_PER_TOKEN
    shown = defaultdict[bytes, list[IndexedChunk]](list)
    for one in sorted(definitions, key=lambda one: (-count(one), one.path, one.line)):
        cost = len(_render(one)) + (0 if one.path in shown else len(one.path) + 2)
        if count(one) <= 0 or cost > room:
            break
        shown[one.path].append(one)
        room -= cost
    lines: list[str] = []
    for path in sorted(shown):
        lines.append(f"{escape_unprintable(os.fsdecode(path))}:")
        lines += [_render(one) for one in sorted(shown[path], key=lambda one: one.line)]
    return "\n".join(lines)


def _render(one: IndexedChunk) -> str:
    signature = escape_unprintable(one.signature or f"{one.kind} {one.name}")
    inner = f"{one.parent}: {signature}" if one.parent else signature
    return f"  {one.line}: {inner}"[:_MAX_LINE_CHARS]
