"""The code tools."""

from collections.abc import Iterator

from bench import code_search
from bench.measure import Row


def rows() -> Iterator[Row]:
    yield from code_search.rows()
