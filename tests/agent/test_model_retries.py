"""A provider that cannot answer just now is asked again, and the person is told each time."""

import asyncio
from typing import Any

import pytest

from handrail import Agent, TurnLimits
from handrail.models.base import ModelError, TextPiece
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import End, Error, Notice, Text


class Busy:
    """Fails so many times, then plays the script."""

    name, window = "anthropic:test", 100_000

    def __init__(self, *failures: ModelError) -> None:
        self._failures = list(failures)
        self._then = ScriptedModel([ScriptedReply(text="At last.")])

    async def stream(self, request: Any) -> Any:
        if self._failures:
            yield TextPiece("Well… ")
            raise self._failures.pop(0)
        async for piece in self._then.stream(request):
            yield piece


def overloaded(after: float | None = None) -> ModelError:
    return ModelError("UNAVAILABLE", "anthropic is overloaded.", retryable=True, after=after)


class Clock:
    """Waits no time, and notes how long it would have."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def run(rail: Any, model: Busy, clock: Clock, **limits: Any) -> Any:
    return asyncio.run(Agent(rail, model, sleep=clock.sleep, limits=TurnLimits(**limits)).run("go"))


def test_it_is_asked_again_after_as_long_as_it_said(stage: Any, told: Any) -> None:
    rail, clock = stage.open(), Clock()
    turn = run(rail, Busy(overloaded(4), overloaded(9)), clock)
    assert (turn.reason, turn.text, clock.slept) == ("done", "At last.", [4, 9])
    assert [notice.text for notice in told(rail, Notice)] == [
        "anthropic is overloaded; trying again in 4 s (2 of 5)",
        "anthropic is overloaded; trying again in 9 s (3 of 5)",
    ]
    assert len(told(rail, End)) == 1


def test_what_ends_with_a_question_is_followed_without_a_semicolon(stage: Any, told: Any) -> None:
    rail = stage.open()
    away = ModelError("UNAVAILABLE", "ollama cannot be reached. Is the server running?", retryable=True, after=4)
    run(rail, Busy(away), Clock())
    assert [notice.text for notice in told(rail, Notice)] == [
        "ollama cannot be reached. Is the server running? Trying again in 4 s (2 of 5)"
    ]


def test_each_attempt_is_a_message_of_its_own(stage: Any, told: Any) -> None:
    rail = stage.open()
    run(rail, Busy(overloaded(1)), Clock())
    said = {event.message_id: "" for event in told(rail, Text)}
    for event in told(rail, Text):
        said[event.message_id] += event.text
    assert list(said.values()) == ["Well… ", "At last."]


def test_without_its_word_the_pauses_grow(stage: Any) -> None:
    clock = Clock()
    run(stage.open(), Busy(*[overloaded()] * 4), clock)
    assert len(clock.slept) == 4
    assert all(2**n / 2 <= seconds <= 2**n for n, seconds in enumerate(clock.slept, start=1))


def test_after_the_last_attempt_the_turn_fails_and_can_go_on_later(stage: Any, told: Any) -> None:
    rail, clock = stage.open(), Clock()
    turn = run(rail, Busy(*[overloaded(1)] * 3), clock, attempts=3)
    assert (turn.reason, turn.code, turn.message) == ("error", "UNAVAILABLE", "anthropic is overloaded.")
    assert clock.slept == [1, 1]
    (error,) = told(rail, Error)
    assert error.retryable
    assert not told(rail, End)
    assert asyncio.run(Agent(rail, Busy()).go_on()).text == "At last."


@pytest.mark.parametrize(
    "error", [ModelError("UNAVAILABLE", "The key is wrong."), overloaded(3600), ModelError("NOT_FOUND", "No model x.")]
)
def test_where_waiting_does_not_help_nobody_waits(stage: Any, error: ModelError) -> None:
    clock = Clock()
    assert run(stage.open(), Busy(error), clock).reason == "error"
    assert not clock.slept
