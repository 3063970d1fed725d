"""What the layers come to in a session."""

from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.errors import UsageError
from handrail.settings import LoadedSettings, Settings, SettingsError, load
from handrail.settings.load import build_policy_config, find_managed_mode
from handrail.settings.model import Bulk, Paths, Restricted
from handrail.state import StoredState


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "other"))
    return folder


def managed(tmp_path: Path, text: str) -> LoadedSettings:
    (tmp_path / "managed.toml").write_text(text)
    return load({"HOME": str(tmp_path)}, {}, None, str(tmp_path / "managed.toml"))


def test_a_session_is_under_the_projects_file(shop: Path, tmp_path: Path) -> None:
    (shop / "handrail.toml").write_text('mode = "auto"\n[tools]\ndisable = ["grep"]\n')
    state = StoredState(str(tmp_path / "state"))
    with Handrail(shop, state_dir=state.path) as rail:
        assert (rail.mode, rail.call("grep", {"pattern": "x"}).ok) == ("ask", False)
    project = load({"HOME": "/nowhere"}, {}, str(shop)).project
    assert project is not None
    state.give_trust(project.workspace, project.digest)
    with Handrail(shop, state_dir=state.path) as rail:
        assert rail.mode == "auto"
    with Handrail(shop) as rail:  # another state folder knows of no trust
        assert rail.mode == "ask"


def test_a_broken_file_of_a_project_opens_no_session(shop: Path, tmp_path: Path) -> None:
    (shop / "handrail.toml").write_text("mode =")
    with pytest.raises(SettingsError):
        Handrail(shop)
    assert not (tmp_path / "other").exists()


def test_a_session_is_never_looser_than_the_managed_mode(shop: Path, tmp_path: Path) -> None:
    with Handrail(shop, mode="full", settings=managed(tmp_path, 'mode = "ask"')) as rail:
        assert rail.mode == "ask"
        rail.set_mode("plan")
        rail.set_mode("ask")
        with pytest.raises(UsageError, match="the managed file forbids modes looser than ask; got auto"):
            rail.set_mode("auto")
        assert rail.mode == "ask"


def test_without_a_managed_mode_any_mode_can_be_set(shop: Path, tmp_path: Path) -> None:
    with Handrail(shop, settings=managed(tmp_path, "bulk.deleted = 1")) as rail:
        rail.set_mode("full")
        assert rail.mode == "full"


def test_a_rule_about_a_misspelt_tool_opens_no_session(shop: Path, tmp_path: Path) -> None:
    loaded = managed(tmp_path, '[[rule]]\nid = "a"\ndeny = "**"\ntool = "wrote"\n')
    with pytest.raises(SettingsError, match=r"rule a \(managed:1\) is about the tool 'wrote'; did you mean write\?"):
        Handrail(shop, settings=loaded)


def test_what_policy_gets_is_what_the_settings_say(tmp_path: Path) -> None:
    loaded = managed(tmp_path, 'mode = "auto"\n[[rule]]\nid = "a"\ndeny = "curl"\n')
    settings = Settings(
        mode="auto",
        profile="restricted",
        paths=Paths(outside="ask"),
        bulk=Bulk(deleted=1, changed=2),
        restricted=Restricted(commands=("ls",), folders=(".minds",)),
    )
    rules = build_policy_config(
        LoadedSettings(settings=settings, sources={}, rules=loaded.rules), "plan", unattended=True
    )
    assert (rules.mode, rules.unattended, rules.outside, rules.bulk_deleted, rules.bulk_changed) == (
        "plan",
        True,
        "ask",
        1,
        2,
    )
    assert rules.rules == loaded.rules
    assert rules.restriction is not None
    assert (rules.restriction.commands, rules.restriction.folders) == (("ls",), (".minds",))
    assert build_policy_config(loaded).restriction is None
    assert (build_policy_config(loaded, "full").mode, find_managed_mode(loaded)) == ("auto", "auto")
