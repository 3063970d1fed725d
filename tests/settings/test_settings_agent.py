"""Which model is talked to, and how much a turn may use: who may say so."""

from pathlib import Path

import pytest
from layer_files import load_layers

from handrail.settings import SettingsError

CLAUDE, OTHER = "anthropic:claude-x", "openai:gpt-x"


def test_nobody_chooses_a_model_by_default(tmp_path: Path) -> None:
    assert load_layers(tmp_path).settings.model is None


def test_the_nearest_that_may_choose_a_model_does(tmp_path: Path) -> None:
    user, project = f'model = "{CLAUDE}"', f'model = "{OTHER}"'
    assert load_layers(tmp_path, user=user).settings.model == CLAUDE
    assert load_layers(tmp_path, user=user, project=project, trusted=True).settings.model == OTHER
    by_variable = load_layers(tmp_path, user=user, environ={"HANDRAIL_MODEL": OTHER})
    assert (by_variable.settings.model, by_variable.sources["model"]) == (OTHER, "environment HANDRAIL_MODEL")
    both = load_layers(tmp_path, environ={"HANDRAIL_MODEL": OTHER, "HANDRAIL_MODE": "plan"}, flags={"model": CLAUDE})
    assert (both.settings.model, both.settings.mode) == (CLAUDE, "plan")


def test_a_project_that_nobody_trusts_does_not_choose_who_sees_the_code(tmp_path: Path) -> None:
    found = load_layers(tmp_path, user=f'model = "{CLAUDE}"', project=f'model = "{OTHER}"')
    assert found.settings.model == CLAUDE
    assert "handrail trust" in found.notes[0]


def test_the_model_of_the_managed_file_is_the_only_one(tmp_path: Path) -> None:
    for given in ({"flags": {"model": OTHER}}, {"environ": {"HANDRAIL_MODEL": OTHER}}):
        assert load_layers(tmp_path, managed=f'model = "{CLAUDE}"', **given).settings.model == CLAUDE


@pytest.mark.parametrize("name", ["a:b c", "a:\n", "a:\u00e4", "a" * 201])
def test_what_can_be_no_name_of_a_model_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="model"):
        load_layers(tmp_path, flags={"model": name})
    with pytest.raises(SettingsError, match="HANDRAIL_MODEL"):
        load_layers(tmp_path, environ={"HANDRAIL_MODEL": name})


def test_limits_of_a_turn_are_tightened_by_anybody_and_loosened_by_who_is_trusted(tmp_path: Path) -> None:
    user, project = "[agent]\ncalls = 50\n", "[agent]\ncalls = 500\ntokens = 1000\n"
    untrusted = load_layers(tmp_path, user=user, project=project).settings.agent
    assert (untrusted.calls, untrusted.tokens) == (50, 1000)
    trusted = load_layers(tmp_path, user=user, project=project, trusted=True).settings.agent
    assert (trusted.calls, trusted.tokens) == (500, 1000)


def test_no_flag_goes_beyond_the_tokens_of_the_managed_file(tmp_path: Path) -> None:
    for flag, held in ((2_000, 1_000), (500, 500)):
        given = {"agent.tokens": flag}
        assert load_layers(tmp_path, managed="[agent]\ntokens = 1000", flags=given).settings.agent.tokens == held
