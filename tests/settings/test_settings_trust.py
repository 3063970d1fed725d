"""What a project may say before and after it is trusted."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from handrail.protocol.errors import StoreError
from handrail.settings import LoadedSettings, load
from handrail.settings.trust import Trust, build_trust_path, read_trust
from handrail.state import StoredState

LOOSE = """\
# a project
mode = "auto"
[tools]
enable = ["todo"]
disable = ["write"]
[bulk]
deleted = 5
changed = 500
[[rule]]
id = "tests"
allow = "pytest"
[[rule]]
id = "push"
ask = "git push"
[[rule]]
id = "docs"
deny = "docs/**"
tool = "write"
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


@pytest.fixture
def state(tmp_path: Path) -> StoredState:
    return StoredState(str(tmp_path / "state"))


def load_in(workspace: Path, text: str | None = None) -> LoadedSettings:
    if text is not None:
        (workspace / "handrail.toml").write_text(text)
    environ = {"HOME": "/nowhere", "HANDRAIL_STATE_DIR": str(workspace.parent / "state")}
    return load(environ, {}, str(workspace), str(workspace.parent / "managed.toml"))


def trust(workspace: Path, state: StoredState) -> None:
    project = load_in(workspace).project
    assert project is not None
    state.give_trust(project.workspace, project.digest)


def test_until_it_is_trusted_a_project_only_tightens_and_each_line_that_would_loosen_is_told(workspace: Path) -> None:
    loaded = load_in(workspace, LOOSE)
    assert loaded.settings.mode == "ask"
    assert (loaded.settings.tools.enable, loaded.settings.tools.disable) == ((), ("write",))
    assert (loaded.settings.bulk.deleted, loaded.settings.bulk.changed) == (5, 200)
    assert [(rule.id, rule.verdict, rule.source) for rule in loaded.rules] == [
        ("push", "confirm", "project:12"),
        ("docs", "deny", "project:15"),
    ]
    assert loaded.notes == (
        'handrail.toml line 2: mode = "auto" is ignored until you trust this project: handrail trust',
        'handrail.toml line 4: tools.enable = ["todo"] is ignored until you trust this project: handrail trust',
        "handrail.toml line 8: bulk.changed = 500 is ignored until you trust this project: handrail trust",
        'handrail.toml line 9: rule tests: allow "pytest" is ignored until you trust this project: handrail trust',
    )
    assert all(ignored.until_trusted for ignored in loaded.ignored)


def test_what_is_ignored_is_told_in_the_order_of_the_file(workspace: Path) -> None:
    loaded = load_in(workspace, '[[rule]]\nid = "tests"\nallow = "pytest"\n[bulk]\nchanged = 500\ndeleted = 50\n')
    assert [ignored.line for ignored in loaded.ignored] == [1, 5, 6]


def test_a_trusted_project_says_all_of_it(workspace: Path, state: StoredState) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    loaded = load_in(workspace)
    assert (loaded.settings.mode, loaded.settings.tools.enable, loaded.settings.bulk.changed) == (
        "auto",
        ("todo",),
        500,
    )
    assert [rule.id for rule in loaded.rules] == ["tests", "push", "docs"]
    assert loaded.notes == ()
    assert loaded.sources["mode"] == f"project file {workspace}/handrail.toml"


@pytest.mark.parametrize("change", [b"#", b" ", b"\n", b"\r\n"])
def test_one_byte_more_ends_the_trust_and_that_is_told(workspace: Path, state: StoredState, change: bytes) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    with (workspace / "handrail.toml").open("ab") as file:
        file.write(change)
    loaded = load_in(workspace)
    assert loaded.settings.mode == "ask"
    assert loaded.notes[0] == "handrail.toml changed since you trusted it: check it before you trust it again"
    assert len(loaded.notes) == 5


def test_the_same_bytes_again_are_trusted_again(workspace: Path, state: StoredState) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    assert load_in(workspace, "").settings.mode == "ask"
    assert load_in(workspace, LOOSE).settings.mode == "auto"


def test_another_workspace_with_the_same_file_is_not_trusted(workspace: Path, state: StoredState) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    other = workspace.parent / "other"
    other.mkdir()
    assert load_in(other, LOOSE).settings.mode == "ask"


def test_trust_is_in_the_real_folder_whatever_the_way_to_it(workspace: Path, state: StoredState) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    (workspace.parent / "link").symlink_to(workspace)
    assert load_in(workspace.parent / "link").settings.mode == "auto"


def test_a_file_that_loosens_nothing_needs_no_word(workspace: Path) -> None:
    assert load_in(workspace, 'mode = "plan"\n').notes == ()


