"""The loop: what it adds to a call, and how many sessions fit into one process."""

from collections.abc import Iterator

from bench.loop.crowd import crowd
from bench.loop.overhead import overhead
from bench.measure import Row


def rows() -> Iterator[Row]:
    yield from overhead()
    yield from crowd()
