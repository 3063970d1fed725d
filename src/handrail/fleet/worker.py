"""A worker process, which runs each session of its jobs in a thread.

Procrastinate delivers the jobs. Three additions make its delivery reliable: every worker hands back the jobs of dead
workers, a worker that lost a job ends at once, and a worker that is asked to stop soon hands back what is left.
"""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from procrastinate import App, JobContext, PsycopgConnector, RetryStrategy
from procrastinate.worker import Worker as JobWorker

from handrail.fleet.run import FindModel, OnEnd, Run
from handrail.fleet.sessions import DEAD_SECONDS, QUEUE, TASK, FleetSessions
from handrail.models.registry import find_model
from handrail.protocol.errors import StoreError
from handrail.settings import Settings
from handrail.store.postgres import StaleWorkerError
from handrail.store.postgres_schema import JOBS
from handrail.store.state_dir import make_private, make_temporary_folder

if TYPE_CHECKING:
    from handrail.fleet.traces import RunTraces

LOST = 75
"""The exit code of a worker that lost a run or the database. Whatever started it starts it again."""
_HEARTBEAT = 1 / 3
"""The time between two heartbeats, and the time to stop in, as parts of that."""
_DRAIN = 8 / 15
_SWEEP_SECONDS = 2.0
_POLL_SECONDS = 1.0
_UNUSED_SECONDS = 10.0
"""How long a connection waits for the next session."""
_CHECK = "SELECT status::text AS status, worker_id, attempts FROM procrastinate_jobs WHERE id = %(job)s"
_BEAT = "UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = %(worker)s"
_SWEEP = """
    WITH dead AS (
        SELECT id FROM procrastinate_workers WHERE last_heartbeat < now() - make_interval(secs => %(seconds)s)
    ), back AS (
        UPDATE procrastinate_jobs
        SET status = 'todo', attempts = attempts + 1, worker_id = NULL, queueing_lock = NULL, scheduled_at = NULL
        WHERE status = 'doing' AND queue_name = %(queue)s
            AND (worker_id IS NULL OR worker_id IN (SELECT id FROM dead))
        RETURNING id
    )
    SELECT id, pg_notify('procrastinate_any_queue_v1', json_build_object('type', 'job_inserted', 'job_id', id)::text)
    FROM back
"""
_log = logging.getLogger(__name__)


class Worker:
    """Runs sessions until it is stopped. `find_model` gets the name that a session has for its model."""

    def __init__(
        self,
        url: str,
        folder: str,
        *,
        concurrency: int = 20,
        find_model: FindModel = find_model,
        settings: Settings | None = None,
        variables: Mapping[str, str] | None = None,
        dead_seconds: float = DEAD_SECONDS,
        on_end: OnEnd | None = None,
        traces: "RunTraces | None" = None,
    ) -> None:
        """StoreError if the database cannot be used. `on_end` is called after each run."""
        self.name = f"{socket.gethostname()}:{os.getpid()}"
        self._url = url
        self._base = folder
        self._concurrency = concurrency
        self._find_model, self._settings, self._variables = find_model, settings, variables
        self._dead_seconds = dead_seconds
        self._on_end, self._traces = on_end, traces
        self._runs: dict[str, Run] = {}
        """The running sessions, by id."""
        self._worker: int | None = None
        """Our number at procrastinate, with the first job."""
        self._folder = ""
        self._sessions = FleetSessions(url, pooled=True)

    def run(self) -> int:
        """Returns the exit code when all runs have ended. If some were handed back, their threads still work, so the
        process ends at once. Another worker removes their folder."""
        make_private(self._base)
        with make_temporary_folder("handrail-worker-", self._base) as self._folder, closing(self._sessions):
            return asyncio.run(self._serve())

    async def _serve(self) -> int:
        options = {"options": f"-c search_path={JOBS}"}
        app = App(connector=PsycopgConnector(conninfo=self._url, kwargs=options, min_size=1, max_size=4))
        pool = ThreadPoolExecutor(self._concurrency, thread_name_prefix="run")

        @app.task(name=TASK, queue=QUEUE, retry=RetryStrategy(max_attempts=1_000_000, wait=1))
        async def _go_on(session: str) -> None:
            await asyncio.get_running_loop().run_in_executor(pool, self._perform, session)

        async with app.open_async():
            chores = [asyncio.create_task(self._sweep(app)), asyncio.create_task(self._watch_cancelled())]
            try:
                await app.run_worker_async(
                    queues=[QUEUE],
                    name=self.name,
                    concurrency=self._concurrency,
                    fetch_job_polling_interval=_POLL_SECONDS,
                    shutdown_graceful_timeout=self._dead_seconds * _DRAIN,
                    delete_jobs="successful",
                    update_heartbeat_interval=self._dead_seconds * _HEARTBEAT,
                    stalled_worker_timeout=self._dead_seconds,
                    worker_middleware=[self._guard],
                )
            finally:
                for chore in chores:
                    chore.cancel()
                pool.shutdown(wait=False, cancel_futures=True)
        if self._runs:
            if self._traces is not None:
                self._traces.close()
            os._exit(0)
        return 0

    def _perform(self, session: str) -> None:
        run = Run(
            self._sessions,
            session,
            worker=self.name,
            folder=self._folder,
            find_model=self._find_model,
            settings=self._settings,
            variables=self._variables,
            on_end=self._on_end,
            traces=self._traces,
        )
        self._runs[session] = run
        try:
            run.perform()
        except StaleWorkerError:
            _log.error("another worker has taken over session %s; this worker ends", session)
            end_at_once()
        except Exception as error:
            _log.warning("session %s will be tried again after an error: %s", session, error)
            raise
        finally:
            if self._runs.get(session) is run:
                del self._runs[session]

    async def _guard(self, call_next: Callable[[], Awaitable[Any]], context: JobContext, worker: JobWorker) -> Any:
        """Ends this process if its job belongs to another worker now: procrastinate would close the job of that one.
        Heartbeats are per process, so all other jobs are lost too."""
        self._worker = worker.worker_id
        try:
            return await call_next()
        finally:
            rows = await context.app.connector.execute_query_all_async(_CHECK, job=context.job.id)
            mine = {"status": "doing", "worker_id": worker.worker_id, "attempts": context.job.attempts}
            if [dict(row) for row in rows] != [mine]:
                _log.error("job %s belongs to another worker now; this worker ends", context.job.id)
                end_at_once()

    async def _sweep(self, app: App) -> None:
        """Sends a heartbeat too, as procrastinate sends none while it stops, and hands back the jobs of the dead.

        A process that stood still cannot tell: others on its machine, and it itself, may just have had no time either.
        """
        while True:
            before = time.monotonic()
            await asyncio.sleep(min(_SWEEP_SECONDS, self._dead_seconds / 6))
            with suppress(Exception):  # a database that restarts: the next time
                await app.connector.execute_query_async(_BEAT, worker=self._worker)
                if time.monotonic() - before > self._dead_seconds / 2:
                    continue
                found = await app.connector.execute_query_all_async(_SWEEP, seconds=self._dead_seconds, queue=QUEUE)
                for row in found:
                    _log.warning("job %s was handed back: its worker is dead", row["id"])

    async def _watch_cancelled(self) -> None:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            self._sessions.close_unused(_UNUSED_SECONDS)
            if self._runs:
                with suppress(StoreError):
                    for session in await asyncio.to_thread(self._sessions.list_cancelled, self.name):
                        if (run := self._runs.get(session)) is not None:
                            run.cancel()


def end_at_once() -> None:
    os._exit(LOST)
