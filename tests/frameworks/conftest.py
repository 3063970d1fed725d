"""A session that asks, and a provider that plays a script."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import agents_sdk
import pytest
from provider import Call, Provider

from handrail import Handrail
from handrail.settings import Settings


@pytest.fixture
def rail(workspace: Path, tmp_path: Path) -> Iterator[Handrail]:
    with open_rail(workspace, tmp_path) as opened:
        yield opened


def open_rail(workspace: Path, tmp_path: Path, **options: Any) -> Handrail:
    """The session of the test. A second one over the same folder stands for another process."""
    chosen: Any = {"mode": "ask", "session": "agent", "on_permission": "park", "settings": Settings(), **options}
    return Handrail(workspace, state_dir=tmp_path / "state", **chosen)


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


@pytest.fixture(scope="session")
def agents_folder() -> Path:
    """The folder with the OpenAI Agents SDK."""
    try:
        return agents_sdk.installed()
    except agents_sdk.NotReachableError as unreachable:
        pytest.skip(f"no package index can be reached for the OpenAI Agents SDK: {unreachable}")