def test_trust_is_taken_back(workspace: Path, state: StoredState) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    assert list(read_trust(state.path)) == [str(workspace)]
    assert state.revoke_trust(str(workspace))
    assert not state.revoke_trust(str(workspace))
    assert load_in(workspace).settings.mode == "ask"


def test_the_record_is_for_its_owner_only_and_leaves_nothing_else_behind(state: StoredState) -> None:
    state.give_trust("/a", "1")
    state.give_trust("/b", "2")
    assert os.listdir(state.path) == ["trust.json"]
    assert os.stat(build_trust_path(state.path)).st_mode & 0o777 == 0o600
    assert {path: trust.digest for path, trust in read_trust(state.path).items()} == {"/a": "1", "/b": "2"}


def test_a_record_that_cannot_be_written_is_told_and_the_old_one_stays(state: StoredState) -> None:
    state.make()
    os.mkdir(build_trust_path(state.path))
    with pytest.raises(StoreError):
        state.give_trust("/a", "1")
    assert os.listdir(state.path) == ["trust.json"]


def write(path: str, content: bytes) -> None:
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, 0o600)


def linked(path: str) -> None:
    write(f"{path}.real", b'{"schema": "handrail.trust/1"}')
    os.symlink(f"{path}.real", path)


def open_to_others(path: str) -> None:
    write(path, b'{"schema": "handrail.trust/1"}')
    os.chmod(path, 0o666)


SPOILT = [
    (lambda path: write(path, b""), "handrail did not write it"),
    (lambda path: write(path, b"{"), "handrail did not write it"),
    (lambda path: write(path, b"[]"), "handrail did not write it"),
    (lambda path: write(path, b'{"schema": "handrail.trust/2"}'), "handrail did not write it"),
    (lambda path: write(path, b'{"schema": "handrail.trust/1", "x": 1}'), "handrail did not write it"),
    (lambda path: write(path, b'{"projects": {"/a": {"digest": "\xff"}}}'), "handrail did not write it"),
    (lambda path: write(path, b" " * (16 * 1024 * 1024 + 1)), "handrail did not write it"),
    (os.mkdir, "handrail did not write it"),
    (os.mkfifo, "handrail did not write it"),
    (linked, "Too many levels of symbolic links"),
    (open_to_others, "another user could have written it"),
]


@pytest.mark.parametrize(("spoil", "reason"), SPOILT, ids=range(len(SPOILT)))
def test_a_spoilt_record_is_an_error_and_nothing_is_trusted(
    workspace: Path, state: StoredState, spoil, reason: str
) -> None:
    load_in(workspace, LOOSE)
    state.make()
    spoil(build_trust_path(state.path))
    words = f"The record of trust {state.path}/trust.json cannot be used: {reason}."
    words += " Check it, then remove it. Next: handrail doctor"
    with pytest.raises(StoreError) as caught:
        state.give_trust("/a", "1")
    assert str(caught.value) == words
    loaded = load_in(workspace)
    assert loaded.settings.mode == "ask"
    assert loaded.notes[0] == f"{words} Until then the project is not trusted."


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_record_of_another_user_does_not_count(state: StoredState) -> None:
    state.give_trust("/a", "1")
    os.chown(build_trust_path(state.path), 12345, -1)
    with pytest.raises(StoreError, match="another user could have written it"):
        read_trust(state.path)


def test_a_record_in_the_workspace_itself_does_not_count(workspace: Path) -> None:
    digest = load_in(workspace, LOOSE).project.digest
    StoredState(str(workspace / "state")).give_trust(str(workspace), digest)
    environ = {"HOME": "/nowhere", "HANDRAIL_STATE_DIR": str(workspace / "state")}
    loaded = load(environ, {}, str(workspace), "/nowhere/managed.toml")
    assert loaded.settings.mode == "ask"
    assert loaded.notes[0].startswith("the state folder is in the workspace, so its records of trust are ignored")


def test_trust_is_looked_up_where_the_caller_keeps_it(workspace: Path, state: StoredState) -> None:
    load_in(workspace, LOOSE)
    trust(workspace, state)
    environ = {"HOME": "/nowhere"}
    assert load(environ, {}, str(workspace), "/nowhere/m.toml").settings.mode == "ask"
    assert load(environ, {}, str(workspace), "/nowhere/m.toml", state=state.path).settings.mode == "auto"


def test_trust_has_its_time(state: StoredState) -> None:
    before = datetime.now(UTC)
    assert before <= state.give_trust("/a", "1").time <= datetime.now(UTC)
    assert isinstance(read_trust(state.path)["/a"], Trust)
