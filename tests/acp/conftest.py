"""A home, a state folder and a script for each test of the ACP agent."""

import json
import os
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
from editor import Opened, opened, opened_here

Script = Callable[..., str]
Open = Callable[..., AbstractAsyncContextManager[Opened]]


@pytest.fixture
def script(tmp_path: Path, workspace: Path) -> Script:
    """Writes a script; the name of the model that plays it."""
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")

    def write(*lines: dict[str, Any], name: str = "script.json") -> str:
        (tmp_path / name).write_text(json.dumps(lines))
        return f"scripted:{tmp_path / name}"

    return write


@pytest.fixture
def start(workspace: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Open:
    """Starts the agent for an editor, in this process."""
    monkeypatch.setattr(os, "environ", environment)

    def begin(*words: str, **options: Any) -> AbstractAsyncContextManager[Opened]:
        return opened_here(workspace, *words, **options)

    return begin


@pytest.fixture
def start_apart(workspace: Path, environment: dict[str, str]) -> Open:
    """The same in a process of its own."""

    def begin(*words: str, **options: Any) -> AbstractAsyncContextManager[Opened]:
        return opened(workspace, environment, *words, **options)

    return begin
