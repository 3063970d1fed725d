"""What handrail run tells people to type next is what does it, and sessions are found as people spell them."""

import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.wires.openai_wire import OpenAIWire

Script = Callable[..., str]
DONE = {"text": "Done."}


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a script; the name of the model that plays it."""

    def write(*lines: dict[str, Any]) -> str:
        (tmp_path / "script.json").write_text(json.dumps(lines))
        return f"scripted:{tmp_path / 'script.json'}"

    return write


@pytest.fixture
def wire() -> Iterator[OpenAIWire]:
    """A server that speaks OpenAI's wire."""
    server = OpenAIWire()
    yield server
    server.close()


def writes(*paths: str) -> dict[str, Any]:
    return {"text": "I write.", "calls": [["write", {"path": path, "content": f"{path}\n"}] for path in paths]}


def next_step(err: str) -> list[str]:
    return shlex.split(err.rpartition("handrail ")[2].splitlines()[0])


def test_after_a_refused_key_the_command_that_it_names_goes_on(here, wire: OpenAIWire) -> None:
    wire.refuses(401, "no")
    done = here("run", "hello", "--model", wire.model, **wire.environment)
    wire.says("Hello yourself.")
    assert here(*next_step(done.err), "-q", **wire.environment).out == "Hello yourself.\n"


def test_a_session_that_knows_its_model_needs_no_name(here, wire: OpenAIWire) -> None:
    wire.says("Hello.")
    assert here("run", "hello", "--model", wire.model, **wire.environment).code == 0
    wire.refuses(401, "no")
    done = here("run", "-c", "and?", "--model", wire.model, **wire.environment)
    assert done.err.endswith("The session is kept.\nnext: handrail run -c\n")


def test_after_an_unknown_model_another_one_is_to_be_named(here, wire: OpenAIWire) -> None:
    wire.refuses(404, "no")
    done = here("run", "hello", "--model", wire.model, **wire.environment)
    assert done.err.endswith("The session is kept.\nnext: handrail run -c --model PROVIDER:ANOTHER\n")


def test_all_that_a_turn_changed_is_shown_by_the_command_that_it_names(here, script: Script) -> None:
    done = here("run", "x", "--model", script(writes("a", "b"), writes("c"), DONE), "--mode", "auto")
    assert "  3 files changed +3 −0 · handrail diff --turn · " in done.err
    shown = here("diff", "--turn", "-q").out
    assert [line for line in shown.splitlines() if line.startswith("+++")] == ["+++ b/a", "+++ b/b", "+++ b/c"]
    assert here("diff", "--turn", "--json").json["numbers"] == [1, 2, 3]
    here("undo", "--turn", "-q")
    assert (
        here("diff", "--turn", "-q").err
        == "error: no change is in effect in this workspace.\nnext: handrail log --changes\n"
    )
    assert here("diff", "1", "--turn").code == 2


def test_the_log_is_of_the_last_session_and_says_which(here, script: Script) -> None:
    here("call", "ls", '{"path": "."}')
    here("run", "what is here?", "--model", script(DONE), "--session", "second", "-q")
    done = here("log")
    assert "what is here?" in done.out
    assert "session: second (the last one)\nothers: handrail log --sessions\n" in done.err
    assert here("log", "--json").json["session"] == "second"
    assert here("log", "--events", "--limit", "1", "--session", "cli").err.endswith(
        "handrail log --session cli --events --after 0\n"
    )


def test_sessions_are_listed_with_what_was_said_first(here, script: Script) -> None:
    here("call", "ls", '{"path": "."}')
    here("run", "what is here?\nAll of it.", "--model", script(DONE), "-q")
    _, run, call = here("log", "--sessions", "-q").out.splitlines()
    assert "what is here?" in run
    assert call.split()[0] == "cli"


def test_a_session_is_found_by_how_its_id_begins(here, script: Script) -> None:
    model = script(writes("a"), DONE, DONE)
    here("run", "x", "--model", model, "--mode", "auto", "-q")
    only = here("log", "--json").json["session"]
    for beginning in (only[:9], only[:-1], only):
        assert here("log", "--session", beginning, "--json").json["session"] == only
        assert here("run", "--resume", beginning).err.count("nothing to resume") == 1
    assert here("replay", only[:9], "--json").json["session"] == only
    assert here("log", "export", only[:9], "--json").json["session"] == only
    here("run", "y", "--model", model, "-q")
    several = here("run", "--resume", only[:4], "z")
    assert (several.code, "could be " in several.err) == (2, True)
    assert here("log", "--session", only[:4]).code == 2


def test_what_goes_on_says_what_its_calls_are_about(here, script: Script) -> None:
    here("run", "x", "--model", script(writes("a.txt"), DONE), "--park", "-q")
    done = here("run", "-c", "no, leave it")
    assert "⊘ write a.txt: " in done.err


def test_what_is_no_script_is_told_what_one_looks_like(here, tmp_path: Path) -> None:
    (tmp_path / "script.json").write_text("{}")
    done = here("run", "x", "--model", f"scripted:{tmp_path / 'script.json'}")
    assert (done.code, '"calls": [["ls", {"path": "."}]]' in done.err) == (2, True)


def test_a_prompt_without_quotes_is_told_of_them(here) -> None:
    done = here("run", "fix", "the", "test")
    assert done.code == 2
    assert "A prompt of several words goes in quotes: handrail run 'fix the failing test'." in done.err
    assert "quotes" not in here("run", "x", "--wrong").err
    assert "quotes" not in here("log", "x").err
