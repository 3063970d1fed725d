"""Patience with a provider: asked again after a while, and said so each time."""

import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from handrail.agent.limits import TurnLimits
from handrail.models.model import ModelError
from handrail.protocol.events import Notice
from handrail.runtime.conversation import Conversation

Answer = TypeVar("Answer")
Sleep = Callable[[float], Awaitable[object]]
_FIRST_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 60.0


async def ask_with_retries(
    ask: Callable[[], Awaitable[Answer]], conversation: Conversation, limits: TurnLimits, sleep: Sleep | None = None
) -> Answer:
    """Asks until there is an answer; ModelError where waiting does not help, or did not. `sleep`: how to wait."""
    attempt = 1
    while True:
        try:
            return await ask()
        except ModelError as error:
            seconds = _pause(error, attempt)
            if not error.retryable or attempt >= limits.attempts or seconds > limits.patience:
                raise
            attempt += 1
            told = f"{_trying_again(error.message)} in {_format_pause(seconds)} ({attempt} of {limits.attempts})"
            conversation.tell((Notice, {"code": error.code, "text": told}))
        await (sleep or _sleep)(seconds)


def _pause(error: ModelError, attempt: int) -> float:
    """What the provider said, else longer each time; with chance in it, so that many do not come back together."""
    if error.after is not None:
        return max(0.0, error.after)
    return min(_MAX_PAUSE_SECONDS, _FIRST_PAUSE_SECONDS * 2**attempt) * random.uniform(0.5, 1.0)  # noqa: S311  no secret


def _trying_again(message: str) -> str:
    told = message.rstrip(". ")
    return f"{told} Trying again" if told.endswith("?") else f"{told}; trying again"


def _format_pause(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else "a moment"


async def _sleep(seconds: float) -> None:
    import asyncio  # noqa: PLC0415  who is here has it

    await asyncio.sleep(seconds)
