"""The temporary folder of the demo: a sample workspace and a state folder of its own, gone when the demo ends."""

import os
import shutil
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager

from handrail.cli.demonstration.sample import FILES, PROGRAMS


@contextmanager
def open_sample_folder() -> Generator[str]:
    """The workspace. While this is open it is the current folder, and everything handrail remembers is beside it."""
    before = os.getcwd()
    told = {name: os.environ.get(name) for name in ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG", "HANDRAIL_MODE")}
    with tempfile.TemporaryDirectory(prefix="handrail-demo-", ignore_cleanup_errors=True) as folder:
        workspace = os.path.join(os.path.realpath(folder), "shop")
        _write(workspace)
        os.environ["HANDRAIL_STATE_DIR"] = os.path.join(os.path.realpath(folder), "state")
        os.environ["HANDRAIL_CONFIG"] = _empty(os.path.join(os.path.realpath(folder), "config.toml"))
        os.environ.pop("HANDRAIL_MODE", None)
        os.chdir(workspace)
        try:
            yield workspace
        finally:
            os.chdir(before)
            for name, value in told.items():
                _set(name, value)


def find_python() -> tuple[dict[str, str] | None, tuple[str, ...]]:
    """Variables and folders that commands need to find a python3, where the system has none of its own."""
    if shutil.which("python3", path="/usr/local/bin:/usr/bin:/bin"):
        return {"PATH": "/usr/local/bin:/usr/bin:/bin"}, ()
    home = os.path.realpath(sys.base_prefix)
    return {"PATH": f"{home}/bin:/usr/local/bin:/usr/bin:/bin"}, (home,)


def _write(workspace: str) -> None:
    os.mkdir(workspace)
    for name, text in FILES.items():
        with open(os.path.join(workspace, name), "w", encoding="utf-8") as file:
            file.write(text)
        if name in PROGRAMS:
            os.chmod(file.name, 0o700)


def _empty(path: str) -> str:
    with open(path, "w", encoding="utf-8"):
        return path


def _set(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
