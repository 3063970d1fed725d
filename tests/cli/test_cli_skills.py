"""handrail skills: what is found here, and how it is understood."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def skills(workspace: Path) -> None:
    place = workspace / ".claude/skills"
    for name, more in (
        ("commit", "allowed-tools: Bash(git add:*), Read\nmodel: opus\n"),
        ("style", ""),
        ("torn", "a: [\n"),
    ):
        (place / name).mkdir(parents=True)
        (place / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Says {name}.\n{more}---\nThe text.\n")
    (place / "commit/more.md").write_text("")


def test_the_list_is_a_table(here) -> None:
    done = here("skills", "--workspace", ".")
    assert done.code == 0
    rows = [row.split(maxsplit=2) for row in done.out.splitlines()]
    assert rows[0][:2] == ["skill", "from"]
    assert rows[1] == ["commit", ".claude/skills/commit", "exec(git add:*) read  Says commit."]
    assert rows[2][2].split() == ["all", "Says", "style."]
    assert "cannot be used: its front matter is not valid YAML" in rows[3][2]
    assert done.err == "1 with warnings: commit; see: handrail skills show commit\n"


def test_json_is_one_object(here) -> None:
    found = here("skills", "--json").json
    assert found["schema"] == "handrail.skills/1"
    assert [(one["name"], one["usable"]) for one in found["skills"]] == [
        ("commit", True),
        ("style", True),
        ("torn", False),
    ]
    assert found["skills"][0]["allowedTools"] == ["exec(git add:*)", "read"]


def test_show_says_how_it_is_understood(here) -> None:
    done = here("skills", "show", "commit", "--workspace", ".")
    assert done.code == 0
    assert "tools         exec(git add:*), read\n" in done.out
    assert "rule          skill.commit: exec: deny all but git add:*\n" in done.out
    stay = "display, memory, question, skill_control, skill_list, todo"
    assert f"rule          skill.commit: the skill allows only {stay}, if enabled\n" in done.out
    assert "files         more.md\n" in done.out
    assert done.out.endswith("\nThe text.\n")
    assert done.err == "warning: the front matter has model, which has no effect\n"
    shown = here("skills", "show", "commit", "--json").json
    assert (shown["skill"]["files"], shown["skill"]["body"]) == (["more.md"], "The text.")


def test_one_that_cannot_be_used_or_is_not_there_is_a_failure(here) -> None:
    assert here("skills", "show", "torn").code == 1
    done = here("skills", "show", "comit", "--workspace", ".")
    assert (done.code, done.out) == (1, "")
    assert done.err == "error: there is no skill 'comit'. Skills here: commit, style, torn.\nnext: handrail skills\n"


def test_without_any_it_says_where_one_would_be(here, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = here("skills", "--workspace", str(tmp_path / "empty"))
    assert (done.code, done.out[:16]) == (0, "No skills here. ")


def test_settings_count_and_nothing_is_left_behind(here, config, state: Path) -> None:
    config('[skills]\ndisable = ["style"]\n')
    problems = {one["name"]: one["problem"] for one in here("skills", "--json").json["skills"]}
    assert problems["style"] == "[skills] disable names style"
    config("[skills]\nenabled = false\n")
    assert here("skills", "--json").json["skills"] == []
    assert not state.exists()
