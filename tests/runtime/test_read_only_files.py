"""A file whose mode lets nobody write it (0444): somebody meant that, so a write asks, and the mode stays."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

Rail = Callable[..., Handrail]

PATCH = "*** Begin Patch\n*** Update File: f\n@@\n-old\n+new\n*** End Patch\n"
TOOLS = Settings(tools=Tools(enable=("multi_edit", "apply_patch", "delete")))
WRITES = {
    "write": {"path": "f", "content": "new\n"},
    "edit": {"path": "f", "oldText": "old", "newText": "new"},
    "multi_edit": {"path": "f", "edits": [{"oldText": "old", "newText": "new"}]},
    "apply_patch": {"patch": PATCH},
}
COMMANDS = {
    "the path is written in it": "cp g f",
    "nobody can read the path from it": "python3 -c \"import os; os.replace('g', 'f')\"",
    "its mode is changed first": "python3 -c \"import os; os.chmod('f', 0o644); open('f', 'w').write('new')\"",
    "only its mode is changed": "chmod u+w f",
}


@pytest.fixture
def file(workspace: Path) -> Path:
    (workspace / "g").write_text("new\n")
    path = workspace / "f"
    path.write_text("old\n")
    path.chmod(0o444)
    return path


@pytest.mark.parametrize("tool", WRITES)
def test_a_write_to_a_read_only_file_asks_in_auto(rail: Rail, file: Path, tool: str) -> None:
    result = rail(mode="auto", settings=TOOLS).call(tool, WRITES[tool])
    assert result.error
    assert result.error.code == "PERMISSION_REQUIRED"
    assert result.error.details["rule"] == "fs.read-only-file"
    assert "read-only" in result.error.details["reason"]
    assert file.read_text() == "old\n"


@pytest.mark.parametrize("tool", WRITES)
def test_full_writes_it_and_keeps_its_mode(rail: Rail, file: Path, tool: str) -> None:
    assert rail(mode="full", settings=TOOLS).call(tool, WRITES[tool]).error is None
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new\n", 0o444)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_changes_a_read_only_file_asks_in_auto(rail: Rail, file: Path, command: str) -> None:
    result = rail(mode="auto").exec(command)
    assert result.error
    assert result.error.code == "PERMISSION_REQUIRED"
    assert "read-only" in str(result.error.details)
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("old\n", 0o444)


def test_reading_and_deleting_it_and_making_one_ask_nobody(rail: Rail, workspace: Path, file: Path) -> None:
    one = rail(mode="auto", settings=TOOLS)
    assert "old" in one.read("f").content
    assert one.exec("cat f; cp f h; chmod 444 h").error is None
    assert (workspace / "h").stat().st_mode & 0o777 == 0o444
    assert one.delete("f").error is None
    assert not file.exists()


def test_what_programs_generate_is_theirs(rail: Rail, workspace: Path) -> None:
    package = workspace / "node_modules" / "a.js"
    package.parent.mkdir()
    package.write_text("old")
    package.chmod(0o444)
    renewing = "import os; os.unlink('node_modules/a.js'); open('node_modules/a.js', 'w').write('new')"
    assert rail(mode="auto").exec(f'python3 -c "{renewing}"').error is None
    assert package.read_text() == "new"
