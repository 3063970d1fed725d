"""The process that is measured: it plays many sessions side by side, and says what that took as JSON.

Its argument is the number of sessions.
"""

import asyncio
import json
import os
import resource
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from handrail import Agent, AsyncHandrail, Turn
from handrail.models.scripted import ScriptedModel, ScriptedReply
from handrail.protocol.events import Event
from handrail.settings import Settings

WORKSPACES = 5
THREADS = 8
TICK_SECONDS = 0.001
LOOKED, CHANGED = "ToolCallStart ToolCallEnd", "ToolCallStart ToolCallRunning ChangeEvent ToolCallEnd"
KINDS = f"User Text Usage {LOOKED} {LOOKED} Usage {CHANGED} Usage {CHANGED} Text Usage End".split()
"""What every session tells."""


def main() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        print(json.dumps(asyncio.run(_play(Path(folder), int(sys.argv[1])))))


async def _play(folder: Path, sessions: int) -> dict[str, float]:
    for number in range(WORKSPACES):
        (folder / str(number)).mkdir()
        (folder / str(number) / "read.txt").write_text("one\ntwo\n")
    with ThreadPoolExecutor(THREADS) as pool:
        await _warm_up(folder, sessions, pool)
        megabytes, descriptors = _megabytes(), len(os.listdir("/proc/self/fd"))
        begun = time.perf_counter()
        stalls: list[float] = []
        watch = asyncio.create_task(_watch_stalls(stalls))
        heard: list[list[Any]] = [[] for _ in range(sessions)]
        rails = await asyncio.gather(*(_open(folder, number, pool) for number in range(sessions)))
        for rail, listener in zip(rails, heard, strict=True):
            rail.subscribe(listener.append)
        agents = [Agent(rail, ScriptedModel(_script(number))) for number, rail in enumerate(rails)]
        turns = await asyncio.gather(*(agent.run("Do it.") for agent in agents))
        seconds = time.perf_counter() - begun
        watch.cancel()
        most, opened = _megabytes(), len(os.listdir("/proc/self/fd"))
        lost = sum(_lost(rail, listener, turn) for rail, listener, turn in zip(rails, heard, turns, strict=True))
        for rail in rails:
            await rail.close()
    return {
        "sessions": sessions,
        "megabytes": most,
        "megabytes_each": (most - megabytes) / sessions,
        "descriptors_each": (opened - descriptors) / sessions,
        "seconds": seconds,
        "longest_stall": max(stalls),
        "lost": lost,
    }


async def _warm_up(folder: Path, number: int, pool: ThreadPoolExecutor) -> None:
    """What the first session of a process pays for all."""
    async with await _open(folder, number, pool) as rail:
        await Agent(rail, ScriptedModel(_script(number))).run("Do it.")


async def _open(folder: Path, number: int, pool: ThreadPoolExecutor) -> AsyncHandrail:
    options: dict[str, Any] = {"mode": "auto", "state_dir": folder / "state", "settings": Settings()}
    return await AsyncHandrail.open(folder / str(number % WORKSPACES), session=f"s{number}", pool=pool, **options)


async def _watch_stalls(stalls: list[float]) -> None:
    """Notes how much later than it asked the event loop wakes it, in seconds."""
    while True:
        due = time.perf_counter() + TICK_SECONDS
        await asyncio.sleep(TICK_SECONDS)
        stalls.append(time.perf_counter() - due)


def _script(number: int) -> list[ScriptedReply]:
    name = f"new-{number}.txt"
    return [
        ScriptedReply(
            text="Looking.", calls=(("read", {"path": "read.txt"}), ("grep", {"pattern": "two", "path": "read.txt"}))
        ),
        ScriptedReply(calls=(("write", {"path": name, "content": "new\n"}),)),
        ScriptedReply(calls=(("edit", {"path": name, "oldText": "new\n", "newText": "newer\n"}),)),
        ScriptedReply(text="Done."),
    ]


def _lost(rail: AsyncHandrail, heard: list[Event], turn: Turn) -> int:
    """How many events are missing or in the wrong place: for who listened, or in the journal."""
    if (turn.reason, turn.calls) != ("done", 4):
        raise AssertionError(f"a session was not played to its end: {turn}")
    return sum(_wrong(events) for events in (heard, list(rail.events())))


def _wrong(events: list[Any]) -> int:
    expected = list(enumerate(KINDS, start=1))
    found = [(event.seq, type(event).__name__) for event in events]
    return sum(one != other for one, other in zip(found, expected, strict=False)) + abs(len(found) - len(expected))


def _megabytes() -> float:
    """The most that the process had in memory up to now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
