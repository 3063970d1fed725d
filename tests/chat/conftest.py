"""Runs `handrail chat` on a pseudo-terminal whose screen tests read as text."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.chat.window import Window

from people import Program

Chat = Callable[..., Window]
DEEP = pytest.mark.skipif(
    os.environ.get("HANDRAIL_DEEP", "") in {"", "0"}, reason="its parts are tested without a session; HANDRAIL_DEEP=1"
)


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables of programs that keep their byte code, as an installed handrail does."""
    folder = tmp_path_factory.mktemp("bytecode")
    return {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder)}


@pytest.fixture
def chat(workspace: Path, environment: dict[str, str], bytecode: dict[str, str], tmp_path: Path) -> Iterator[Chat]:
    """Starts `handrail chat` with a script."""
    begun: list[Program] = []
    (workspace / "a.txt").write_text("one\n")

    def start(
        *lines: dict[str, Any],
        words: tuple[str, ...] = (),
        columns: int = 100,
        ready: bool = True,
        has_model: bool = True,
        program: tuple[str, ...] = ("-m", "handrail"),
        **changes: str,
    ) -> Window:
        file = tmp_path / "script.json"
        file.write_text(json.dumps(lines))
        model = () if "--model" in words or not has_model else ("--model", f"scripted:{file}")
        command = [sys.executable, *program, "chat", *words, *model]
        variables = {**environment, **bytecode, "TERM": "xterm-256color", **changes}
        begun.append(Program(command, workspace, variables, columns=columns))
        window = Window(begun[-1], columns)
        if ready:
            window.sees("shift+tab mode")
        return window

    yield start
    for program in begun:
        program.close()


@pytest.fixture
def shell(workspace: Path, environment: dict[str, str], bytecode: dict[str, str], tmp_path: Path) -> Iterator[Chat]:
    """Starts `handrail chat` in an interactive shell, which has jobs."""
    begun: list[Program] = []

    def start(*lines: dict[str, Any]) -> Window:
        file = tmp_path / "script.json"
        file.write_text(json.dumps(lines))
        variables = {**environment, **bytecode, "TERM": "xterm-256color", "PS1": "$ "}
        begun.append(Program(["bash", "--norc", "--noprofile", "-i"], workspace, variables))
        window = Window(begun[-1], 100)
        window.sees("$")
        window.press(f"{sys.executable} -m handrail chat --model scripted:{file}\r")
        window.sees("shift+tab mode")
        return window

    yield start
    for program in begun:
        program.close()


@pytest.fixture
def run_log(workspace: Path, environment: dict[str, str]) -> Callable[[str], list[dict[str, Any]]]:
    """The events of a session."""

    def read(session: str) -> list[dict[str, Any]]:
        command = [
            sys.executable,
            "-m",
            "handrail",
            "log",
            "--session",
            session,
            "--events",
            "--json",
            "--limit",
            "500",
        ]
        done = subprocess.run(command, cwd=workspace, env=environment, capture_output=True, check=True, timeout=60)
        return json.loads(done.stdout)["events"]

    return read
