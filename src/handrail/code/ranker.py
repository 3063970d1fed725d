"""Ranks the chunks of a code index by a query.

The score of a chunk is the sum of three parts, each relative to the best chunk: its words, the name of its definition,
and the words of all chunks of its file.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from handrail.code.chunks import split_words
from handrail.store.code_index import CodeIndex, IndexedChunk

_CANDIDATES = 200
"""Chunks that each of the two rankings contributes."""
_NAME_SHARE, _FILE_SHARE, _PLAIN_PENALTY = 0.6, 0.5, 0.1
_BELOW_LAST = 0.9
"""What a chunk that only its name found has of the score of the last chunk that its words found."""
_MIN_RARE_WORDS, _RARE_SHARE = 3, 0.07
"""Words that are in at most this share of the chunks are rare. The rarest ones always are."""
_FILE_DECAY = 0.5
"""What each further chunk of a file counts for the file, relative to the one before."""
_MAX_QUERY_WORDS = 40
_COMMON_WORDS = """
a all an and any are as at be by can do does each for from has have how if in into is it its may no not of on or other
that the this to was were what when where which will with
"""
_ENDINGS = ("ations", "ation", "ings", "ing", "ies", "ied", "ions", "ion", "ers", "er", "ed", "es", "s", "e", "y")


class RankedChunk(msgspec.Struct, frozen=True):
    """A chunk that a query found."""

    chunk: IndexedChunk
    score: float
    reason: str


def rank_chunks(index: CodeIndex, query: str, scopes: Sequence[bytes], most: int) -> list[RankedChunk]:
    """The best chunks of these files and folders, the best first. `.` is everything."""
    words = _list_words(query)
    if not words:
        return []
    texts = index.rank_text(_build_match(index, words), scopes, _CANDIDATES)
    names = index.rank_names(_join(words), scopes, _CANDIDATES)
    if not texts:
        return []
    chunks = index.get_chunks([number for number, _ in (*texts, *names)])
    scores = _fuse(dict(texts), dict(names), chunks)
    best = sorted(scores, key=lambda number: (-scores[number], number))[:most]
    return [
        RankedChunk(chunks[number], round(scores[number], 3), _explain(index, chunks[number], words)) for number in best
    ]


def _list_words(query: str) -> list[str]:
    common = frozenset(_COMMON_WORDS.split())
    every = list(dict.fromkeys(split_words(query).lower().split()))
    telling = [word for word in every if word not in common and len(word) > 1]
    return (telling or every)[:_MAX_QUERY_WORDS]


def _build_match(index: CodeIndex, words: list[str]) -> str:
    """The expression for the words. Only chunks with a rare word are scored, since scores take most of the time."""
    counts = {word: index.count_matches(_join([word])) for word in words}
    most = sorted(counts.values())[:_MIN_RARE_WORDS][-1]
    rare = [word for word in words if counts[word] <= max(most, _RARE_SHARE * index.count_chunks())]
    return f"({_join(rare)}) AND ({_join(words)})"


def _join(words: list[str]) -> str:
    return " OR ".join(f'"{word}"' for word in words)


def _fuse(texts: dict[int, float], names: dict[int, float], chunks: dict[int, IndexedChunk]) -> dict[int, float]:
    top, name_top = max(texts.values()), max(names.values(), default=1.0)
    least = _BELOW_LAST * min(texts.values()) if len(texts) == _CANDIDATES else 0.0
    files, counts = defaultdict[bytes, float](float), Counter[bytes]()
    for number, score in sorted(texts.items(), key=lambda item: -item[1]):
        if number in chunks:  # another process may have removed it meanwhile
            path = chunks[number].path
            files[path] += score * _FILE_DECAY ** counts[path]
            counts[path] += 1
    file_top = max(files.values(), default=1.0)
    return {
        number: texts.get(number, least) / top
        + _NAME_SHARE * names.get(number, 0.0) / name_top
        + _FILE_SHARE * files[chunk.path] / file_top
        - (0 if chunk.name else _PLAIN_PENALTY)
        for number, chunk in chunks.items()
    }


def _explain(index: CodeIndex, chunk: IndexedChunk, words: list[str]) -> str:
    """Which words of the query are where in the chunk."""
    places = {
        "name": split_words(f"{chunk.parent} {chunk.name}"),
        "path": split_words(chunk.path.decode(errors="replace")),
        "text": index.get_words(chunk.id),
    }
    parts: list[str] = []
    for place, text in places.items():
        stems = set(map(_stem, set(text.lower().split())))
        if found := [word for word in words if _stem(word) in stems]:
            parts.append(f"{place}: {' '.join(found)}")
    return "; ".join(parts)


def _stem(word: str) -> str:
    """A word without its ending, for the explanation only."""
    return next((word.removesuffix(end) for end in _ENDINGS if word.endswith(end) and len(word) > len(end) + 2), word)
