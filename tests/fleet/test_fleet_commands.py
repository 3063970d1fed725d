"""`handrail worker` and `handrail fleet`."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fleets import PATIENCE, Fleet

import postgres
from handrail.cli.main import run as run_words
from handrail.fleet.metrics import Metrics
from handrail.fleet.sessions import FleetSessions
from handrail.fleet.status import open_status_database, read_status
from handrail.protocol.permissions import Answer

Run = Callable[..., subprocess.CompletedProcess[str]]
SCRIPT = """[
    {"calls": [["write", {"path": "a.txt", "content": "hello\\n"}]]},
    {"text": "Done."}
]"""


@pytest.fixture
def url() -> str:
    return postgres.server().make_database()


@pytest.fixture
def run(
    environment: dict[str, str],
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> Run:
    """Runs a command in this process, which is much quicker."""

    def run(*words: str, database: str | None = url) -> subprocess.CompletedProcess[str]:
        named = {} if database is None else {"HANDRAIL_DATABASE": database}
        with monkeypatch.context() as patch:
            patch.chdir(tmp_path)
            for name, value in (environment | named).items():
                patch.setenv(name, value)
            capfd.readouterr()
            code = run_words(list(words))
            return subprocess.CompletedProcess(words, code, *capfd.readouterr())

    return run


@pytest.fixture
def worker(environment: dict[str, str], url: str, tmp_path: Path) -> Iterator[Callable[[], object]]:
    processes: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        command = [sys.executable, "-m", "handrail", "worker", "--database", url, "--folder", str(tmp_path / "workers")]
        processes.append(subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.DEVNULL))

    yield start
    for process in processes:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def wait_for(url: str, state: str) -> None:
    with closing(FleetSessions(url)) as sessions:
        until = time.monotonic() + PATIENCE
        while not sessions.list_sessions(state):  # type: ignore[arg-type]
            assert time.monotonic() < until, sessions.list_sessions()
            time.sleep(0.05)


def test_a_session_is_started_approved_and_verified_from_the_shell(
    run: Run, worker: Callable[[], object], url: str, tmp_path: Path
) -> None:
    assert run("fleet", "migrate").returncode == 0
    assert run("fleet", "migrate").stderr == "the database has all tables\n"
    (tmp_path / "script.json").write_text(SCRIPT)
    shared = tmp_path / "project"
    shared.mkdir()
    options = ("--shared", str(shared), "--model", "scripted:script.json", "--session", "one", "--tenant", "team")
    assert run("fleet", "run", "Go on.", *options).stdout == "one\n"
    refused = run("fleet", "run", "Again.", *options)
    assert refused.returncode == 2
    assert "session one has an open turn" in refused.stderr
    worker()
    wait_for(url, "waiting")
    assert "1 waiting" in run("fleet", "status").stdout
    [line] = [line for line in run("fleet", "approvals").stdout.splitlines() if "Write a.txt" in line]
    allowed = run("fleet", "allow", line.split()[0])
    assert (allowed.returncode, allowed.stderr) == (0, "answered; a worker continues session one\n")
    again = run("fleet", "allow", line.split()[0])
    assert (again.returncode, "no request" in again.stderr) == (1, True)
    wait_for(url, "idle")
    [session] = json.loads(run("fleet", "status", "--json").stdout)["sessions"]
    assert (shared / "a.txt").read_text() == "hello\n"
    assert session["outcome"]["text"] == "Done."
    kinds = [json.loads(line)["kind"] for line in run("fleet", "log", "one").stdout.splitlines()]
    assert (kinds[0], kinds[-1], kinds.count("tool_call.end")) == ("user", "end", 1)
    assert run("fleet", "log", "none").returncode == 1
    assert run("fleet", "verify").stderr == "1 audit chains checked, 0 problems\n"
    assert run("fleet", "cancel", "one").returncode == 1
    limits = run("fleet", "limits", "team", "--sessions", "0")
    assert limits.stdout.split()[:6] == ["limit", "used", "of", "sessions", "0", "0"]
    assert "limit of 0 sessions" in run("fleet", "run", "More.", *options).stderr


def test_the_inbox_of_a_fleet_is_that_of_every_machine(run: Run, tmp_path: Path) -> None:
    with Fleet(tmp_path) as fleet:
        for name, model in (("one", "append:1"), ("two", "append:1"), ("three", "ask")):
            fleet.submit(model, name, mode="ask")
        fleet.start_worker()
        for name in ("one", "two", "three"):
            fleet.wait_for(name, "waiting")
        of_fleet = ("--database", fleet.url)
        body = json.loads(run("approvals", "--json", *of_fleet).stdout)
        requests = {one["sessionId"]: one["short"] for one in body["waiting"]}
        assert (sorted(requests), [one["sessionId"] for one in body["questions"]]) == (["one", "two"], ["three"])
        assert str(tmp_path / "workspaces" / "one") in run("approvals", database=fleet.url).stdout
        assert json.loads(run("approvals", "--json", "--all", database=None).stdout)["waiting"] == []
        assert "echo line-0" in run("approvals", "show", requests["one"], *of_fleet).stdout
        allowed = run("approvals", "allow", requests["one"], *of_fleet)
        assert (allowed.returncode, allowed.stderr) == (0, "answered; a worker continues session one\n")
        denied = run("approvals", "deny", requests["two"], "--reason", "no", database=fleet.url)
        assert denied.stderr == "answered; a worker continues session two\n"
        replied = run("approvals", "reply", body["questions"][0]["short"], "2", *of_fleet)
        assert replied.stderr == "answered; a worker continues session three\n"
        for name in ("one", "two", "three"):
            assert fleet.wait_for(name) == "idle"
        assert (fleet.read("one", "log.txt"), fleet.read("two", "log.txt")) == ("line-0\n", "")
        again = run("approvals", "allow", requests["one"], *of_fleet)
        assert again.returncode == 1
        assert "already has an answer" in again.stderr


@pytest.mark.parametrize(
    ("words", "database", "message"),
    [
        (("approvals", "--database", "postgresql://localhost:1/none"), None, "the database cannot be opened"),
        (("serve", "--database", "postgresql://localhost:1/none"), None, "needs --workspace"),
        (("serve", "--database", "postgresql://localhost:1/none", "--workspace", "/x"), None, "cannot be opened"),
        (("fleet", "status"), None, "no database is named"),
        (("worker",), "postgresql://localhost:1/none", "the database cannot be opened"),
        (("fleet", "status"), "not a url", "the database cannot be opened"),
        (("fleet", "run", "x", "--model", "m"), "", "no database is named"),
    ],
)
def test_a_database_that_cannot_be_used_is_one_clear_error(
    words: tuple[str, ...], database: str | None, message: str, run: Run
) -> None:
    refused = run(*words, database=database)
    assert refused.returncode in {2, 4}
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 2


def test_a_database_without_tables_names_the_command(run: Run) -> None:
    for words in (("fleet", "status"), ("approvals",), ("serve", "--workspace", "/srv/site")):
        refused = run(*words)
        assert refused.returncode == 4
        assert "handrail fleet migrate" in refused.stderr


def test_the_figures_of_a_fleet_are_served_for_prometheus(tmp_path: Path) -> None:
    with Fleet(tmp_path) as fleet:
        fleet.submit("append:1", "one", mode="ask")
        metrics = Metrics(fleet.url)
        metrics.count_run("idle", 12, 0.7)
        port = metrics.serve("127.0.0.1", 0)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            text = answer.read().decode()
        metrics.close()
    assert 'handrail_sessions{state="queued"} 1.0' in text
    assert "handrail_jobs_waiting 1.0" in text
    assert 'handrail_runs_total{state="idle"} 1.0' in text
    assert "handrail_tokens_total 12.0" in text


def test_ten_thousand_parked_approvals_hold_nothing_and_one_answer_starts_one_job(
    tmp_path: Path, count: Callable[[int], int]
) -> None:
    """Copies of one parked session, as rows: no worker is needed to wait."""
    with Fleet(tmp_path) as fleet:
        fleet.submit("append:1", "one", mode="ask")
        worker = fleet.start_worker()
        request = fleet.wait_for_request("one").request
        assert fleet.wait_for("one", "waiting") == "waiting"
        worker.terminate()
        worker.wait()
        fleet.copy_session("one", request.id, count(10_000))
        with closing(open_status_database(fleet.url)) as database:
            status = read_status(database)
            [(held,)] = database.rows(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        assert (status.requests, status.jobs, status.workers) == (count(10_000) + 1, 0, ())
        assert held == 1  # the connection of `fleet.sessions`
        fleet.start_worker()
        fleet.wait(lambda: "ready" if fleet.count_workers() else None)
        times: list[float] = []
        for waiting in fleet.sessions.list_waiting(limit=count(100)):
            began = time.monotonic()
            fleet.sessions.answer(waiting.request.id, Answer(kind="deny"))
            fleet.wait_for(waiting.session, "running", "idle")
            times.append(time.monotonic() - began)
            fleet.wait_for(waiting.session)
        assert sorted(times)[int(len(times) * 0.95)] <= 1.0


def test_without_the_extra_nothing_of_a_fleet_is_imported_and_the_commands_name_it(
    environment: dict[str, str], tmp_path: Path
) -> None:
    program = """
import sys
for name in ("psycopg", "procrastinate", "prometheus_client", "opentelemetry"):
    sys.modules[name] = None
from handrail import Handrail
from handrail.cli.main import main
with Handrail(sys.argv[1], state_dir=sys.argv[2], mode="auto") as rail:
    assert rail.write("a.txt", "text").ok
sys.argv[1:] = ["fleet", "status", "--database", "postgresql://localhost/none"]
main()
"""
    command = [sys.executable, "-c", program, str(tmp_path), str(tmp_path.parent / "state-of-none")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 4
    assert "the extra fleet is not installed" in result.stderr
