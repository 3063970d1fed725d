"""Worlds that tests of layers work in."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.changes.layering import USERS, As


@pytest.fixture(params=USERS)
def user(request: pytest.FixtureRequest) -> Iterator[As]:
    """Root and an ordinary user, each in a folder that both may enter."""
    place = Path(tempfile.mkdtemp(prefix="handrail-layer-", dir="/tmp"))
    place.chmod(0o755)
    yield As(request.param, place)
    shutil.rmtree(place, ignore_errors=True)
