"""What tests of the server share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.handlers import Api, open_api


@pytest.fixture
def api(workspace: Path, tmp_path: Path) -> Iterator[Api]:
    with open_api(workspace, tmp_path / "state", direct_calls=True) as opened:
        yield opened
