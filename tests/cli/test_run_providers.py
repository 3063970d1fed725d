"""handrail run with providers: over a real wire on the loopback, and what is said where one cannot answer."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.wires.openai_wire import OpenAIWire

KEPT = "next: handrail run -c --model "


@pytest.fixture
def wire() -> Iterator[OpenAIWire]:
    """A server that speaks OpenAI's wire."""
    server = OpenAIWire()
    yield server
    server.close()


def test_a_model_over_a_wire_works_with_the_tools(here, wire: OpenAIWire, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n")
    wire.says("I look.", calls=[("c1", "read", '{"path": "a.txt"}')])
    wire.says("It says one.")
    done = here("run", "what does it say?", "--model", wire.model, **wire.environment)
    assert (done.code, done.out) == (0, "I look.\nIt says one.\n")
    assert "✓ read  a.txt" in done.err
    assert wire.problems == []


@pytest.mark.parametrize(("status", "words"), [(401, "OPENAI_API_KEY"), (404, "gpt-4o")], ids=["wrong key", "unknown"])
def test_a_refusal_is_one_clear_line_and_the_prompt_is_kept(here, wire: OpenAIWire, status: int, words: str) -> None:
    wire.refuses(status, "no")
    done = here("run", "hello", "--model", wire.model, **wire.environment)
    assert (done.code, done.out) == (4, "")
    failed, step = done.err.splitlines()[-2:]
    assert failed.startswith("error: ")
    assert failed.endswith(" The session is kept.")
    assert words in failed
    assert step.startswith(KEPT)
    assert "Traceback" not in done.err
    assert wire.environment["OPENAI_API_KEY"] not in done.err
    wire.says("Hello yourself.")
    assert here("run", "-c", "-q", "--model", wire.model, **wire.environment).out == "Hello yourself.\n"
    assert [one["content"] for one in wire.received[-1].body["messages"] if one["role"] == "user"] == ["hello"]


def test_without_its_key_a_model_leaves_no_session_behind(here) -> None:
    done = here("run", "hello", "--model", "anthropic:claude-x")
    assert (done.code, done.out) == (4, "")
    error, step = done.err.splitlines()
    assert error.startswith("error: no key for anthropic. Set ANTHROPIC_API_KEY")
    assert (error.endswith(" Nothing was run."), step) == (True, "next: export ANTHROPIC_API_KEY=KEY")
    assert here("sessions", "--json").json["sessions"] == []
    as_json = here("run", "hello", "--json", "--model", "anthropic:claude-x")
    assert (as_json.code, as_json.raw) == (4, b"")


def test_a_host_that_cannot_be_reached_is_said_at_once_in_one_line(here, wire: OpenAIWire) -> None:
    environment = wire.environment
    wire.close()
    done = here("run", "hello", "--model", wire.model, **environment)
    assert (done.code, done.out) == (4, "")
    assert "127.0.0.1" in done.err.splitlines()[-2]
    assert [line for line in done.err.splitlines() if line[0] in "·!✗"] == []
    assert KEPT in done.err.splitlines()[-1]


def test_what_a_provider_says_without_an_end_gets_one(here, wire: OpenAIWire) -> None:
    wire.refuses(400, "no such thing")
    done = here("run", "hello", "--model", wire.model, **wire.environment)
    assert f"no such thing. The session is kept.\n{KEPT}" in done.err


def test_a_notice_says_that_it_is_tried_again(here, wire: OpenAIWire) -> None:
    wire.refuses(429, "slow down", {"retry-after": "0"})
    wire.says("Here I am.")
    done = here("run", "hello", "--model", wire.model, **wire.environment)
    assert (done.code, done.out) == (0, "Here I am.\n")
    assert [line for line in done.err.splitlines() if line.startswith("· ")]


def test_a_window_that_the_settings_name_is_the_models(here, wire: OpenAIWire, workspace: Path, config) -> None:
    config("[agent]\nwindow = 8000\n")
    (workspace / "a.txt").write_text("word\n" * 500)
    for number in range(4):
        used = {"prompt_tokens": 2_000 * (number + 1), "completion_tokens": 9, "total_tokens": 9}
        wire.says("I look.", calls=[(f"c{number}", "read", '{"path": "a.txt"}')], usage=used)
    for _ in range(6):
        wire.says("It is long.")
    done = here("run", "how long is it?", "--model", wire.model, **wire.environment)
    assert "A summary replaced" in done.err
