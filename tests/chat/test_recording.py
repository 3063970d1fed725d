"""The recording in README.md is what a session shows."""

import subprocess
from pathlib import Path

from tests.chat.conftest import DEEP

ROOT = Path(__file__).resolve().parents[2]


@DEEP
def test_the_recording_is_what_a_session_shows() -> None:
    subprocess.run([ROOT / "scripts" / "recording", "--check"], check=True, timeout=120)
