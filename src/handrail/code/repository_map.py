"""The most referenced definitions of a code index, within a number of tokens."""

import os
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from handrail.protocol.text import escape_unprintable, truncate
from handrail.store.code_index import CodeIndex, IndexedChunk

_KINDS = ("class", "enum", "function", "interface", "macro", "method", "record", "struct", "trait", "type")
_MAX_SAME_NAME = 2
"""A name that more definitions share says little about each of them."""
_MIN_NAME_CHARS = 4
_CHARS_PER_TOKEN = 4
_MAX_LINE_CHARS = 120


def render_map(index: CodeIndex, tokens: int) -> str:
    """The map as text. Empty if no definition is referenced."""
    definitions = index.list_definitions(_KINDS)
    counts = Counter(one.name for one in definitions)
    telling = [one for one in definitions if counts[one.name] <= _MAX_SAME_NAME and _is_telling(one.name)]
    return arrange_map(telling, _count_references(index, telling), tokens)


def _is_telling(name: str) -> bool:
    """Whether a name is hardly a word of prose, nor private: `open_folder`, `Session`."""
    is_compound = "_" in name.strip("_") or not name.islower()
    return len(name) >= _MIN_NAME_CHARS and is_compound and not name.startswith("_")


def _count_references(index: CodeIndex, definitions: Sequence[IndexedChunk]) -> Counter[str]:
    """How many files other than its own mention a name."""
    homes = defaultdict[str, set[int]](set)
    for one in definitions:
        homes[one.name].add(one.file)
    names = homes.keys()
    mentions = {(name, file) for file, body in index.read_bodies() for name in names & set(body.split())}
    return Counter(name for name, file in mentions if file not in homes[name])


def arrange_map(definitions: Sequence[IndexedChunk], references: Mapping[str, int], tokens: int) -> str:
    """The definitions with the most references that fit, below the paths of their files.

    The same input gives the same bytes.
    """
    room = tokens * _CHARS_PER_TOKEN
    shown = defaultdict[bytes, list[IndexedChunk]](list)
    for one in sorted(definitions, key=lambda one: (-references.get(one.name, 0), one.path, one.line)):
        cost = len(_render(one)) + 1 + (0 if one.path in shown else len(_render_path(one)) + 1)
        if references.get(one.name, 0) <= 0 or cost > room:
            break
        shown[one.path].append(one)
        room -= cost
    lines: list[str] = []
    for _, chunks in sorted(shown.items()):
        lines.append(_render_path(chunks[0]))
        lines += map(_render, sorted(chunks, key=lambda one: one.line))
    return "\n".join(lines)


def _render_path(one: IndexedChunk) -> str:
    return f"{escape_unprintable(os.fsdecode(one.path))}:"


def _render(one: IndexedChunk) -> str:
    signature = escape_unprintable(one.signature or f"{one.kind} {one.name}")
    inner = f"{one.parent}: {signature}" if one.parent else signature
    return truncate(f"  {one.line}: {inner}", _MAX_LINE_CHARS)
