"""A busy task with many followers: 200 clients get each of its 5,000 events by WebSocket, also if some do not read.

The model works at a pace, as models do: otherwise the delay is the time that all frames take.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from bench.measure import Row

FOLLOWERS, STEPS, PAUSE = 200, 1_250, 0.02
IDLE_READERS = 20
DELAY_LIMIT, GROWTH_LIMIT, IDLE_LIMIT = 250.0, 40.0, 60.0


class Served(NamedTuple):
    process: subprocess.Popen[bytes]
    port: int

    def read_memory(self) -> float:
        """The resident memory in MB."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) / 1e3

    def read_processor_time(self) -> float:
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as status:
            fields = status.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def serve(folder: str, steps: int, pause: float, port: int = 0, **variables: str) -> Generator[Served]:
    command = [sys.executable, "-m", "bench.server.program", folder, str(port), str(steps), str(pause)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | variables) as process:
        assert process.stdout is not None
        try:
            yield Served(process, int(process.stdout.readline()))
        finally:
            process.kill()


class Followed(NamedTuple):
    delays: list[float]
    """In seconds, sorted."""
    events: int
    wrong: int
    """Followers that did not get every event once, in order."""
    growth: float
    """Of the server's memory in MB, at the most."""
    processor_time: float


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder, serve(folder, STEPS, PAUSE) as served:
        yield Row("memory of an idle server", served.read_memory(), "MB", IDLE_LIMIT)
        quiet = asyncio.run(measure(served, FOLLOWERS, 0))
        stuck = asyncio.run(measure(served, FOLLOWERS - IDLE_READERS, IDLE_READERS))
    for name, found in ((f"{FOLLOWERS} followers", quiet), (f"{IDLE_READERS} of them do not read", stuck)):
        delays = found.delays
        yield Row(f"{name}: events of the task", found.events, "")
        yield Row(f"{name}: wrong or missing", found.wrong, "", 0)
        yield Row(f"{name}: delay, median", delays[len(delays) // 2] * 1e3, "ms")
        yield Row(f"{name}: delay, p99", delays[int(len(delays) * 0.99)] * 1e3, "ms", DELAY_LIMIT)
        yield Row(f"{name}: processor time of the server", found.processor_time, "s")
        yield Row(f"{name}: growth of memory", found.growth, "MB", GROWTH_LIMIT)


async def measure(served: Served, followers: int, idle_readers: int) -> Followed:
    from bench.server.followers import follow, request  # noqa: PLC0415  needs the extra server

    task = request(served.port, "POST", "/api/tasks", {})["id"]
    reading = [await follow(served.port, task) for _ in range(followers)]
    idle = [await follow(served.port, task, reads=False) for _ in range(idle_readers)]
    for one in reading:
        await one.caught_up.wait()
    memory, spent = served.read_memory(), served.read_processor_time()
    most = memory
    await asyncio.to_thread(request, served.port, "POST", f"/api/tasks/{task}/prompt", {"text": "Work."})
    pending = {asyncio.ensure_future(one.ended.wait()) for one in reading}
    while pending:
        _, pending = await asyncio.wait(pending, timeout=0.25)
        most = max(most, served.read_memory())
    spent = served.read_processor_time() - spent
    last = request(served.port, "GET", f"/api/tasks/{task}")["lastSeq"]
    wrong = sum([each.seq for each in one.deliveries] != list(range(1, last + 1)) for one in reading)
    for one in (*reading, *idle):
        assert one.transport is not None
        one.transport.abort()
    delays = sorted(each.delay for one in reading for each in one.deliveries[1:])
    return Followed(delays, last, wrong, most - memory, spent)
