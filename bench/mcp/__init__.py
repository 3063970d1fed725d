"""What a person's agent waits for: `handrail mcp` from its start to its list of tools, a small read when it is warm,
and the memory that it keeps. Beside it the npm filesystem server, a server on the official SDK, and one that needs only
the standard library. One client asks all of them, in turns."""

import contextlib
import sys
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from pathlib import Path

from bench.mcp.client import Client
from bench.mcp.memory import Memory, memory_of
from bench.mcp.servers import FILES, HANDRAIL, NPM, STANDARD_LIBRARY, TEXT, Read, Server, found_servers
from bench.measure import Row, Sample

COLD_RATIOS = {NPM: 0.35, STANDARD_LIBRARY: 4.0}
WARM_RATIOS = {NPM: 0.6, STANDARD_LIBRARY: 2.4}
MEGABYTES = 30.0
LIST_KILOBYTES = 16.0
STARTS = 21
SESSIONS = 5
ROUNDS = 20
CALLS = 10
"""Reads are timed one by one, in sessions of as many as an agent makes: so many rounds, in each of which the servers
take turns with so many reads. The first round, in which a server loads what it needs for its first calls, is left out
everywhere. What a server's compiler makes of thousands of reads is told too, but few have them."""
MANY = 1_000
"""Reads after which it is told, and memory is looked at again."""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        servers = found_servers(Path(folder))
        yield from cold(servers)
        yield from warm(servers)
        yield from first_time(servers)
        yield from hot(servers)


def cold(servers: Mapping[str, Server]) -> Iterator[Row]:
    """From the start of the process until the list of tools is read, and until the text of a file is."""
    listed: dict[str, list[float]] = {name: [] for name in servers}
    read: dict[str, list[float]] = {name: [] for name in servers}
    sizes: dict[str, int] = {}
    for start in range(STARTS + 1):  # the first warms the caches
        turns = list(servers.items())
        for name, server in turns if start % 2 == 0 else reversed(turns):
            with Client(server.command, server.environment) as client:
                prove(name, client, server)
                sizes[name] = len(client.tools)
                listed[name].append(client.listed - client.begun)
                read[name].append(client.answered - client.begun)
    yield from compared("cold start", without_first(listed, 1), "ms", COLD_RATIOS)
    yield from compared("start to first read", without_first(read, 1), "ms", {})
    for name, size in sizes.items():
        yield Row(f"tool list: {name}", size / 1e3, "KB", LIST_KILOBYTES if name == HANDRAIL else None)


def warm(servers: Mapping[str, Server]) -> Iterator[Row]:
    """Several sessions, each of them with new processes; one small file, read again and again. That is the least that a
    read costs: what a name means is known from the read before, and that the file was seen is written down."""
    times: dict[str, list[float]] = {name: [] for name in servers}
    for _ in range(SESSIONS):
        with running(servers) as clients:
            for name, sample in without_first(in_turns(servers, clients, ROUNDS + 1), CALLS).items():
                times[name] += sample.times
    yield from compared("warm read", without_first(times, 0), "µs", WARM_RATIOS)


def first_time(servers: Mapping[str, Server]) -> Iterator[Row]:
    """One session, in which every read is of another file, as most reads of an agent are."""
    with running(servers) as clients:
        in_turns(servers, clients, 1)
        times = in_turns(servers, clients, FILES // CALLS, Server.read_once)
    yield from compared("first read of a file", without_first(times, 0), "µs", {})


def hot(servers: Mapping[str, Server]) -> Iterator[Row]:
    """One long session: what reads take at its end, and what is in memory at its beginning and its end."""
    with running(servers) as clients:
        listed = {name: memory_of(client.pid) for name, client in clients.items()}
        times = in_turns(servers, clients, MANY // CALLS)
        read = {name: memory_of(client.pid) for name, client in clients.items()}
    yield from compared(f"read after {MANY // 2}", without_first(times, MANY // 2), "µs", {})
    yield from kept(listed, read)


@contextlib.contextmanager
def running(servers: Mapping[str, Server]) -> Generator[dict[str, Client]]:
    """All of them at once: whoever is not asked sleeps."""
    with contextlib.ExitStack() as held:
        yield {name: held.enter_context(Client(server.command, server.environment)) for name, server in servers.items()}


def in_turns(
    servers: Mapping[str, Server],
    clients: Mapping[str, Client],
    rounds: int,
    which: Callable[[Server, int], Read] = lambda server, _: server.read,
) -> dict[str, list[float]]:
    """What each read took; `which` one, by its number."""
    times: dict[str, list[float]] = {name: [] for name in clients}
    for number in range(rounds):
        turns = list(clients.items())
        for name, client in turns if number % 2 == 0 else reversed(turns):
            reads = [which(servers[name], number * CALLS + one) for one in range(CALLS)]
            times[name] += [client.call(*read).seconds for read in reads]
    return times


def without_first(times: Mapping[str, Iterable[float]], count: int) -> dict[str, Sample]:
    """What is left when those are left out that only warm something."""
    return {name: Sample(tuple(taken)[count:]) for name, taken in times.items()}


def prove(name: str, client: Client, server: Server) -> None:
    """A fast error is no result: the server must answer with the file's text."""
    answer = client.call(*server.read).line
    if TEXT.splitlines()[-1].encode() not in answer or b'"isError":true' in answer.replace(b" ", b""):
        sys.exit(f"{name} did not read the file: {answer.decode()}")


def compared(what: str, samples: Mapping[str, Sample], unit: str, ratios: Mapping[str, float]) -> Iterator[Row]:
    """The medians, and ours beside each other's."""
    scale = {"ms": 1e3, "µs": 1e6}[unit]
    ours = samples[HANDRAIL]
    for name, sample in samples.items():
        yield Row(f"{what}: {name}, median", sample.median * scale, unit)
    yield Row(f"{what}: {HANDRAIL}, p95", ours.p95 * scale, unit)
    for name, sample in samples.items():
        if name != HANDRAIL:
            yield Row(f"{what}: {HANDRAIL} / {name}", ours.median / sample.median, "x", ratios.get(name))


def kept(listed: Mapping[str, Memory], read: Mapping[str, Memory]) -> Iterator[Row]:
    for name in listed:
        limit = MEGABYTES if name == HANDRAIL else None
        yield Row(f"memory: {name}, tools listed", listed[name].resident, "MB", limit)
        yield Row(f"memory: {name}, most until {MANY} reads later", read[name].most, "MB", limit)
