"""The state folder: laid out for its owner only, never within the agent's reach."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail, UsageError
from handrail.settings import Settings
from handrail.settings.model import Paths
from handrail.store.state_dir import StateFolder

Make = Callable[..., Handrail]


def test_everything_in_the_state_folder_is_for_its_owner_only(rail: Make, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        one = rail(session="s", settings=Settings())
        one.write("a.txt", "x")
        one.read("a.txt")
    finally:
        os.umask(before)
    state = tmp_path / "state"
    modes = {str(path.relative_to(state)): path.stat().st_mode & 0o777 for path in [state, *state.rglob("*")]}
    folders = {name for name in modes if (state / name).is_dir()}
    assert {modes[name] for name in modes.keys() - folders} == {0o600}
    assert {name: oct(modes[name]) for name in folders if modes[name] != 0o700} == {}


@pytest.mark.parametrize("where", [".", "state", "deep/in/side"])
def test_a_state_folder_in_the_workspace_is_refused_and_not_made(rail: Make, workspace: Path, where: str) -> None:
    with pytest.raises(UsageError, match=r"must not contain each other. Set HANDRAIL_STATE_DIR."):
        rail(state_dir=workspace / where)
    assert list(workspace.iterdir()) == []


def test_a_workspace_in_the_state_folder_is_refused(rail: Make, tmp_path: Path) -> None:
    inner = tmp_path / "state" / "workspaces" / "mine"
    inner.mkdir(parents=True)
    with pytest.raises(UsageError, match=r"must not contain each other. Set HANDRAIL_STATE_DIR."):
        rail(workspace=inner)


def test_a_link_does_not_hide_that_they_overlap(rail: Make, tmp_path: Path, workspace: Path) -> None:
    (tmp_path / "link").symlink_to(workspace)
    with pytest.raises(UsageError, match=r"must not contain each other. Set HANDRAIL_STATE_DIR."):
        rail(state_dir=tmp_path / "link" / "state")
    (workspace / "sub").mkdir()
    (tmp_path / "other").symlink_to(workspace / "sub")
    with pytest.raises(UsageError, match=r"must not contain each other. Set HANDRAIL_STATE_DIR."):
        rail(state_dir=tmp_path / "other")


@pytest.mark.parametrize("kind", ["read_only", "writable"])
def test_an_extra_root_around_the_state_folder_is_refused(rail: Make, tmp_path: Path, kind: str) -> None:
    (tmp_path / "state").mkdir()
    for folder in (tmp_path, tmp_path / "state"):
        with pytest.raises(UsageError, match=r"must not contain each other. Set HANDRAIL_STATE_DIR."):
            rail(settings=Settings(paths=Paths(**{kind: (str(folder),)})))


def test_siblings_whose_names_begin_alike_do_not_overlap(rail: Make, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    with rail(workspace=tmp_path / "work", state_dir=tmp_path / "work-state") as one:
        assert one.ls().ok


@pytest.mark.parametrize("session", ["", "..", ".hidden", "a/b", "/etc", "a b", "x" * 65, "a\0", "ä", "-dash", "a\n"])
def test_a_session_id_that_is_no_plain_name_is_refused(tmp_path: Path, session: str) -> None:
    with pytest.raises(UsageError, match="a session id is made of"):
        StateFolder(str(tmp_path / "state")).session("/workspace", session)
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("session", ["a", "cli", "A.b_c-9", "x" * 64, "0"])
def test_a_plain_session_id_has_its_folder(tmp_path: Path, session: str) -> None:
    state = StateFolder(str(tmp_path / "state"))
    folder = state.session("/workspace", session)
    assert os.path.basename(folder) == session
    assert folder != state.session("/another", session)


def test_sessions_are_those_that_have_a_journal(rail: Make, tmp_path: Path, workspace: Path) -> None:
    state = StateFolder(str(tmp_path / "state"))
    assert state.sessions() == []
    rail(session="one").close()
    rail(session="two").close()
    state.session(str(workspace), "without")
    (tmp_path / "other").mkdir()
    rail(workspace=tmp_path / "other", session="three").close()
    assert [os.path.basename(folder) for folder in state.sessions(str(workspace))] == ["one", "two"]
    assert len(state.sessions()) == 3


def test_a_state_folder_that_others_could_enter_is_made_private(rail, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir(mode=0o777)
    state.chmod(0o777)
    (state / "audit.jsonl").touch()
    (state / "audit.jsonl").chmod(0o666)
    rail().ls(".")
    assert state.stat().st_mode & 0o777 == 0o700
    assert (state / "audit.jsonl").stat().st_mode & 0o777 == 0o600
