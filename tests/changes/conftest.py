"""A workspace with its history, and folders of users for tests of overlays."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.changes.support import USERS, As

from handrail.changes.history import History
from handrail.workspace.workspace import Workspace


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> Iterator[As]:
    """Root and an ordinary user, each in a folder that both may enter."""
    place = Path(tempfile.mkdtemp(prefix="handrail-layer-", dir="/tmp"))
    place.chmod(0o755)
    yield As(request.param, place)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture
def house(workspace: Path) -> Iterator[Workspace]:
    with Workspace(str(workspace)) as opened:
        yield opened


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    kept = History(str(tmp_path / "state"))
    os.makedirs(kept.folder, mode=0o700)
    yield kept
    kept.close()
