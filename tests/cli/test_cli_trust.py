"""handrail trust: what it shows, what it records, what counts afterwards."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

LOOSE = 'mode = "auto"\n[tools]\nenable = ["delete"]\ndisable = ["grep"]\n[[rule]]\nid = "tests"\nallow = "pytest"\n'
WRITE = ("call", "write", '{"path": "a.txt", "content": "hello\\n"}')


@pytest.fixture
def project(workspace: Path) -> Callable[[str], Path]:
    """Writes the project's file."""

    def write(text: str) -> Path:
        path = workspace / "handrail.toml"
        path.write_text(text)
        return path

    return write


def test_trust_shows_each_line_that_loosens_and_says_that_it_is_in_force(here, project, workspace: Path) -> None:
    project(LOOSE)
    done = here("trust", "--yes", "--workspace", str(workspace))
    assert done.code == 0
    first, *lines, last = done.out.splitlines()
    assert first == "handrail.toml loosens these settings:"
    assert lines == [
        '  line 1: mode = "auto"',
        '  line 3: tools.enable = ["delete"]',
        '  line 5: rule tests: allow "pytest"',
    ]
    assert last.startswith("  (SHA-256 ")
    assert done.err == "Trusted until the file changes. To revoke it: handrail trust --revoke\n"


def test_a_line_that_something_nearer_outdoes_is_not_said_to_be_in_force(here, project) -> None:
    project(LOOSE)
    lines = here("trust", "--yes", HANDRAIL_MODE="plan").out.splitlines()
    assert lines[1:3] == [
        '  line 1: mode = "auto" (but the environment HANDRAIL_MODE decides here)',
        '  line 3: tools.enable = ["delete"]',
    ]


def test_until_then_a_call_is_asked_for_and_then_it_is_not(run, project, workspace: Path) -> None:
    project(LOOSE)
    before = run(*WRITE)
    assert (before.code, (workspace / "a.txt").exists()) == (3, False)
    assert 'handrail.toml line 1: mode = "auto" is ignored until you trust this project: handrail trust' in before.err
    assert run("trust", "--yes").code == 0
    after = run(*WRITE)
    assert (after.code, (workspace / "a.txt").read_text()) == (0, "hello\n")
    assert "is ignored" not in after.err


def test_what_tightens_counts_at_once(run, project) -> None:
    project(LOOSE)
    done = run("call", "grep", '{"pattern": "x"}')
    assert (done.code, "Unknown Agent tool: grep" in done.err) == (1, True)


def test_a_change_of_the_file_ends_the_trust_and_that_is_told(run, project) -> None:
    project(LOOSE)
    run("trust", "--yes")
    project(f"{LOOSE}\n")
    done = run(*WRITE)
    assert done.code == 3
    assert "handrail.toml changed since you trusted it: check it before you trust it again" in done.err


def test_trust_is_listed_and_taken_back(here, project, workspace: Path) -> None:
    project(LOOSE)
    assert here("trust", "--list").out == "No project is trusted.\n"
    here("trust", "--yes")
    head, row = here("trust", "--list").out.splitlines()
    assert head.split() == ["workspace", "sha-256", "since"]
    assert row.split()[0] == str(workspace)
    done = here("trust", "--revoke")
    ignored = "the lines of handrail.toml that loosen settings, .mcp.json and .handrail/tools are ignored"
    assert done.out == f"{workspace} is no longer trusted: {ignored}.\n"
    assert here("trust", "--revoke").out == f"{workspace} was not trusted; nothing changed.\n"
    assert here("trust", "--list").out == "No project is trusted.\n"


