"""The tools that a client is told of before there is a session are those that the session has."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail import Handrail
from handrail.mcp.sessions import find_default_tools
from handrail.settings import Settings
from handrail.settings.model import Tools


def offered(settings: Settings, tmp_path: Path) -> list[dict[str, Any]]:
    """What a session lists, as a client reads it."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with Handrail(workspace, state_dir=tmp_path / "state", settings=settings) as rail:
        return msgspec.json.decode(msgspec.json.encode(rail.mcp_tools()))


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings.from_values(
            {"mode": "plan", "read.images": False, "search.engine": "python", "search.ignore": ["*.log"]}
        ),
    ],
    ids=["default", "others"],
)
def test_they_are_those_of_the_session_to_the_letter(settings: Settings, tmp_path: Path) -> None:
    ahead = find_default_tools(settings)
    assert ahead is not None
    assert msgspec.json.decode(msgspec.json.encode(list(ahead.values()))) == offered(settings, tmp_path)


@pytest.mark.parametrize(
    "tools",
    [
        Tools(enable=("todo",)),
        Tools(disable=("exec",)),
        Tools(deny=("fs.write",)),
        Tools(folders=("/opt/tools",)),
        Tools(installed=True),
    ],
    ids=["enable", "disable", "deny", "folders", "installed"],
)
def test_where_the_settings_speak_of_tools_only_a_session_knows(tools: Tools) -> None:
    assert find_default_tools(Settings(tools=tools)) is None


def test_nothing_is_loaded_for_it_that_a_session_is_made_of() -> None:
    code = """
import sys
from handrail.mcp.sessions import find_default_tools
from handrail.settings import Settings
assert find_default_tools(Settings())
print(*sorted(name for name in sys.modules if name.startswith("handrail.")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rooms = {name.split(".")[1] for name in done.stdout.split()}
    assert rooms <= {"mcp", "protocol", "settings"}


def test_the_list_is_short_and_its_output_schemas_have_neither_prose_nor_defaults() -> None:
    ahead = find_default_tools(Settings())
    assert ahead is not None
    assert len(msgspec.json.encode(list(ahead.values()))) <= 16_000
    for entry in ahead.values():
        schema = msgspec.json.encode(msgspec.json.decode(entry)["outputSchema"])
        assert not [word for word in (b'"description":"', b'"default":', b'"title":"') if word in schema]
