"""Rules are looked through at load: what cannot be used stops, what never decides is told."""

from pathlib import Path

import pytest

from handrail.settings import LoadedSettings, SettingsError, load


def load_rules(tmp_path: Path, *, trusted: bool | None = None, **texts: str) -> LoadedSettings:
    places = {"managed": "managed.toml", "user": "config.toml", "project": "shop/handrail.toml"}
    (tmp_path / "shop").mkdir(exist_ok=True)
    for layer, text in texts.items():
        (tmp_path / places[layer]).write_text(text)
    environ = {"HOME": "/nowhere"}
    if "user" in texts:
        environ["HANDRAIL_CONFIG"] = str(tmp_path / "config.toml")
    return load(environ, {}, str(tmp_path / "shop"), str(tmp_path / "managed.toml"), trusted=trusted)


def rule(name: str, verdict: str, pattern: str, more: str = "") -> str:
    return f'[[rule]]\nid = "{name}"\n{verdict} = "{pattern}"\n{more}\n'


UNUSABLE = [
    (rule("a", "allow", "git push") + rule("b", "deny", "git push"), "rule b (user:5) "),
    (rule("a", "allow", "pytest", 'match = ["make"]'), "rule a (user:1) "),
    (rule("a", "allow", "pytest", 'no_match = ["pytest -q"]'), "rule a (user:1) "),
    (rule("a", "allow", "python3", "any_args = true"), "rule a (user:1) "),
    (rule("a", "allow", "git push && rm x"), "rule a (user:1) "),
    (rule("a", "allow", "x\\u202e"), "rule a (user:1) "),
]


@pytest.mark.parametrize(("text", "problem"), UNUSABLE)
def test_rules_that_cannot_be_used_stop_everything_with_file_and_line(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(SettingsError) as caught:
        load_rules(tmp_path, user=text)
    assert str(caught.value).startswith(f"The rules are unusable (user file {tmp_path}/config.toml):\n")
    assert caught.value.problems[0].startswith(problem)
    assert all(one.isprintable() for one in caught.value.problems)


def test_a_rule_that_another_one_shadows_is_told(tmp_path: Path) -> None:
    mine = rule("mine", "allow", "git push origin")
    loaded = load_rules(tmp_path, managed=rule("all", "deny", "git push"), user=mine)
    assert len(loaded.notes) == 1
    assert loaded.notes[0].startswith("rule mine (user:1) can never decide: rule all (managed:1) denies git push")
    assert [one.id for one in loaded.rules] == ["all", "mine"]


def test_layers_may_say_different_things_of_the_same(tmp_path: Path) -> None:
    loaded = load_rules(tmp_path, user=rule("push", "allow", "git push"), project=rule("push", "deny", "git push"))
    assert [(one.id, one.layer) for one in loaded.rules] == [("push", "user"), ("push", "project")]


def test_an_allow_rule_of_a_project_is_looked_through_once_it_counts(tmp_path: Path) -> None:
    text = rule("a", "allow", "python3", "any_args = true")
    assert load_rules(tmp_path, project=text, trusted=False).rules == ()
    with pytest.raises(SettingsError, match=r"project file .*/shop/handrail\.toml\)"):
        load_rules(tmp_path, project=text, trusted=True)
