"""skill_list and skill_control: what the model is told of skills."""

from collections.abc import Callable
from pathlib import Path

import pytest

from handrail import Handrail
from handrail.protocol.events import Notice
from handrail.settings import Settings
from handrail.settings.model import Tools

Make = Callable[..., Handrail]
BOTH = Settings(tools=Tools(enable=("skill_list", "skill_control")))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    for variable in ("XDG_CONFIG_HOME", "HANDRAIL_CONFIG"):
        monkeypatch.delenv(variable, raising=False)
    return folder


def skill(place: Path, name: str, *more: str, body: str = "Do it.") -> None:
    (place / name).mkdir(parents=True)
    front = "\n".join(("---", f"name: {name}", f"description: Says {name}.", *more, "---", body))
    (place / name / "SKILL.md").write_text(front)


def test_they_are_off_until_they_are_switched_on(rail: Make) -> None:
    assert not {"skill_list", "skill_control"} & {spec.name for spec in rail().specs()}
    assert {"skill_list", "skill_control"} <= {spec.name for spec in rail(settings=BOTH, session="b").specs()}


def test_without_skills_the_list_says_so(rail: Make) -> None:
    result = rail(settings=BOTH).call("skill_list", {})
    assert (result.content, result.summary) == ("There are no skills here.", "0 skills, 0 active")


def test_the_list_tells_what_each_is_for_where_it_is_from_and_what_is_wrong(
    rail: Make, workspace: Path, home: Path
) -> None:
    skill(workspace / ".claude/skills", "tidy", "allowed-tools: Read Bash(git:*)", "hooks: x")
    skill(home / ".claude/skills", "mine")
    skill(workspace / ".claude/skills", "deploy", "disable-model-invocation: true")
    skill(workspace / ".agents/skills", "broken", "allowed-tools: Bash(git")
    opened = rail(settings=BOTH)
    opened.call("skill_control", {"name": "mine", "action": "activate"})
    result = opened.call("skill_list", {})
    assert result.content == (
        "broken (from this project, cannot be used): allowed-tools has a bracket too many or too few: 'Bash(git'\n"
        "mine (from the user, active): Says mine.\n"
        "tidy (from this project): Says tidy."
    )
    assert result.summary == "3 skills, 1 active"
    tidy = result.data.skills[2]
    assert (tidy.allowed_tools, tidy.path) == (("read", "exec(git:*)"), ".claude/skills/tidy")
    assert tidy.warnings == ("the front matter has hooks, which has no effect",)
    assert [entry.name for entry in opened.skills()] == ["broken", "deploy", "mine", "tidy"]
    assert [entry.active for entry in opened.skills()] == [False, False, True, False]


def test_activating_tells_the_text_and_the_tools(rail: Make, workspace: Path) -> None:
    skill(workspace / ".claude/skills", "tidy", "allowed-tools: Read, Bash(git add:*)", body="Take care: !`rm -rf /`")
    opened = rail(settings=BOTH)
    result = opened.call("skill_control", {"name": "tidy", "action": "activate"})
    assert result.content == (
        "The skill tidy of this project is active. Its instructions rank below the user's words.\n"
        "While it is active, you have these tools: read, exec(git add:*).\n"
        "Its text follows.\n\n"
        "Take care: !`rm -rf /`"
    )
    assert result.data.allowed_tools == ("read", "exec(git add:*)")
    assert result.data.active == ("tidy",)
    assert "The skill tidy is active." in [event.text for event in opened.events() if isinstance(event, Notice)]


def test_its_files_are_named_as_read_takes_them(rail: Make, workspace: Path) -> None:
    skill(workspace / ".claude/skills", "tidy")
    (workspace / ".claude/skills/tidy/more.md").write_text("more\n")
    opened = rail(settings=BOTH)
    result = opened.call("skill_control", {"name": "tidy", "action": "activate"})
    assert "Its files are in .claude/skills/tidy: more.md." in result.content
    assert opened.read(f"{result.data.folder}/{result.data.files[0]}").ok


def test_a_long_text_is_told_in_part_and_can_be_read_on(rail: Make, workspace: Path) -> None:
    skill(workspace / ".claude/skills", "tidy", "allowed-tools: Bash(git:*)", body="line\n" * 20_000)
    opened = rail(settings=BOTH)
    result = opened.call("skill_control", {"name": "tidy", "action": "activate"})
    assert len(result.content) <= 30_000
    assert "read" in {spec.name for spec in opened.specs()}
    assert opened.read(result.meta.output or "").ok
    assert opened.read(".claude/skills/tidy/SKILL.md", offset=10_000).ok


@pytest.mark.parametrize(
    ("name", "action", "code", "says"),
    [
        ("tdy", "activate", "NOT_FOUND", "No skill 'tdy'. There are: tidy."),
        ("broken", "activate", "UNAVAILABLE", "The skill broken cannot be used: its front matter"),
        ("tdy", "deactivate", "NOT_FOUND", "No skill 'tdy'. None is active."),
        ("tidy", "start", "INVALID_ARGUMENT", "action"),
        ("", "activate", "INVALID_ARGUMENT", "name"),
    ],
)
def test_what_cannot_be_done_is_told_with_what_can(
    rail: Make, workspace: Path, name: str, action: str, code: str, says: str
) -> None:
    skill(workspace / ".claude/skills", "tidy")
    (workspace / ".claude/skills/broken").mkdir()
    (workspace / ".claude/skills/broken/SKILL.md").write_text("---\nname: [\n---\n")
    error = rail(settings=BOTH).call("skill_control", {"name": name, "action": action}).error
    assert error is not None
    assert error.code == code
    assert says in error.message


@pytest.mark.parametrize("mode", ["plan", "ask", "auto", "full"])
def test_nobody_is_asked_in_any_mode(rail: Make, workspace: Path, mode: str) -> None:
    skill(workspace / ".claude/skills", "tidy")
    opened = rail(settings=Settings(mode=mode, tools=BOTH.tools), mode=None, unattended=True)  # type: ignore[arg-type]
    assert opened.call("skill_list", {}).ok
    for action in ("activate", "activate", "deactivate", "deactivate"):
        assert opened.call("skill_control", {"name": "tidy", "action": action}).ok


def test_a_rule_about_the_file_counts_for_its_text(
    rail: Make, workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skill(workspace / ".claude/skills", "tidy")
    config = tmp_path / "config.toml"
    config.write_text(
        '[tools]\nenable = ["skill_control"]\n[[rule]]\nid = "no-skills"\ntool = "*"\ndeny = ".claude/**"\n'
    )
    monkeypatch.setenv("HANDRAIL_CONFIG", str(config))
    result = rail(settings=None).call("skill_control", {"name": "tidy", "action": "activate"})
    assert result.error is not None
    assert result.error.details["rule"] == "no-skills"
    assert "Do it." not in result.content


def test_only_so_many_are_active_at_once(rail: Make, workspace: Path) -> None:
    for number in range(33):
        skill(workspace / ".claude/skills", f"s{number}")
    opened = rail(settings=BOTH)
    results = [opened.call("skill_control", {"name": f"s{at}", "action": "activate"}) for at in range(33)]
    assert [result.ok for result in results] == [True] * 32 + [False]
    assert results[-1].error is not None
    assert results[-1].error.code == "LIMIT_EXCEEDED"
