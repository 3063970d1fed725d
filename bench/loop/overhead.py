"""A session of many calls through the loop, against the same calls as batches and the model on its own. What is left is
the loop's: the talk, its events, the guards, the way into the pool and back."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from bench.measure import Row
from handrail import Agent, AsyncHandrail, Handrail, ToolCall
from handrail.models.base import ModelRequest, StreamPiece
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.settings import Settings

CALLS = 200
ROUNDS = 9
LIMIT_MS = 2.0


class Taken(NamedTuple):
    """Seconds a call: by the clock, and of the processor."""

    whole: float
    model: float
    batches: float
    whole_processor: float
    batches_processor: float


def overhead() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        taken = [_round(Path(folder), number) for number in range(ROUNDS + 1)][1:]
    whole, batches, model = (min(found) for found in zip(*((one[0], one[2], one[1]) for one in taken), strict=True))
    processor = median(one.whole_processor - one.batches_processor - one.model for one in taken)
    yield Row(f"a session of {CALLS} calls, a call, least", whole * 1e3, "ms")
    yield Row("the same as batches, a call, least", batches * 1e3, "ms")
    yield Row("the scripted model, a call, least", model * 1e3, "ms")
    yield Row("what the loop adds, a call, of the least", (whole - batches - model) * 1e3, "ms", LIMIT_MS)
    yield Row("what the loop adds, a call, processor time, median", processor * 1e3, "ms", LIMIT_MS)


def _round(folder: Path, number: int) -> Taken:
    workspace = folder / str(number)
    workspace.mkdir()
    (workspace / "read.txt").write_text("The quick brown fox jumps over the lazy dog.\n" * CALLS)
    options: dict[str, Any] = {"mode": "auto", "state_dir": folder / "state", "settings": Settings()}
    with Handrail(workspace, session="batches", **options) as rail:
        clock, processor = _batches(rail)
    found = asyncio.run(_session(AsyncHandrail(workspace, session="loop", **options)))
    return Taken(*(seconds / CALLS for seconds in (found[0], found[1], clock, found[2], processor)))


def _calls() -> Iterator[tuple[str, dict[str, Any]]]:
    """Small ones, each another: what the tool and the disk take would only blur what is looked for."""
    for number in range(CALLS):
        yield "read", {"path": "read.txt", "offset": number + 1, "limit": 1}


def _batches(rail: Handrail) -> tuple[float, float]:
    begun, processor = time.perf_counter(), time.process_time()
    for name, args in _calls():
        call_id = rail.conversation.new_call_id()  # as the loop does it
        call = ToolCall(tool_call_id=call_id, name=name, args=args, trace_id="b", timestamp=datetime.now(UTC))
        rail.batch((call,))
    return time.perf_counter() - begun, time.process_time() - processor


async def _session(rail: AsyncHandrail) -> tuple[float, float, float]:
    """How long it took, what of it the model did, and how much of the processor it took."""
    async with rail:
        model = _Timed([*(ScriptedReply(calls=(call,)) for call in _calls()), ScriptedReply(text="Done.")])
        begun, processor = time.perf_counter(), time.process_time()
        turn = await Agent(rail, model).run("Do it.")
        taken, processor = time.perf_counter() - begun, time.process_time() - processor
    if (turn.reason, turn.calls) != ("done", CALLS):
        raise AssertionError(f"the session was not played to its end: {turn}")
    return taken, model.seconds, processor


class _Timed(ScriptedModel):
    """Counts what its answers take it."""

    seconds = 0.0

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        begun = time.perf_counter()
        async for piece in super().stream(request):
            self.seconds += time.perf_counter() - begun
            yield piece
            begun = time.perf_counter()
