"""Ranks chunks again by their meaning, with a model behind the OpenAI wire."""

import json
import os
from array import array
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from math import sqrt
from typing import Any, cast
from urllib.parse import urlsplit

from handrail.code.ranker import RankedChunk
from handrail.settings.embeddings import Embeddings
from handrail.store.code_index import CodeIndex

RANKED_AGAIN = 50
"""Chunks, the best by their words, that the model ranks."""
KEY_VARIABLE = "HANDRAIL_EMBEDDINGS_KEY"
_SECONDS = 10.0
_MAX_TEXT_CHARS = 4_000
_MAX_ANSWER_BYTES = 64 << 20
_WORD_SHARE = 0.3
"""What the score by words counts beside the similarity of meaning."""


class EmbeddingError(Exception):
    """The endpoint gave no vectors."""


def rank_by_meaning(
    index: CodeIndex, settings: Embeddings, query: str, ranked: Sequence[RankedChunk]
) -> list[RankedChunk]:
    """The chunks in the order of their meaning. Vectors are stored. EmbeddingError: the endpoint gave none."""
    if not ranked:
        return []
    ids = [one.chunk.id for one in ranked]
    stored = index.get_vectors(ids, settings.model)
    missing = [one for one in ranked if one.chunk.id not in stored]
    first, *others = _embed(settings, [query, *(_describe(index, one) for one in missing)])
    added = [(one.chunk.id, vector.tobytes()) for one, vector in zip(missing, others, strict=True)]
    index.put_vectors(added, settings.model)
    vectors = stored | dict(added)
    top = max(one.score for one in ranked) or 1.0
    again = [
        RankedChunk(
            one.chunk,
            round(_compare(first, array("f", vectors[one.chunk.id])) + _WORD_SHARE * one.score / top, 3),
            "; ".join(filter(None, (one.reason, "meaning"))),
        )
        for one in ranked
    ]
    return sorted(again, key=lambda one: -one.score)


def _describe(index: CodeIndex, one: RankedChunk) -> str:
    chunk = one.chunk
    text = f"{chunk.path.decode(errors='replace')} {chunk.parent} {chunk.signature}\n{index.get_words(chunk.id)}"
    return text[:_MAX_TEXT_CHARS]


def _embed(settings: Embeddings, texts: list[str]) -> "list[array[float]]":
    address = urlsplit(settings.address)
    connect = HTTPSConnection if address.scheme == "https" else HTTPConnection
    headers = {"Content-Type": "application/json"}
    if key := os.environ.get(KEY_VARIABLE):
        headers["Authorization"] = f"Bearer {key}"
    try:
        connection = connect(address.hostname or "", address.port, timeout=_SECONDS)
        try:
            body = json.dumps({"model": settings.model, "input": texts})
            connection.request("POST", f"{address.path.rstrip('/')}/embeddings", body, headers)
            answer = connection.getresponse()
            data = answer.read(_MAX_ANSWER_BYTES)
        finally:
            connection.close()
        if answer.status != 200:  # a redirection too: the key and the code would follow it
            raise EmbeddingError(f"it answered with status {answer.status}")
        return _read_vectors(json.loads(data), len(texts))
    except (OSError, HTTPException, ValueError) as error:
        raise EmbeddingError(f"{type(error).__name__}") from error


def _read_vectors(answer: Any, count: int) -> "list[array[float]]":
    """ValueError if the answer is not one vector for each text."""
    try:
        rows = sorted(cast("list[dict[str, Any]]", answer["data"]), key=lambda row: row["index"])
        vectors = [array("f", row["embedding"]) for row in rows]
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError("no list of vectors") from error
    if len(vectors) != count or len({len(vector) for vector in vectors}) != 1:
        raise ValueError("not one vector for each text")
    return vectors


def _compare(one: "array[float]", other: "array[float]") -> float:
    """The cosine of the angle between two vectors."""
    if len(one) != len(other):  # the endpoint has another model by this name now
        return 0.0
    length = sqrt(sum(x * x for x in one) * sum(x * x for x in other))
    return sum(x * y for x, y in zip(one, other, strict=True)) / length if length else 0.0
