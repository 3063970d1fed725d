"""Sessions of a fleet: two workers over one PostgreSQL against one process over SQLite, with a model that never waits.

Needs PostgreSQL: the one of the tests, which keeps what a crash of a process leaves, as SQLite does here. Each session
makes four calls: two writes, a command, a read. The processor time of a session tells the shape of the growth also
when other programs run: of the workers or the process, and of the database with those who submit.
"""

import os
import resource
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

SIZES = tuple(int(size) for size in os.environ.get("HANDRAIL_BENCH_SESSIONS", "10,100,1000").split(","))
WORKERS, THREADS = 2, 8
_SERVER = {"fsync": "on", "synchronous_commit": "off", "autovacuum": "on", "shared_buffers": "128MB"}
_TICK = os.sysconf("SC_CLK_TCK")
_EVENTS = b"SELECT count(*) FROM handrail.event"
_OPEN = b"SELECT count(*) FROM handrail.session WHERE state IN ('queued', 'running')"


def rows() -> Iterator[Row]:
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
    postgres: Any = import_module("postgres")  # of the tests
    from handrail.fleet.sessions import FleetSessions, prepare_database  # noqa: PLC0415  optional dependency

    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        server = postgres.Server(**_SERVER)
        url = server.make_database()
        prepare_database(url)
        command = [sys.executable, "-m", "bench.fleet", url, folder]
        workers = [subprocess.Popen(command, stderr=subprocess.DEVNULL) for _ in range(WORKERS)]
        try:
            with closing(FleetSessions(url, pooled=True)) as sessions:
                run_fleet(sessions, Path(folder), "warm", THREADS)
                for size in SIZES:
                    own = measure_own_time()
                    alone = run_alone(Path(folder), size)
                    own = measure_own_time() - own
                    before, theirs = count(sessions, _EVENTS), list(map(measure_time, workers))
                    database = measure_tree(server.pid)
                    fleet = run_fleet(sessions, Path(folder), f"of-{size}", size)
                    database = measure_tree(server.pid) - database
                    used = sum(map(measure_time, workers)) - sum(theirs)
                    events = (count(sessions, _EVENTS) - before) / fleet
                    yield Row(f"{size} sessions: one process, SQLite", size / alone * 60, "a minute")
                    yield Row(f"{size} sessions: {WORKERS} workers, PostgreSQL", size / fleet * 60, "a minute")
                    yield Row(f"{size} sessions: {WORKERS} workers, events", events, "a second")
                    yield Row(f"{size} sessions: workers / process", fleet / alone, "x")
                    yield Row(f"{size} sessions: processor, one process", own / size * 1000, "ms a session")
                    yield Row(f"{size} sessions: processor, workers", used / size * 1000, "ms a session")
                    yield Row(f"{size} sessions: processor, database", database / size * 1000, "ms a session")
        finally:
            for worker in workers:
                worker.send_signal(signal.SIGKILL)
                worker.wait()


def measure_own_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure_time(process: "subprocess.Popen[bytes]") -> float:
    """The processor time of a process with its children that have ended."""
    return _read_process(process.pid)[1]


def measure_tree(pid: int) -> float:
    """The processor time of a process with all its children. Those that ended count as its own."""
    children = [found for name in os.listdir("/proc") if name.isdigit() and (found := _read_process(int(name)))]
    return sum(used for parent, used in children if parent == pid) + _read_process(pid)[1]


def _read_process(pid: int) -> tuple[int, float]:
    """The parent of a process, and its time."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return 0, 0.0
    return int(fields[1]), sum(map(int, fields[11:15])) / _TICK


def run_fleet(sessions: "FleetSessions", folder: Path, name: str, size: int) -> float:
    """The time until all sessions have ended."""
    from handrail.fleet.options import RunOptions, SharedFolder  # noqa: PLC0415  optional dependency

    names = [f"{name}-{number}" for number in range(size)]
    for one in names:
        (folder / "fleet" / one).mkdir(parents=True)

    def submit(name: str) -> str:
        workspace = SharedFolder(str(folder / "fleet" / name))
        return sessions.submit("Go on.", RunOptions(model="bench", workspace=workspace, mode="auto"), session=name)

    began = time.perf_counter()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(submit, names))
    while count(sessions, _OPEN):
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


def count(sessions: "FleetSessions", query: bytes) -> int:
    import psycopg  # noqa: PLC0415  optional dependency

    with psycopg.connect(sessions.url) as connection:
        row = connection.execute(query).fetchone()
        return row[0] if row else 0


if __name__ == "__main__":
    from handrail.fleet.worker import Worker
    from handrail.settings import Settings

    url, folder = sys.argv[1:]
    Worker(url, f"{folder}/workers", concurrency=THREADS, find_model=build_model, settings=Settings()).run()
