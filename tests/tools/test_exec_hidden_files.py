"""What is hidden from a command are the credentials, sockets and pipes that are there when it starts. It runs once."""

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail
from handrail.protocol.permissions import AnswerKind, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.sandbox.bubblewrap import find_bubblewrap
from handrail.settings import Settings
from handrail.settings.model import Sandbox

Make = Callable[..., Handrail]
READ_ALL = "for f in .e* k* inner/* plain; do [ -f $f ] && cat $f; done"
"""No credential is named."""
pytestmark = pytest.mark.skipif(find_bubblewrap(os.environ) is None, reason="bubblewrap is not installed")


def run(rail: Handrail, command: str, **more: Any) -> ToolResult[Any]:
    return rail.call("exec", {"command": command, **more})


def output(rail: Handrail, command: str) -> str:
    result = run(rail, command)
    assert result.ok, result.error
    return str(result.data.output)


@pytest.mark.parametrize("tier", [3, 2])
def test_a_credential_that_is_new_is_hidden_and_the_command_runs_once(rail: Make, workspace: Path, tier: int) -> None:
    one = rail(mode="full", settings=Settings(sandbox=Sandbox(tier=tier)))
    (workspace / "inner").mkdir()
    script = f"{READ_ALL}; echo ran >>log; wc -l <log"
    assert output(one, script) == "1\n"
    (workspace / ".env").write_text("TOKEN=canary\n")
    assert output(one, script) == "2\n"
    (workspace / "inner" / "key.pem").write_text("canary\n")
    assert output(one, script) == "3\n"
    assert run(one, script).meta.sandbox.hidden == 2
    assert (workspace / "log").read_text() == "ran\n" * 4


def test_a_proven_command_sees_no_credential_that_is_new(rail: Make, workspace: Path) -> None:
    one = rail(mode="plan")
    (workspace / "plain").write_text("canary\n")
    assert output(one, "grep -r canary .") == "./plain:canary\n"
    (workspace / ".env").write_text("TOKEN=canary\n")
    assert output(one, "grep -r canary .") == "./plain:canary\n"


def test_what_is_no_credential_any_more_is_seen(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    (workspace / ".env").write_text("TOKEN=canary\n")
    assert output(one, f"{READ_ALL}; echo ran >>log") == ""
    os.rename(workspace / ".env", workspace / "plain")
    assert output(one, f"{READ_ALL}; echo ran >>log") == "TOKEN=canary\n"
    assert (workspace / "log").read_text() == "ran\n" * 2


def test_a_socket_that_is_new_is_not_reached(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    assert output(one, "ls; true") == ""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(workspace / "door"))
        listening.listen()
        assert output(one, "for f in d*; do [ -S $f ] || echo none; done") == "none\n"


def test_what_decides_about_commands_is_sealed_as_soon_as_it_is_there(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    assert output(one, "echo ran >>log") == ""
    (workspace / "handrail.toml").write_text('mode = "ask"\n')
    assert run(one, "echo x >>handrail.toml; echo ran >>log").ok
    assert (workspace / "handrail.toml").read_text() == 'mode = "ask"\n'
    assert (workspace / "log").read_text() == "ran\n" * 2


def test_a_preview_is_made_once_with_what_is_hidden_now(rail: Make, workspace: Path) -> None:
    shown: list[str] = []

    def answer(request: PermissionRequest) -> AnswerKind:
        assert request.preview is not None
        shown.append(request.preview.text + request.preview.output)
        return "once"

    one = rail(mode="ask", on_permission=answer)
    script = f"{READ_ALL}; echo ran >>log"
    assert run(one, script).ok
    (workspace / ".env").write_text("TOKEN=canary\n")
    assert run(one, script).ok
    assert len(shown) == 2
    assert not any("canary" in text for text in shown)
    assert (workspace / "log").read_text() == "ran\n" * 2


def test_a_workspace_that_was_moved_away_since_is_told_of(rail: Make, workspace: Path) -> None:
    one = rail(mode="full")
    assert output(one, "echo ran >>log") == ""
    moved = workspace.with_name("moved")
    workspace.rename(moved)
    workspace.mkdir()
    result = run(one, "echo ran >>log")
    assert result.error is not None
    assert result.error.code == "CONFLICT"
    assert (moved / "log").read_text() == "ran\n"
    assert not list(workspace.iterdir())


def test_layers_that_were_made_for_nothing_are_gone(rail: Make, workspace: Path, tmp_path: Path) -> None:
    one = rail(mode="full")
    for number in range(4):
        (workspace / f"key{number}.pem").write_text("canary\n")
        assert output(one, f"{READ_ALL}; echo ran >>log") == ""
    one.close()
    assert [path for folder in (tmp_path / "state").glob("layers*") for path in folder.iterdir()] == []
