"""What a workspace says about how to work in it, as far as it may be read."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.runtime.conversation import MAX_INSTRUCTION_BYTES
from handrail.settings import Settings
from handrail.settings.model import Tools

Open = Callable[..., Handrail]


def test_agents_md_goes_before_claude_md(rail: Open, workspace: Path) -> None:
    assert rail().conversation.instructions() is None
    (workspace / "CLAUDE.md").write_text("claude")
    found = rail().conversation.instructions()
    assert found is not None
    assert (found.name, found.text, found.left_out) == ("CLAUDE.md", "claude", 0)
    (workspace / "AGENTS.md").write_text("agents")
    found = rail().conversation.instructions()
    assert found is not None
    assert (found.name, found.text) == ("AGENTS.md", "agents")


def test_an_empty_file_counts_as_none(rail: Open, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text(" \n")
    assert rail().conversation.instructions() is None


def test_a_long_file_is_cut_at_a_whole_character(rail: Open, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("x" + "ü" * MAX_INSTRUCTION_BYTES)
    found = rail().conversation.instructions()
    assert found is not None
    assert set(found.text) == {"x", "ü"}
    assert found.left_out == MAX_INSTRUCTION_BYTES + 1


def test_what_nobody_sees_is_taken_out(rail: Open, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_bytes("\ufeffone\r\n\x1b[31mtwo\u202e\u200b\U000e0041\tthree".encode() + b"\xff")
    found = rail().conversation.instructions()
    assert found is not None
    assert found.text == "one\n[31mtwo\tthree\ufffd"


@pytest.mark.parametrize("kind", ["outside", "fifo", "folder"])
def test_what_is_no_file_of_the_workspace_is_not_read(rail: Open, workspace: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret").write_text("secret")
    place = workspace / "AGENTS.md"
    if kind == "outside":
        place.symlink_to(tmp_path / "secret")
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    assert rail().conversation.instructions() is None


def test_a_link_to_a_credential_is_not_followed(rail: Open, workspace: Path) -> None:
    (workspace / ".env").write_text("KEY=1")
    (workspace / "AGENTS.md").symlink_to(".env")
    assert rail().conversation.instructions() is None


def test_where_no_file_may_be_read_this_one_is_not(rail: Open, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("agents")
    assert rail(settings=Settings(tools=Tools(deny=("fs.read",)))).conversation.instructions() is None


def test_reading_it_is_no_call_and_no_reading_of_the_models(rail: Open, workspace: Path) -> None:
    (workspace / "AGENTS.md").write_text("agents")
    one = rail()
    one.conversation.instructions()
    assert list(one.events()) == []
    assert one.write("AGENTS.md", "other").meta.unread
