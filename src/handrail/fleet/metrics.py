"""Figures of a worker for Prometheus, together with those of its fleet."""

from collections.abc import Iterator
from wsgiref.simple_server import WSGIServer

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from handrail.fleet.status import open_status_database, read_status
from handrail.protocol.errors import StoreError

_BUCKETS = (0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600)


class _FleetCollector(Collector):
    """Reads the status when Prometheus asks. Without the database there are only the figures of this worker."""

    def __init__(self, url: str) -> None:
        self._database = open_status_database(url)

    def collect(self) -> Iterator[GaugeMetricFamily]:
        try:
            status = read_status(self._database)
        except StoreError:
            return
        workers = sum(worker.alive for worker in status.workers)
        yield GaugeMetricFamily("handrail_workers", "Workers with a recent heartbeat", workers)
        yield GaugeMetricFamily("handrail_requests_waiting", "Permission requests without an answer", status.requests)
        yield GaugeMetricFamily("handrail_jobs_waiting", "Jobs that no worker has taken", status.jobs)
        oldest = status.oldest_job_seconds or 0.0
        yield GaugeMetricFamily("handrail_oldest_job_seconds", "Age of the oldest such job", oldest)
        sessions = GaugeMetricFamily("handrail_sessions", "Sessions in each state", labels=["state"])
        for state, count in status.sessions.items():
            sessions.add_metric([state], count)
        yield sessions

    def close(self) -> None:
        self._database.close()

    def describe(self) -> list[GaugeMetricFamily]:
        return []


class Metrics:
    """The figures of one worker. `serve` publishes them with those of the fleet, under `/metrics`."""

    def __init__(self, url: str) -> None:
        self._registry = CollectorRegistry()
        self._fleet = _FleetCollector(url)
        self._registry.register(self._fleet)
        self._server: WSGIServer | None = None
        self._runs = Counter("handrail_runs", "Runs that ended here", ["state"], registry=self._registry)
        self._tokens = Counter("handrail_tokens", "Tokens that runs used here", registry=self._registry)
        self._seconds = Histogram(
            "handrail_run_seconds", "Time from claim to release", buckets=_BUCKETS, registry=self._registry
        )

    def serve(self, host: str, port: int) -> int:
        """Serves the figures in a thread. Returns the port."""
        self._server, _ = start_http_server(port, host, self._registry)
        return self._server.server_port

    def render(self) -> bytes:
        return generate_latest(self._registry)

    def close(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        self._fleet.close()

    def count_run(self, state: str, tokens: int, seconds: float) -> None:
        self._runs.labels(state).inc()
        self._tokens.inc(tokens)
        self._seconds.observe(seconds)
