"""Where skills are found, which of two counts, and what never leaves its place."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from handrail.settings import Settings
from handrail.skills.discovery import SkillCatalog, find_skills, list_skill_folders
from handrail.skills.skill import Skill
from handrail.workspace.workspace import Workspace

Find = Callable[..., SkillCatalog]
Put = Callable[..., Path]
TEXT = "---\nname: {0}\ndescription: Says {0}.\n---\nDo {0}.\n"


def only(found: SkillCatalog) -> Skill:
    assert len(found.skills) == 1
    return found.skills[0]


def test_the_samples_are_understood(find: Find, put: Put, workspace: Path) -> None:
    for name in ("commit", "review", "release-notes", "pdf-forms", "house-style"):
        put(workspace / ".claude/skills", name)
    skills = {skill.name: skill for skill in find().skills}
    assert list(skills) == sorted(skills)
    assert not [skill.problem for skill in skills.values() if skill.problem]
    assert skills["commit"].patterns == {"exec": ("git add:*", "git status:*", "git diff:*", "git commit:*")}
    review = skills["review"]
    assert review.description.startswith("Reads a change and says what may be wrong with it. Use before")
    assert (review.version, review.license, review.metadata["author"]) == ("1.2", "Apache-2.0", "the tests")
    notes = skills["release-notes"]
    assert notes.tools == ("read", "write", "exec", "mcp__tracker__list_issues", "WebFetch")
    assert (notes.by_name_only, notes.files) == (True, ("references/form.md",))
    assert notes.warnings == (
        "the front matter has argument-hint, model, which has no effect",
        "allowed-tools: unknown tools WebFetch",
    )
    assert skills["pdf-forms"].compatibility == "Needs Python 3.11 and pypdf"
    assert skills["house-style"].tools is None


def test_every_usual_place_is_looked_into(find: Find, put: Put, workspace: Path, home: Path, tmp_path: Path) -> None:
    places = {
        "a": workspace / ".handrail/skills",
        "b": workspace / ".agents/skills",
        "c": workspace / ".claude/skills",
        "d": home / ".config/handrail/skills",
        "e": home / ".agents/skills",
        "f": home / ".claude/skills",
        "g": tmp_path / "shared",
    }
    for name, place in places.items():
        put(place, name, TEXT.format(name))
    found = {skill.name: (skill.origin, skill.shown) for skill in find(folders=(str(tmp_path / "shared"),)).skills}
    assert found == {
        "a": ("project", ".handrail/skills/a"),
        "b": ("project", ".agents/skills/b"),
        "c": ("project", ".claude/skills/c"),
        "d": ("user", "~/.config/handrail/skills/d"),
        "e": ("user", "~/.agents/skills/e"),
        "f": ("user", "~/.claude/skills/f"),
        "g": ("settings", f"{tmp_path}/shared/g"),
    }


def test_of_two_with_one_name_the_persons_counts_and_the_other_is_told(
    find: Find, put: Put, workspace: Path, home: Path
) -> None:
    put(workspace / ".claude/skills", "x", TEXT.format("x"))
    put(home / ".claude/skills", "x", "---\nname: x\ndescription: Mine.\n---\n")
    skill = only(find())
    assert (skill.origin, skill.description) == ("user", "Mine.")
    assert skill.warnings == ("another skill of this name, in .claude/skills/x, is not used",)


def test_one_folder_found_twice_is_no_second_skill(put: Put, find: Find, workspace: Path, home: Path) -> None:
    put(home / ".claude/skills", "x", TEXT.format("x"))
    (home / ".agents").mkdir()
    (home / ".agents/skills").symlink_to(home / ".claude/skills")
    assert only(find()).warnings == ()


def test_none_are_looked_for_where_the_settings_say_so(find: Find, put: Put, workspace: Path) -> None:
    put(workspace / ".claude/skills", "x", TEXT.format("x"))
    assert find(enabled=False) == SkillCatalog()
    assert only(find(disable=("x",))).problem == "[skills] disable names x"


def test_the_restricted_profile_finds_none_in_the_workspace() -> None:
    places = list_skill_folders(Settings(profile="restricted"), {"HOME": "/home/ann"})
    assert {place.origin for place in places} == {"user"}


@pytest.mark.parametrize("form", [lambda text: b"\xef\xbb\xbf" + text, lambda text: text.replace(b"\n", b"\r\n")])
def test_marks_and_line_ends_make_no_difference(
    find: Find, put: Put, workspace: Path, form: Callable[[bytes], bytes]
) -> None:
    put(workspace / ".claude/skills", "x", form(TEXT.format("x").encode()))
    skill = only(find())
    assert (skill.problem, skill.description, skill.body) == ("", "Says x.", "Do x.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no front matter", "it does not begin with a front matter"),
        ("---\nname: [\n---\n", "not valid YAML"),
        ("---\nname: x\n---\n", "no description"),
        ("---\nname: x\ndescription: y\nallowed-tools: Bash(git\n---\n", "bracket"),
        ("---\nname: x\ndescription: y\nallowed-tools: {a: b}\n---\n", "neither a text nor a list"),
        (b"---\n\0\xff\xfe", "is not text"),
        (b"---\n" + b"x" * 300_000, "has more than 256 KB"),
    ],
)
def test_a_broken_one_is_listed_with_the_reason(
    find: Find, put: Put, workspace: Path, text: str | bytes, problem: str
) -> None:
    put(workspace / ".claude/skills", "x", text)
    assert re.search(problem, only(find()).problem)


@pytest.mark.parametrize(
    ("given", "name", "warning"),
    [
        ("y", "y", "its folder is called 'x'"),
        ("", "x", None),
        ("Tidy Commits", "x", "the name 'Tidy Commits' is invalid"),
        ("a--b", "x", "is invalid"),
        ("a" * 65, "x", "is invalid"),
        ("../../etc", "x", "is invalid"),
    ],
)
def test_names_are_checked(find: Find, put: Put, workspace: Path, given: str, name: str, warning: str | None) -> None:
    put(workspace / ".claude/skills", "x", f"---\nname: {given}\ndescription: d\n---\n")
    skill = only(find())
    assert skill.name == name
    assert skill.warnings == () if warning is None else warning in skill.warnings[0]


def test_without_any_good_name_it_cannot_be_used(find: Find, put: Put, workspace: Path) -> None:
    put(workspace / ".claude/skills", "My Skill", "---\nname: My Skill\ndescription: d\n---\n")
    assert only(find()).problem.startswith("neither it nor its folder has a name")


def test_a_missing_description_is_made_up_for_and_a_long_one_cut(find: Find, put: Put, workspace: Path) -> None:
    put(workspace / ".claude/skills", "x", "---\nname: x\n---\n# Head\n\nWhat it does.\n")
    put(workspace / ".claude/skills", "y", f"---\nname: y\ndescription: {'word ' * 400}\n---\n")
    first, second = find().skills
    assert first.description == "What it does."
    assert (len(second.description), second.description[-1]) == (1_024, "…")
    assert all(len(skill.warnings) == 1 for skill in (first, second))


@pytest.mark.parametrize("inside", ["workspace", "home"])
def test_no_link_leads_a_skill_elsewhere(find: Find, workspace: Path, home: Path, tmp_path: Path, inside: str) -> None:
    secret = tmp_path / "id_rsa"
    secret.write_text("---\nname: leak\ndescription: SECRET\n---\nSECRET\n")
    place = {"workspace": workspace, "home": home}[inside] / ".claude/skills/x"
    place.mkdir(parents=True)
    (place / "SKILL.md").symlink_to(secret)
    skill = only(find())
    assert (skill.name, skill.problem) == ("x", "its SKILL.md leads outside of where it was found")
    assert "SECRET" not in repr(skill)


def test_a_projects_folder_that_leads_outside_cannot_be_used(
    find: Find, put: Put, workspace: Path, tmp_path: Path
) -> None:
    put(tmp_path / "elsewhere", "x", TEXT.format("x"))
    (workspace / ".claude/skills").mkdir(parents=True)
    (workspace / ".claude/skills/x").symlink_to(tmp_path / "elsewhere/x")
    (tmp_path / "elsewhere/skills").symlink_to(".")
    (workspace / ".agents").symlink_to(tmp_path / "elsewhere")
    found = find()
    assert only(found).problem == "its SKILL.md leads outside of where it was found"
    assert only(found).description == ""
    assert found.warnings == (".agents/skills cannot be read",)


def test_a_person_may_link_a_skill_from_elsewhere(find: Find, put: Put, home: Path, tmp_path: Path) -> None:
    folder = put(tmp_path / "dotfiles", "x", TEXT.format("x"))
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/x").symlink_to(folder)
    assert (only(find()).problem, only(find()).folder) == ("", str(folder))


def test_a_place_that_the_agent_can_write_to_is_the_workspaces(
    put: Put, workspace: Path, tmp_path: Path, home: Path
) -> None:
    put(tmp_path / "elsewhere", "x", TEXT.format("x"))
    put(workspace / "home/.claude/skills", "y", TEXT.format("y"))
    (workspace / "home/.claude/skills/x").symlink_to(tmp_path / "elsewhere/x")
    with Workspace(str(workspace)) as house:
        found = find_skills(house, list_skill_folders(Settings(), {"HOME": str(workspace / "home")})).skills
    assert [(skill.name, skill.origin, skill.problem) for skill in found] == [
        ("x", "project", "its SKILL.md leads outside of where it was found"),
        ("y", "project", ""),
    ]


def test_credentials_pipes_and_folders_are_not_read(find: Find, workspace: Path) -> None:
    place = workspace / ".claude/skills"
    for name in ("a", "b", "c", "d"):
        (place / name).mkdir(parents=True)
    (workspace / ".env").write_text("---\nname: a\ndescription: SECRET\n---\n")
    (place / "a/SKILL.md").symlink_to("../../../.env")
    os.mkfifo(place / "b/SKILL.md")
    (place / "c/SKILL.md").mkdir()
    (place / "d/SKILL.md").symlink_to("nowhere")
    problems = {skill.name: skill.problem for skill in find().skills}
    assert problems == {
        "a": "its SKILL.md leads to a credential",
        "b": "its SKILL.md is not a readable file",
        "c": "its SKILL.md is not a readable file",
        "d": "its SKILL.md is gone",
    }


def test_a_sparse_gigabyte_costs_nothing(find: Find, workspace: Path) -> None:
    place = workspace / ".claude/skills/x"
    place.mkdir(parents=True)
    with (place / "SKILL.md").open("wb") as file:
        file.truncate(1 << 30)
    assert only(find()).problem == "its SKILL.md has more than 256 KB"


def test_very_many_folders_are_counted_and_not_read(find: Find, put: Put, workspace: Path) -> None:
    for number in range(205):
        put(workspace / ".claude/skills", f"s{number:03}", TEXT.format(f"s{number:03}"))
    found = find()
    assert [found.skills[0].name, found.skills[-1].name, len(found.skills)] == ["s000", "s199", 200]
    assert found.warnings == (".claude/skills holds 205 names; only the first 200 were checked",)


def test_files_are_listed_without_links_and_only_so_deep(find: Find, put: Put, workspace: Path) -> None:
    folder = put(workspace / ".claude/skills", "x", TEXT.format("x"))
    for path in ("b.md", "references/a.md", "1/2/3/here.md", "1/2/3/4/deep.md"):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")
    (folder / "link.md").symlink_to("/etc/passwd")
    (folder / "round").symlink_to(".")
    assert only(find()).files == ("1/2/3/here.md", "b.md", "references/a.md")


def test_a_tree_of_nothing_but_folders_is_not_walked_to_its_end(find: Find, put: Put, workspace: Path) -> None:
    folder = put(workspace / ".claude/skills", "x", TEXT.format("x"))
    for number in range(100):
        for inner in range(12):
            (folder / f"{number:03}/{inner:02}").mkdir(parents=True)
    (folder / "099/last.md").write_text("")
    assert only(find()).files == ()


def test_what_is_no_skill_is_passed_over(find: Find, workspace: Path) -> None:
    place = workspace / ".claude/skills"
    (place / "empty").mkdir(parents=True)
    (place / ".hidden").mkdir()
    (place / ".hidden/SKILL.md").write_text(TEXT.format("hidden"))
    (place / "README.md").write_text("")
    assert find() == SkillCatalog()
    (workspace / ".agents").write_text("a file")
    assert find() == SkillCatalog()


def test_a_skill_that_is_linked_from_the_workspace_is_the_workspaces(
    find: Find, put: Put, workspace: Path, tmp_path: Path, home: Path
) -> None:
    folder = put(workspace / "skills", "x", TEXT.format("x"))
    (home / ".claude/skills").mkdir(parents=True)
    (home / ".claude/skills/x").symlink_to(folder)
    assert (only(find()).origin, only(find()).problem) == ("project", "")
    put(tmp_path / "private", "x", TEXT.format("x"))
    folder.rename(workspace / "skills/y")
    folder.symlink_to(tmp_path / "private/x")
    assert (only(find()).origin, only(find()).problem) == (
        "project",
        "its SKILL.md leads outside of where it was found",
    )
