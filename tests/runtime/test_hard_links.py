"""A file with other names (hard links): a write asks, since it may lead out, and a credential stays one."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Tools

Rail = Callable[..., Handrail]

PATCH = "*** Begin Patch\n*** Update File: h\n@@\n-old\n+new\n*** End Patch\n"
TOOLS = Settings(tools=Tools(enable=("multi_edit", "apply_patch", "delete")))
WRITES = {
    "write": {"path": "h", "content": "new\n"},
    "edit": {"path": "h", "oldText": "old", "newText": "new"},
    "multi_edit": {"path": "h", "edits": [{"oldText": "old", "newText": "new"}]},
    "apply_patch": {"patch": PATCH},
}
COMMANDS = {
    "the path is written in it": "echo new > h",
    "nobody can read the path from it": "python3 -c \"open('h', 'w').write('new')\"",
    "another name gives it away": "python3 -c \"import os; os.chmod('h', 0o600)\"",
}


@pytest.fixture
def outside(tmp_path: Path, workspace: Path) -> Path:
    """A file outside of the workspace that `h` in it is another name of."""
    file = tmp_path / "outside"
    file.write_text("old\n")
    file.chmod(0o644)
    os.link(file, workspace / "h")
    return file


@pytest.mark.parametrize("tool", WRITES)
def test_a_write_to_a_file_with_other_names_asks_in_auto(rail: Rail, outside: Path, tool: str) -> None:
    result = rail(mode="auto", settings=TOOLS).call(tool, WRITES[tool])
    assert result.error
    assert result.error.code == "PERMISSION_REQUIRED"
    assert result.error.details["rule"] == "fs.hard-link"
    assert "the file has other names (hard links)" in result.error.details["reason"]
    assert outside.read_text() == "old\n"


@pytest.mark.parametrize("tool", WRITES)
def test_it_does_not_ask_in_full(rail: Rail, outside: Path, tool: str) -> None:
    assert rail(mode="full", settings=TOOLS).call(tool, WRITES[tool]).error is None
    assert outside.read_text() == "new\n"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_command_that_changes_such_a_file_asks_in_auto(rail: Rail, outside: Path, command: str) -> None:
    result = rail(mode="auto").exec(command)
    assert result.error
    assert result.error.code == "PERMISSION_REQUIRED"
    assert "hard link" in str(result.error.details)
    assert outside.read_text() == "old\n"
    assert outside.stat().st_mode & 0o777 == 0o644


@pytest.mark.skipif(os.geteuid() != 0, reason="a layer of an ordinary user cannot tell, so it is written through")
def test_a_command_that_puts_another_file_in_its_place_does_not_ask(rail: Rail, workspace: Path, outside: Path) -> None:
    assert rail(mode="auto").exec("python3 -c \"import os; os.unlink('h'); open('h', 'w').write('new')\"").error is None
    assert (outside.read_text(), (workspace / "h").read_text()) == ("old\n", "new")


def test_deleting_such_a_name_does_not_ask_and_the_file_stays(rail: Rail, workspace: Path, outside: Path) -> None:
    assert rail(mode="auto", settings=TOOLS).delete("h").error is None
    assert (outside.read_text(), (workspace / "h").exists()) == ("old\n", False)


def test_reading_such_a_file_asks_nobody(rail: Rail, outside: Path) -> None:
    assert outside.exists()
    one = rail(mode="ask")
    assert "old" in one.read("h").content
    assert one.exec("cat h").content == "old\n"


@pytest.mark.parametrize("credential", [".env", ".ssh/id_ed25519"])
def test_a_credential_is_not_read_by_another_name_either(rail: Rail, workspace: Path, credential: str) -> None:
    (workspace / credential).parent.mkdir(exist_ok=True)
    (workspace / credential).write_text("TOKEN=hunter2\n")
    (workspace / "docs").mkdir()
    os.link(workspace / credential, workspace / "docs" / "notes")
    one = rail(mode="auto")
    for tool, arguments in {
        "read": {"path": "docs/notes"},
        "edit": {"path": "docs/notes", "oldText": "TOKEN", "newText": "T"},
        "exec": {"command": "cat docs/notes"},
    }.items():
        result = one.call(tool, arguments)
        assert result.error
        assert result.error.code == "POLICY_DENIED", result
        assert "the file has another, protected name (hard link)" in result.error.message
    assert "hunter2" not in one.call("grep", {"pattern": "TOKEN"}).content
    assert "hunter2" not in one.exec("cat docs/*").content
    assert "hunter2" not in one.exec("python3 -c \"print(open('docs/no' + 'tes').read())\"").content
