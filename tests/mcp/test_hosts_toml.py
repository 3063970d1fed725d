"""TOML, changed in place, in whichever of its many ways a person wrote it."""

import tomllib
from difflib import ndiff
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.mcp.hosts.merge import (
    CannotMerge,
    ConfigSyntaxError,
    ListContains,
    ServerEntry,
    is_same_json,
    merge_value,
)
from handrail.mcp.hosts.toml import merge_toml

WANTED: dict[str, Any] = {
    "sandbox_mode": "read-only",
    "features": {"shell_tool": False},
    "mcp_servers": {"handrail": {"command": "uvx", "args": ["handrail", "mcp", "--workspace", "."]}},
}

TEXTS: list[tuple[str, list[str]]] = [
    ("", []),
    ('model = "gpt-5"\n', []),
    ('model = "gpt-5"', ['model = "gpt-5"']),  # its line had no end
    ("# my settings\n\n# the tools\n[tools]\nweb_search = true\n", []),
    ("[features]\nmemories = true # on\n\n[tui]\nx = 1\n", []),
    ("features.memories = true\n", []),
    ('[mcp_servers.docs]\nurl = "https://example.org/mcp"\n', []),
    ('model = "a"\r\n\r\n[tui]\r\nx = 1\r\n', []),
    ('notes = """\n[features]\nsandbox_mode = "none"\n"""\n[tui]\nx = 1\n', []),
    ('[[rule]]\nname = "a"\n\n[[rule]]\nname = "b"\n', []),
    ('"sandbox_mode" = "read-only"\n[ "features" ]\n', []),
    ('sandbox_mode = "workspace-write"\n[features]\n', ['sandbox_mode = "workspace-write"']),
    ("[features]\nshell_tool = true\nx = 1\n", ["shell_tool = true"]),
    (
        '[mcp_servers.handrail]\nenv = { A = "1" }\nargs = [\n  "a", # first\n]\n',
        ["args = [", '  "a", # first', "]"],
    ),
]


@pytest.mark.parametrize(("text", "replaced"), TEXTS)
def test_the_result_says_what_is_wanted_and_all_that_was_there(text: str, replaced: list[str]) -> None:
    result = merge_toml(text, WANTED)
    assert tomllib.loads(result) == merge_value(tomllib.loads(text), WANTED)
    difference = ndiff(text.splitlines(keepends=True), result.splitlines(keepends=True))
    assert [line[2:].rstrip("\n") for line in difference if line.startswith("- ")] == replaced
    assert merge_toml(result, WANTED) == result


def test_it_is_written_as_a_person_would() -> None:
    assert merge_toml('model = "gpt-5" # best\n\n# what I like\n[tui]\nx = 1\n', WANTED) == (
        'model = "gpt-5" # best\nsandbox_mode = "read-only"\n\n# what I like\n[tui]\nx = 1\n\n'
        "[features]\nshell_tool = false\n\n"
        '[mcp_servers.handrail]\ncommand = "uvx"\nargs = ["handrail", "mcp", "--workspace", "."]\n'
    )


def test_a_list_that_is_to_have_something_keeps_what_else_it_has() -> None:
    wanted = {"mcp_servers": {"handrail": ServerEntry({"env_vars": ListContains(("A", "B"))})}}
    fresh = merge_toml("", wanted)
    assert fresh == '[mcp_servers.handrail]\nenv_vars = ["A", "B"]\n'
    theirs = merge_toml('[mcp_servers.handrail]\nenv_vars = ["MINE", "B"] # two\n', wanted)
    assert theirs == '[mcp_servers.handrail]\nenv_vars = ["MINE", "B", "A"] # two\n'
    assert merge_toml(theirs, wanted) == theirs


def test_another_value_is_exchanged_and_the_comment_behind_it_stays() -> None:
    text = 'sandbox_mode = "danger-full-access"  # careful\n'
    assert merge_toml(text, {"sandbox_mode": "read-only"}) == 'sandbox_mode = "read-only"  # careful\n'


@pytest.mark.parametrize(
    "text", ["features = { memories = true }\n", "mcp_servers = { a = { command = 'x' } }\n", "features = 1\n"]
)
def test_a_table_on_one_line_is_left_alone(text: str) -> None:
    with pytest.raises(CannotMerge):
        merge_toml(text, WANTED)


@pytest.mark.parametrize("text", ["x = ", "[a", "a = 1\na = 2\n"])
def test_what_is_no_toml_is_told(text: str) -> None:
    with pytest.raises(ConfigSyntaxError, match="not TOML"):
        merge_toml(text, WANTED)


def test_a_name_that_would_take_minutes_to_read_is_refused() -> None:
    with pytest.raises(ConfigSyntaxError, match="more than 32 parts"):
        merge_toml(".".join(["a"] * 100_000) + " = 1\n", WANTED)


LINES = st.sampled_from(
    [
        *("[features]", "[mcp_servers.handrail]", "[mcp_servers.other]", "[tui]", "[[rule]]", "", "# note"),
        *('sandbox_mode = "x"', "shell_tool = true # y", 'command = "c"', "args = [", '  "a",', "]", 'x = "# no"'),
        *('s = """', '"""', "features.a = 1", "mcp_servers.z.command = 'q'", "features = {a = 1}"),
    ]
)


@given(st.lists(LINES, max_size=14).map("\n".join))
def test_whatever_the_file_the_result_is_exact_or_there_is_none(text: str) -> None:
    try:
        result = merge_toml(text, WANTED)
    except (ConfigSyntaxError, CannotMerge):
        return
    assert is_same_json(tomllib.loads(result), merge_value(tomllib.loads(text), WANTED))
