"""How `allowed-tools` is read: both spellings that are in use, other systems' names, and what stands in brackets."""

from typing import Any

import pytest

from handrail.skills.allowed_tools import AllowedToolsError, format_allowed_tools, parse_allowed_tools


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Read", "read"),
        ("Write", "write"),
        ("Edit", "edit"),
        ("MultiEdit", "edit"),
        ("Glob", "find"),
        ("Grep", "grep"),
        ("LS", "ls"),
        ("Bash", "exec"),
        ("BashOutput", "process"),
        ("KillShell", "process"),
        ("read", "read"),
        ("apply_patch", "apply_patch"),
        ("mcp__github__create_issue", "mcp__github__create_issue"),
        ("WebFetch", "WebFetch"),
    ],
)
def test_names_are_mapped_and_others_stay(theirs: str, ours: str) -> None:
    found = parse_allowed_tools(theirs)
    assert found is not None
    assert (found.tools, found.patterns) == ((ours,), {})


@pytest.mark.parametrize(
    "value",
    [
        "Read, Grep, Bash(git add:*), Bash(git status)",
        "Read Grep Bash(git add:*) Bash(git status)",
        "Read,Grep,Bash(git add:*),Bash(git status)",
        "Read\n  Grep\tBash(git add:*)   ,Bash(git status),",
        ["Read", "Grep", "Bash(git add:*)", "Bash(git status)"],
        ["Read, Grep", "Bash(git add:*) Bash(git status)", "Read"],
    ],
)
def test_a_list_commas_and_spaces_mean_the_same(value: Any) -> None:
    found = parse_allowed_tools(value)
    assert found is not None
    assert found.tools == ("read", "grep", "exec")
    assert found.patterns == {"exec": ("git add:*", "git status")}
    assert format_allowed_tools(found.tools, found.patterns) == ("read", "grep", "exec(git add:*)", "exec(git status)")


@pytest.mark.parametrize("value", [None, "", "*", ["Read", "*"]])
def test_nothing_and_everything_narrow_nothing(value: Any) -> None:
    assert parse_allowed_tools(value) is None
    assert format_allowed_tools(None, {}) is None


def test_an_empty_list_leaves_no_tool() -> None:
    found = parse_allowed_tools([])
    assert found is not None
    assert found.tools == ()


@pytest.mark.parametrize(
    "value", ["Bash, Bash(git:*)", "Bash(git:*) Bash", "Bash(*) Bash(git:*)", "Bash(:*)", "Bash()"]
)
def test_a_tool_without_brackets_is_allowed_for_everything(value: str) -> None:
    found = parse_allowed_tools(value)
    assert found is not None
    assert (found.tools, found.patterns) == (("exec",), {})


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Read(./docs/**)", "./docs/**"),
        ("Read(docs/**)", "docs/**"),
        ("Read(/docs/**)", "./docs/**"),
        ("Read(//srv/docs/**)", "/srv/docs/**"),
        ("Read(*.md)", "*.md"),
    ],
)
def test_paths_are_spelled_as_the_rules_spell_them(theirs: str, ours: str) -> None:
    found = parse_allowed_tools(theirs)
    assert found is not None
    assert (found.patterns, found.warnings) == ({"read": (ours,)}, ())


@pytest.mark.parametrize("entry", ["Bash(git * main)", "Bash($(id):*)", "Bash(a; b:*)", "Read(~/x/**)", "Read(!x)"])
def test_a_pattern_that_cannot_be_read_stays_and_is_told(entry: str) -> None:
    found = parse_allowed_tools(entry)
    assert found is not None
    assert len(found.patterns) == 1
    assert found.warnings == (f"allowed-tools has {entry}, an unsupported pattern, which allows nothing",)


@pytest.mark.parametrize(
    "value", ["Bash(git", "Bash git)", ")(", "Re/ad", "Bash(a)b", {"Bash": "git"}, [["Read"]], "x" * 201]
)
def test_what_nobody_can_read_is_an_error_and_not_a_skill_without_limits(value: Any) -> None:
    with pytest.raises(AllowedToolsError):
        parse_allowed_tools(value)


def test_very_many_names_are_an_error() -> None:
    with pytest.raises(AllowedToolsError, match="more than 200"):
        parse_allowed_tools(" ".join(f"tool{number}" for number in range(201)))
