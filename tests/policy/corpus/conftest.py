"""One ground for all tests of the corpora."""

from collections.abc import Iterator

import pytest

from handrail.workspace.workspace import Workspace

from .ground import Ground


@pytest.fixture(scope="session")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """The ground on which commands are tried."""
    return Ground(tmp_path_factory.mktemp("ground"))


@pytest.fixture
def place(ground: Ground) -> Iterator[Workspace]:
    """The template as policy sees a workspace."""
    with Workspace(str(ground.template)) as opened:
        yield opened
