"""Runs the real command, each test with a home, a state folder and a workspace of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.cli.main import run as run_words


class Done(NamedTuple):
    """What a command printed and how it ended."""

    code: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.raw)


Run = Callable[..., Done]


@pytest.fixture
def run(apart: Run) -> Run:
    """How the tests of a file run commands: in processes of their own, if it does not say otherwise."""
    return apart


@pytest.fixture
def apart(workspace: Path, environment: dict[str, str]) -> Run:
    """Runs `handrail …` in the workspace; keyword arguments change the environment, None removes."""

    def run(*words: str, stdin: bytes = b"", cwd: Path = workspace, **changes: str | None) -> Done:
        merged = {key: value for key, value in {**environment, **changes}.items() if value is not None}
        command = [sys.executable, "-m", "handrail", *words]
        done = subprocess.run(command, input=stdin, cwd=cwd, env=merged, capture_output=True, check=False, timeout=60)
        return Done(done.returncode, done.stdout, done.stderr.decode())

    return run


@pytest.fixture
def here(
    workspace: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """The same in this process, for long tables: the words, the environment and the folder are what a process gets."""

    def run(*words: str, cwd: Path = workspace, **changes: str | None) -> Done:
        merged = {key: value for key, value in {**environment, **changes}.items() if value is not None}
        with monkeypatch.context() as patch:
            patch.setattr(os, "environ", merged)
            patch.chdir(cwd)
            code = run_words(list(words))
        out, err = capfdbinary.readouterr()
        return Done(code, out, err.decode())

    return run


@pytest.fixture
def state(environment: dict[str, str]) -> Path:
    """The state folder, which only a command makes."""
    return Path(environment["HANDRAIL_STATE_DIR"])


@pytest.fixture
def config(environment: dict[str, str]) -> Callable[[str], Path]:
    """Writes the user file."""

    def write(text: str) -> Path:
        path = Path(environment["HOME"], ".config", "handrail", "config.toml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write
