"""The OpenAI Agents SDK, which is installed in a folder of its own when a test first needs it.

The folder is outside the repository and named after requirements/openai-agents.txt, so that it is there for the next
run.
"""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.mcp import oracles

REQUIRED = Path(__file__).parent.parent.parent / "requirements" / "openai-agents.txt"
_INSTALL = (
    sys.executable,
    "-m",
    "pip",
    "install",
    "--quiet",
    "--no-deps",
    "--disable-pip-version-check",
    "--no-input",
    "--retries=1",
)


class NotReachableError(Exception):
    """There is no package index to install from."""


def installed() -> Path:
    """Its folder. Several processes may ask at once: one installs, the others wait."""
    home = oracles._cache()
    version = f"{sys.version_info.major}.{sys.version_info.minor}".encode()
    place = home / f"openai-agents-{hashlib.sha256(REQUIRED.read_bytes() + version).hexdigest()[:16]}"
    with (home / f"{place.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            _install(place)
    return place


def _install(place: Path) -> None:
    """Installs beside the place and moves it there whole, so that a run that is cut off leaves nothing half done."""
    building = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    try:
        words = [*_INSTALL, "--target", str(building), "--requirement", str(REQUIRED)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if "Could not find a version" in done.stderr:
            raise NotReachableError(done.stderr[-2000:])
        assert done.returncode == 0, done.stderr
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)
