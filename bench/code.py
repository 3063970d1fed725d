"""The code tools: the outline of a large file, codebase_search."""

from collections.abc import Iterator

from bench import code_search, outline
from bench.measure import Row


def rows() -> Iterator[Row]:
    yield from outline.rows()
    yield from code_search.rows()