def test_trust_speaks_json(here, project, workspace: Path) -> None:
    project(f'{LOOSE}tool = "exec"\n')
    found = here("trust", "--yes", "--json").json
    assert found | {"digest": ""} == {
        "schema": "handrail.trust/1",
        "workspace": str(workspace),
        "digest": "",
        "trusted": True,
        "loosens": [
            {"line": 1, "said": 'mode = "auto"'},
            {"line": 3, "said": 'tools.enable = ["delete"]'},
            {"line": 5, "said": 'rule tests: allow "pytest"'},
        ],
        "ignored": [],
    }
    (listed,) = here("trust", "--list", "--json").json["projects"]
    assert (listed["workspace"], listed["digest"]) == (str(workspace), found["digest"])
    assert here("trust", "--revoke", "--json").json["revoked"] is True
    assert here("trust", "--revoke", "--json").json["revoked"] is False


def test_what_stays_ignored_is_told_too(here, project) -> None:
    project('mode = "full"\n[events]\njsonl = "logs"\n')
    done = here("trust", "--yes")
    assert done.out.splitlines()[0].endswith("handrail.toml loosens no setting.")
    assert done.out.splitlines()[1:3] == [
        'handrail.toml line 1: mode = "full" is ignored: only the user file or a flag may set this',
        'handrail.toml line 3: events.jsonl = "logs" is ignored: only the user file may set this',
    ]


def test_where_there_is_no_file_there_is_nothing_to_trust(here, workspace: Path, state: Path) -> None:
    done = here("trust", "--yes")
    assert (done.code, done.out) == (
        0,
        f"Nothing to trust: {workspace} has no handrail.toml, no .mcp.json and no .handrail/tools.\n",
    )
    assert here("trust", "--yes", "--json").json == {
        "schema": "handrail.trust/1",
        "workspace": str(workspace),
        "trusted": False,
    }
    assert not state.exists()


BROKEN = ["mode =", 'mode = "yolo"', '[[rule]]\nid = "a"\n', "x = 1\n"]


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_file_is_exit_2_and_nothing_is_trusted(here, project, state: Path, text: str) -> None:
    project(text)
    done = here("trust", "--yes")
    assert (done.code, done.out) == (2, "")
    assert "the project file " in done.err
    assert not state.exists()


def test_a_link_is_exit_2_and_nothing_is_trusted(here, workspace: Path, tmp_path: Path, state: Path) -> None:
    (tmp_path / "other.toml").write_text(LOOSE)
    (workspace / "handrail.toml").symlink_to(tmp_path / "other.toml")
    assert (here("trust", "--yes").code, state.exists()) == (2, False)


def test_a_spoilt_record_is_exit_4_and_nothing_is_trusted(here, project, state: Path) -> None:
    project(LOOSE)
    state.mkdir(mode=0o700)
    (state / "trust.json").write_text("{}{")
    os.chmod(state / "trust.json", 0o600)
    for words in (["trust", "--yes"], ["trust", "--list"], ["trust", "--revoke"]):
        done = here(*words)
        assert done.code == 4
        assert "cannot be used: handrail did not write it" in done.err
    assert here("config", "--json").json["settings"]["mode"]["value"] == "ask"


def test_nothing_that_steers_a_terminal_is_in_what_trust_shows(here, project) -> None:
    project('[search]\nignore = ["a"]\n[tools]\nenable = ["\\u001b[2J\\u202e\\u009b"]\n')
    done = here("trust", "--yes")
    assert done.out.replace("\n", "").isprintable()
    assert json.dumps("\x1b[2J")[1:-1] in done.out


def test_a_mistake_is_exit_2(here) -> None:
    assert here("trust", "--list", "--revoke").code == 2
    assert here("trust", "--yes", "--workspace", "").code == 2


def test_without_a_terminal_only_yes_trusts(here, workspace: Path) -> None:
    (workspace / "handrail.toml").write_text('mode = "auto"\n')
    done = here("trust")
    assert (done.code, "line 1" in done.out) == (2, True)
    assert done.err == "error: no terminal to ask at. Nothing was trusted.\nnext: handrail trust --yes\n"
    assert here("trust", "--list").out == "No project is trusted.\n"
    assert here("trust", "--yes").code == 0
    assert here("trust", "--list").out != "No project is trusted.\n"
