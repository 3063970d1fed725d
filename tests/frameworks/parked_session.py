"""A session whose requests wait."""

from pathlib import Path
from typing import Any

from handrail import Handrail
from handrail.settings import Settings


def open_rail(workspace: Path, tmp_path: Path, **options: Any) -> Handrail:
    """The session of the test. A second one over the same folder stands for another process."""
    chosen: Any = {"mode": "ask", "session": "agent", "on_permission": "park", "settings": Settings(), **options}
    return Handrail(workspace, state_dir=tmp_path / "state", **chosen)


PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
"""A picture, in base64."""
