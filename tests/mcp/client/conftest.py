"""What the tests of other servers share."""

from pathlib import Path

import pytest
from serving import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A workspace with the servers of `tests/mcp/servers` in it."""
    return Place(tmp_path)
