"""handrail memory: the person sees every note, and removes what they want."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def run(here: Any, config: Any) -> Any:
    """In this process, where this is switched on."""
    config('[tools]\nenable = ["memory"]\n')
    return here


def noted(run: Any, title: str = "Tests") -> str:
    args = f'{{"action": "create", "title": "{title}", "content": "make test\\n\\u001b[2Jx"}}'
    done = run("call", "memory", args, "--mode", "full", "--json")
    return done.json["data"]["notes"][0]["id"]


def test_without_notes_it_says_so(run: Any) -> None:
    done = run("memory")
    assert (done.code, done.out) == (0, "")
    assert "no notes" in done.err
    assert run("memory", "--json").json == {"schema": "handrail.memory/1", "notes": []}


def test_notes_are_listed_shown_and_removed(run: Any) -> None:
    name = noted(run)
    assert f"{name}  " in run("memory").out
    assert run("memory", "--json").json["notes"][0]["title"] == "Tests"
    shown = run("memory", "show", name)
    assert shown.out.startswith("Tests\n\nmake test\n")
    assert run("memory", "show", name[:4], "--json").json["notes"][0]["id"] == name
    assert run("memory", "remove", name).out == f"removed {name}: Tests\n"
    assert run("memory", "--json").json["notes"] == []


@pytest.mark.parametrize("command", ["show", "remove"])
def test_a_note_that_is_not_there_is_said_to_be_none(run: Any, command: str) -> None:
    done = run("memory", command, "m-zzzzz")
    assert done.code == 1
    assert "there is no note" in done.err


def test_what_two_notes_begin_with_means_neither(run: Any, state: Path) -> None:
    noted(run)
    (file,) = (state / "workspaces").glob("*/.memories/*")
    for name in ("m-00001", "m-00002"):
        (file.parent / name).write_bytes(file.read_bytes().replace(file.name.encode(), name.encode()))
    done = run("memory", "remove", "m-0000")
    assert done.code == 2
    assert "could be" in done.err
    assert len(run("memory", "--json").json["notes"]) == 3
