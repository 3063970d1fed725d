"""The restricted profile in a session: files of a few folders, and nothing asks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail import Handrail, tool
from handrail.protocol import events as event_kinds
from handrail.settings import Settings

Make = Callable[..., Handrail]
RESTRICTED = Settings(profile="restricted")


@pytest.fixture
def notes(workspace: Path) -> Path:
    folder = workspace / ".minds"
    folder.mkdir()
    (folder / "a.md").write_text("note\n")
    (folder / "out").symlink_to("../a.txt")
    (workspace / "a.txt").write_text("text\n")
    return folder


def test_files_of_the_named_folders_are_read_and_written_unasked(rail: Make, notes: Path) -> None:
    one = rail(mode="ask", settings=RESTRICTED)
    assert one.read(".minds/a.md").ok
    assert one.write(".minds/b.md", "new\n").ok
    assert (notes / "b.md").read_text() == "new\n"


@pytest.mark.parametrize("mode", ["ask", "full"])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("read", {"path": "a.txt"}),
        ("read", {"path": ".minds/../a.txt"}),
        ("read", {"path": ".minds/out"}),
        ("ls", {"path": "."}),
        ("grep", {"pattern": "text"}),
        ("write", {"path": ".mindset/a.md", "content": ""}),
        ("edit", {"path": "a.txt", "oldText": "text", "newText": "x"}),
    ],
)
def test_all_else_is_refused_at_once_with_a_warning_event(
    rail: Make, notes: Path, mode: str, name: str, args: dict[str, Any]
) -> None:
    one = rail(mode=mode, settings=RESTRICTED)
    result = one.call(name, args)
    assert result.error is not None
    assert (result.error.code, result.error.details["rule"]) == ("POLICY_DENIED", "restricted.path")  # type: ignore[index]
    assert [event.code for event in one.events() if isinstance(event, event_kinds.Warning)] == ["POLICY_DENIED"]
    assert (notes.parent / "a.txt").read_text() == "text\n"


def test_a_custom_tool_with_effects_is_refused(rail: Make, notes: Path) -> None:
    @tool
    def shout(text: str) -> str:
        """Shouts."""
        return text.upper()

    result = rail(mode="full", tools=[shout], settings=RESTRICTED).call("shout", {"text": "a"})
    assert result.error is not None
    assert result.error.details["rule"] == "restricted.tool"  # type: ignore[index]
