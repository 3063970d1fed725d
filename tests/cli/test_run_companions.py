"""What a run offers besides the eight tools, and what stays off."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.cli.commands.run_setup import enable_companion_tools
from handrail.settings import load

Tools = Callable[..., set[str]]
COMPANIONS = {"display", "question", "todo"}
SKILL = "---\nname: tidy\ndescription: How to tidy up.\n---\nTidy up.\n"


@pytest.fixture
def enabled(tmp_path: Path) -> Tools:
    """The tools that the settings of a run enable."""

    def enabled(*, user: str = "", managed: str = "", skill: bool = False, text: str = SKILL) -> set[str]:
        workspace = tmp_path / "shop"
        files = {tmp_path / "home/.config/handrail/config.toml": user, tmp_path / "managed.toml": managed}
        if skill:
            files[workspace / ".handrail/skills/tidy/SKILL.md"] = text
        for path, written in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(written)
        workspace.mkdir(exist_ok=True)
        environ = {"HOME": str(tmp_path / "home")}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HOME", str(tmp_path / "home"))
            loaded = load(environ, {}, str(workspace), str(tmp_path / "managed.toml"))
            tools = enable_companion_tools(loaded, str(workspace)).settings.tools
        return set(tools.enable) - set(tools.disable)

    return enabled


def test_the_companions_are_on(enabled: Tools) -> None:
    assert enabled() == COMPANIONS


def test_what_the_person_enabled_or_disabled_counts(enabled: Tools) -> None:
    assert enabled(user='[tools]\nenable = ["memory"]\ndisable = ["todo"]') == {"display", "question", "memory"}


def test_skills_are_offered_where_there_are_any(enabled: Tools) -> None:
    assert enabled(skill=True) == COMPANIONS | {"skill_list", "skill_control"}
    assert enabled(skill=True, user="[skills]\nenabled = false") == COMPANIONS


def test_skills_that_cannot_be_used_are_none(enabled: Tools) -> None:
    assert enabled(skill=True, text="no front matter") == COMPANIONS
    assert enabled(skill=True, user='[skills]\ndisable = ["tidy"]') == COMPANIONS


def test_a_skill_that_is_there_for_who_names_it_can_be_taken_up(enabled: Tools) -> None:
    text = SKILL.replace("description", "disable-model-invocation: true\ndescription")
    assert enabled(skill=True, text=text) == COMPANIONS | {"skill_list", "skill_control"}


def test_nothing_is_on_that_the_managed_file_does_not_list(enabled: Tools) -> None:
    assert enabled(managed='[tools]\nenable = ["display"]', skill=True) == {"display"}


def test_what_a_model_displays_is_a_line_with_its_sign(here, tmp_path: Path) -> None:
    shown = [["display", {"content": "Half of it\nand more \u001b[2J", "level": "success", "title": "Tests"}]]
    script = tmp_path / "script.json"
    script.write_text(json.dumps([{"calls": shown}, {"text": "Done."}]))
    done = here("run", "x", "--model", f"scripted:{script}")
    assert (done.code, done.out) == (0, "Done.\n")
    assert "» ✓ Tests: Half of it\n»   and more \\u001b[2J\n" in done.err
    assert "✓ display" not in done.err
