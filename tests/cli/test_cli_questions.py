"""Questions of the model, asked, listed and replied to from the shell."""

import json
from pathlib import Path
from typing import Any

import pytest

ASKED = '{"question": "Which one?", "options": ["left", "right"], "multiple": true, "custom": true}'


@pytest.fixture
def run(here: Any, config: Any) -> Any:
    """In this process, where this is switched on."""
    config('[tools]\nenable = ["question", "display"]\n')
    return here


def asked(run: Any, text: str = ASKED) -> str:
    """Asks, and gives the id of the question."""
    assert run("call", "question", text, "--mode", "auto").code == 3
    return run("approvals", "--json").json["questions"][-1]["id"]


def test_a_call_that_asks_prints_the_question_and_how_to_reply(run: Any) -> None:
    done = run("call", "question", ASKED)
    assert done.code == 3
    assert done.out == "Which one?\n  1  left\n  2  right\n"
    assert "handrail approvals reply call-" in done.err
    assert "1 (or in your own words)" in done.err


def test_as_json_it_is_a_result_that_waits(run: Any) -> None:
    done = run("call", "question", ASKED, "--json")
    assert done.code == 3
    assert done.json["error"]["code"] == "UNAVAILABLE"
    assert done.json["error"]["details"]["question"] == "Which one?"


def test_unattended_it_is_an_error_and_nothing_waits(run: Any) -> None:
    done = run("call", "question", ASKED, "--unattended")
    assert done.code == 1
    assert "no user is present to answer. Decide yourself, continue, and name your assumption at the end." in done.err
    assert run("approvals", "--json").json["questions"] == []


def test_questions_are_listed_and_replied_to(run: Any, state: Path) -> None:
    name = asked(run)
    next(state.glob("workspaces/*/.place")).unlink()  # which workspace it is need not be noted
    listed = run("approvals")
    assert "question" in listed.out
    assert "Which one? · 1 left · 2 right" in listed.out
    assert "handrail approvals reply" in listed.err
    done = run("approvals", "reply", name, "2")
    assert (done.code, done.out) == (0, "The person chose: right\n")
    assert run("approvals", "--json").json["questions"] == []
    again = run("approvals", "reply", name, "1")
    assert again.code == 1
    assert "there is no question" in again.err


@pytest.mark.parametrize(
    ("words", "data"),
    [
        (("1", "2"), {"chosen": ["left", "right"], "text": None}),
        (("2,1",), {"chosen": ["left", "right"], "text": None}),
        (("LEFT",), {"chosen": ["left"], "text": None}),
        (("straight", "on"), {"chosen": [], "text": "straight on"}),
        (("3",), {"chosen": [], "text": "3"}),
    ],
)
def test_a_reply_is_numbers_or_texts_of_options_or_own_words(run: Any, words: tuple[str, ...], data: Any) -> None:
    done = run("approvals", "reply", asked(run), *words, "--json")
    assert done.json["results"][0]["data"] == data


def test_a_question_may_be_put_aside(run: Any) -> None:
    done = run("approvals", "reply", asked(run), "--put-aside")
    assert (done.code, done.out) == (0, "put aside: Which one?\n")


def test_what_cannot_be_replied_is_refused_and_it_still_waits(run: Any) -> None:
    name = asked(run, '{"question": "Which one?", "options": ["left", "right"]}')
    for words in ((), ("up",), ("1", "2")):
        assert run("approvals", "reply", name, *words).code == 2
    for command in (("allow",), ("deny",), ("show",)):
        done = run("approvals", *command, name)
        assert done.code == 2
        assert "is a question" in done.err
    assert len(run("approvals", "--json").json["questions"]) == 1


def test_the_log_has_one_line_of_what_was_shown_and_of_what_was_asked(run: Any) -> None:
    asked(run)
    shown = {"content": "\n**It\x1b[2J works**\nmore", "level": "success", "title": "Tests\u202e"}
    assert run("call", "display", json.dumps(shown), "--mode", "plan").code == 0
    out = run("log", "--events").out
    (line,) = [line for line in out.splitlines() if " display " in line]
    assert line.endswith("success: Tests\\u202e: **It\\u001b[2J works**")
    assert "question: Which one?" in out
