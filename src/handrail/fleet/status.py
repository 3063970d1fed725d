"""The state of a fleet in figures: workers, sessions, requests, jobs."""

from typing import Any

import msgspec

from handrail.fleet.sessions import DEAD_SECONDS, QUEUE
from handrail.store.database import Database
from handrail.store.postgres import PostgresDatabase, SessionScope
from handrail.store.postgres_schema import FLEET

_WORKERS = """
    SELECT id, extract(epoch FROM now() - last_heartbeat)::float8,
        (SELECT count(*) FROM handrail_jobs.procrastinate_jobs WHERE worker_id = w.id AND status = 'doing')
    FROM handrail_jobs.procrastinate_workers AS w ORDER BY id
"""
_STATES = "SELECT state, count(*) FROM handrail.session GROUP BY state ORDER BY state"
_REQUESTS = "SELECT count(*) FROM handrail.request WHERE answer IS NULL"
_JOBS = """
    SELECT count(*), extract(epoch FROM now() - min(at))::float8
    FROM handrail_jobs.procrastinate_jobs AS j JOIN handrail_jobs.procrastinate_events AS e ON e.job_id = j.id
    WHERE j.status = 'todo' AND j.queue_name = ? AND e.type = 'deferred'
"""


class WorkerStatus(msgspec.Struct, frozen=True):
    id: int
    heartbeat_seconds: float
    """The age of its last heartbeat."""
    runs: int
    alive: bool


class FleetStatus(msgspec.Struct, frozen=True):
    workers: tuple[WorkerStatus, ...]
    sessions: dict[str, int]
    """The number of sessions in each state."""
    requests: int
    """Requests that wait for a person."""
    jobs: int
    """Jobs that wait for a worker."""
    oldest_job_seconds: float | None


def open_status_database(url: str) -> Database:
    return PostgresDatabase(SessionScope(url=url, session=""), "", FLEET)


def read_status(database: Database) -> FleetStatus:
    workers = [WorkerStatus(number, age, runs, age < DEAD_SECONDS) for number, age, runs in database.rows(_WORKERS)]
    jobs: tuple[Any, ...] = database.rows(_JOBS, (QUEUE,))[0]
    return FleetStatus(
        workers=tuple(workers),
        sessions=dict(database.rows(_STATES)),
        requests=database.rows(_REQUESTS)[0][0],
        jobs=jobs[0],
        oldest_job_seconds=jobs[1],
    )
