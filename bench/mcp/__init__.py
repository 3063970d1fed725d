"""What a person's agent waits for: `handrail mcp` from its start to its list of tools, a small read when it is warm,
and the memory that it keeps. Beside it the npm filesystem server, a server on the official SDK, and one that needs only
the standard library. One client asks all of them, in turns."""

import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.mcp.client import Client
from bench.mcp.memory import Memory, memory_of
from bench.mcp.servers import HANDRAIL, NPM, STANDARD_LIBRARY, TEXT, Server, found_servers
from bench.measure import Row, Sample

COLD_RATIOS = {NPM: 0.35, STANDARD_LIBRARY: 4.5}
WARM_RATIOS = {NPM: 0.6, STANDARD_LIBRARY: 2.5}
MEGABYTES = 30.0
STARTS = 21
ROUNDS = 40
CALLS = 50
"""Each round takes the servers in turn, so many reads of each, every read timed on its own."""
MANY = 1_000
"""Reads after which memory is looked at again."""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        servers = found_servers(Path(folder))
        yield from cold(servers)
        yield from running(servers)


def cold(servers: Mapping[str, Server]) -> Iterator[Row]:
    """From the start of the process until the list of tools is read."""
    taken: dict[str, list[float]] = {name: [] for name in servers}
    for start in range(STARTS + 2):
        turns = list(servers.items())
        for name, server in turns if start % 2 == 0 else reversed(turns):
            with Client(server.command, server.environment) as client:
                taken[name].append(client.listed - client.begun)
    samples = {name: Sample(tuple(times[2:])) for name, times in taken.items()}  # the first two warm the caches
    yield from compared("cold start", samples, 1e3, "ms", COLD_RATIOS)


def running(servers: Mapping[str, Server]) -> Iterator[Row]:
    """All run at once and are asked in turns; whoever is not asked sleeps."""
    clients = {name: Client(server.command, server.environment) for name, server in servers.items()}
    try:
        listed = {name: memory_of(client.pid) for name, client in clients.items()}
        for name, client in clients.items():
            prove(name, client, servers[name])
        yield from compared("warm read", warm(clients, servers), 1e6, "µs", WARM_RATIOS)
        for name, client in clients.items():
            for _ in range(MANY):
                client.call(*servers[name].read)
        yield from kept(listed, {name: memory_of(client.pid) for name, client in clients.items()})
    finally:
        for client in clients.values():
            client.close()


def warm(clients: Mapping[str, Client], servers: Mapping[str, Server]) -> dict[str, Sample]:
    times: dict[str, list[float]] = {name: [] for name in clients}
    for turn in range(ROUNDS + 2):
        turns = list(clients.items())
        for name, client in turns if turn % 2 == 0 else reversed(turns):
            request = servers[name].read
            times[name] += [client.call(*request).seconds for _ in range(CALLS)]
    return {name: Sample(tuple(taken[2 * CALLS :])) for name, taken in times.items()}


def prove(name: str, client: Client, server: Server) -> None:
    """A fast error is no result: the server must answer with the file's text before it is timed."""
    answer = client.call(*server.read).line
    if TEXT.splitlines()[-1].encode() not in answer or b'"isError":true' in answer.replace(b" ", b""):
        sys.exit(f"{name} did not read the file: {answer.decode()}")


def compared(
    what: str, samples: Mapping[str, Sample], scale: float, unit: str, ratios: Mapping[str, float]
) -> Iterator[Row]:
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
