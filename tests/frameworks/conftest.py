"""A session that asks, and a provider that plays a script."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from parked_session import open_rail
from provider import Call, Provider

from handrail import Handrail


@pytest.fixture
def rail(workspace: Path, tmp_path: Path) -> Iterator[Handrail]:
    with open_rail(workspace, tmp_path) as opened:
        yield opened


@pytest.fixture
def provide() -> Iterator[Callable[..., Provider]]:
    """Starts a provider with its lines. What it was asked wrongly fails the test."""
    started: list[Provider] = []

    def start(*lines: list[Call]) -> Provider:
        started.append(Provider(*lines))
        return started[-1]

    yield start
    for one in started:
        one.close()
        assert one.problems == []
