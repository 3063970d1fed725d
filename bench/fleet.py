"""Sessions of a fleet: two workers over one PostgreSQL against one process over SQLite, with a model that never waits.

Needs PostgreSQL: the one of the tests. Each session makes four calls: two writes, a command, a read.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.measure import Row

if TYPE_CHECKING:
    from handrail.fleet.sessions import FleetSessions
    from handrail.models.base import Model

SIZES = tuple(int(size) for size in os.environ.get("HANDRAIL_BENCH_SESSIONS", "10,100").split(","))
WORKERS, THREADS = 2, 8
_EVENTS = b"SELECT count(*) FROM handrail.event"
_ENDED = b"SELECT count(*) FROM handrail.session WHERE state IN ('idle', 'failed') AND id LIKE %s"


def rows() -> Iterator[Row]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    postgres: Any = import_module("postgres")  # of the tests
    from handrail.fleet.sessions import FleetSessions, prepare_database  # noqa: PLC0415  optional dependency

    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        url = postgres.server().make_database()
        prepare_database(url)
        command = [sys.executable, "-m", "bench.fleet", url, folder]
        workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(WORKERS)]
        try:
            with closing(FleetSessions(url)) as sessions:
                run_fleet(sessions, Path(folder), "warm", THREADS)
                for size in SIZES:
                    alone = run_alone(Path(folder), size)
                    before = count(sessions, _EVENTS)
                    fleet = run_fleet(sessions, Path(folder), f"of-{size}", size)
                    events = (count(sessions, _EVENTS) - before) / fleet
                    yield Row(f"{size} sessions: one process, SQLite", size / alone * 60, "a minute")
                    yield Row(f"{size} sessions: {WORKERS} workers, PostgreSQL", size / fleet * 60, "a minute")
                    yield Row(f"{size} sessions: {WORKERS} workers, events", events, "a second")
                    yield Row(f"{size} sessions: workers / process", fleet / alone, "x")
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGKILL)
                worker.wait()


def run_fleet(sessions: "FleetSessions", folder: Path, name: str, size: int) -> float:
    """The time until all sessions have ended."""
    from handrail.fleet.sessions import RunOptions, SharedFolder  # noqa: PLC0415  optional dependency

    names = [f"{name}-{number}" for number in range(size)]
    for one in names:
        (folder / "fleet" / one).mkdir(parents=True)

    def submit(name: str) -> str:
        workspace = SharedFolder(str(folder / "fleet" / name))
        return sessions.submit("Go on.", RunOptions(model="bench", workspace=workspace, mode="auto"), session=name)

    began = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(submit, names))
    while count(sessions, _ENDED, f"{name}-%") < size:
        time.sleep(0.1)
    if failed := sessions.list_sessions("failed"):
        raise AssertionError(f"a failed run is no result: {failed[0].outcome}")
    return time.perf_counter() - began


def run_alone(folder: Path, size: int) -> float:
    """The same sessions in threads of one process."""
    import asyncio  # noqa: PLC0415  as a program that uses the library would

    from handrail import Handrail  # noqa: PLC0415
    from handrail.agent.loop import Agent  # noqa: PLC0415
    from handrail.settings import Settings  # noqa: PLC0415

    def run(number: int) -> None:
        workspace = folder / f"alone-{size}" / str(number)
        workspace.mkdir(parents=True)
        state = folder / f"state-{size}"
        with Handrail(workspace, mode="auto", session="one", state_dir=state, settings=Settings()) as rail:
            turn = asyncio.run(Agent(rail, build_model()).run("Go on."))
        if turn.reason != "done":
            raise AssertionError(f"a failed run is no result: {turn}")

    began = time.perf_counter()
    with ThreadPoolExecutor(WORKERS * THREADS) as pool:
        list(pool.map(run, range(size)))
    return time.perf_counter() - began


def build_model(_name: str = "") -> "Model":
    from handrail.models.scripted import ScriptedModel, call  # noqa: PLC0415  a program of the library

    return ScriptedModel(
        [
            call("write", path="a.txt", content="one\n" * 20),
            call("write", path="b.txt", content="two\n" * 20),
            call("exec", command="sort a.txt b.txt > c.txt"),
            call("read", path="c.txt"),
            "Done.",
        ]
    )


def count(sessions: "FleetSessions", query: bytes, *values: str) -> int:
    import psycopg  # noqa: PLC0415  optional dependency

    with psycopg.connect(sessions.url) as connection:
        row = connection.execute(query, values).fetchone()
        return row[0] if row else 0


if __name__ == "__main__":
    from handrail.fleet.worker import Worker
    from handrail.settings import Settings

    url, folder = sys.argv[1:]
    Worker(url, f"{folder}/workers", concurrency=THREADS, find_model=build_model, settings=Settings()).run()
