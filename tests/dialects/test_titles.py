"""Titles of calls while they run."""

from pathlib import Path
from typing import Any

import pytest
from spoken import build_workspace, open_rail

from handrail import Handrail
from handrail.protocol.events import Event, ToolCallEnd, ToolCallStart, ToolCallUpdate
from handrail.protocol.titles import describe_running_call
from handrail.runtime import execute
from handrail.settings import Settings


@pytest.mark.parametrize(
    ("name", "args", "title"),
    [
        ("read", {"path": "src/a.ts"}, "Reading a.ts"),
        ("ls", {"path": "src/"}, "Listing src"),
        ("grep", {"pattern": "a\nb"}, "Searching: a\\nb"),
        ("exec", {"command": "x" * 200}, f"Running: {'x' * 97}…"),
        ("apply_patch", {"patch": "…"}, "Applying a patch"),
        ("read", ["no object"], None),
        ("greet", {"name": "Ada"}, None),
    ],
)
def test_a_running_call_has_a_title_in_one_line(name: str, args: Any, title: str | None) -> None:
    assert describe_running_call(name, args) == title


@pytest.mark.parametrize(
    ("dialect", "name", "args", "title"),
    [
        ("claude-code", "Grep", {"pattern": "App"}, "Searching: App"),
        ("onething", "glob", {"pattern": "*.py"}, "Searching: *.py"),
        ("clude", "grep", {"pattern": "App"}, "Searching: App"),
    ],
)
def test_a_slow_call_announces_itself_once_before_it_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dialect: str, name: str, args: Any, title: str
) -> None:
    monkeypatch.setattr(execute, "SLOW_SECONDS", 0.0)  # every call is slow
    heard: list[Event] = []
    with open_rail(tmp_path, dialect, settings=Settings.from_values({"search.engine": "python"})) as rail:
        rail.subscribe(heard.append)
        assert rail.call(name, args).ok
    own = [event for event in heard if isinstance(event, ToolCallStart | ToolCallUpdate | ToolCallEnd)]
    assert isinstance(own[0], ToolCallStart)
    assert isinstance(own[-1], ToolCallEnd)
    titles = [event.title for event in own if isinstance(event, ToolCallUpdate) and event.output is None]
    assert titles == [title]


def test_a_quick_call_sends_no_title(tmp_path: Path) -> None:
    heard: list[Event] = []
    with Handrail(build_workspace(tmp_path), state_dir=tmp_path / "state") as rail:
        rail.subscribe(heard.append)
        assert rail.grep("App").ok
    assert not [event for event in heard if isinstance(event, ToolCallUpdate)]
