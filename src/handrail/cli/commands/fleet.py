"""handrail fleet: sessions on many machines over one database."""

import os
import threading
from argparse import ArgumentParser
from contextlib import closing
from types import SimpleNamespace
from typing import TYPE_CHECKING

from handrail.cli.commands.fleet_database import (
    add_database_option,
    answer_in_fleet,
    needs_extra,
    open_sessions,
    require_database,
)
from handrail.cli.commands.run_setup import resolve_model
from handrail.cli.context import choose_id, open_state_folder
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.format import format_time
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.cli.parser import Command, add_json_option, add_mode_option
from handrail.cli.usage import parse_nonempty_text, parse_number
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, Reply
from handrail.protocol.records import shorten_ids
from handrail.protocol.text import render_value, to_one_line, truncate
from handrail.protocol.wire import encode

if TYPE_CHECKING:
    from handrail.fleet.sessions import FleetRequest, FleetSessions
    from handrail.models.base import Model

_SCHEMA = "handrail.fleet/1"
_TRACES = "OTEL_EXPORTER_OTLP_ENDPOINT"


def run_worker(options: SimpleNamespace) -> int:
    """Runs sessions until SIGTERM or Ctrl-C."""
    url = require_database(options)
    with needs_extra():
        from handrail.fleet.worker import Worker  # noqa: PLC0415  optional dependency
    on_end = None
    if options.metrics is not None:
        from handrail.fleet.metrics import Metrics  # noqa: PLC0415  optional dependency

        metrics = Metrics(url)
        host, _, port = options.metrics.rpartition(":")
        if not port.isdigit():
            raise CommandFailed(f"--metrics is HOST:PORT, not {render_value(options.metrics)}")
        print_note(f"metrics on port {metrics.serve(host or '127.0.0.1', int(port))}")
        on_end = metrics.count_run
    folder = options.folder or os.path.join(open_state_folder().path, "workers")
    traces = None
    if os.environ.get(_TRACES):
        with needs_extra("otel"):
            from handrail.fleet.traces import RunTraces  # noqa: PLC0415  optional dependency
        traces = RunTraces()
    worker = Worker(url, folder, concurrency=options.concurrency, find_model=_find_model, on_end=on_end, traces=traces)
    print_note(f"worker {worker.name} runs up to {options.concurrency} sessions; Ctrl-C ends it")
    code = worker.run()
    if traces is not None:
        traces.close()
    return code


def _find_model(name: str) -> "Model":
    try:
        return resolve_model(name)
    except CommandFailed as error:
        raise UsageError(str(error)) from None


def run_migrate(options: SimpleNamespace) -> int:
    url = require_database(options)
    with needs_extra():
        from handrail.fleet.sessions import prepare_database  # noqa: PLC0415  optional dependency
    prepare_database(url)
    print_note("the database has all tables")
    return OK


def run_prompt(options: SimpleNamespace) -> int:
    """Gives a session a prompt. A worker runs it."""
    with open_sessions(options) as sessions:
        from handrail.fleet.options import GitWorkspace, RunOptions, SharedFolder  # noqa: PLC0415  as above

        if (options.git is None) == (options.shared is None):
            raise CommandFailed("name the workspace: --git URL, or --shared DIR. Nothing was started.")
        if options.git is not None:
            workspace = GitWorkspace(options.git, options.revision or "HEAD", options.branch)
        else:
            workspace = SharedFolder(os.path.realpath(options.shared))
        chosen = RunOptions(model=options.model, workspace=workspace, mode=options.mode or "ask")
        session = sessions.submit(options.prompt, chosen, session=options.session, tenant=options.tenant or "")
    if options.json:
        print_json(encode({"schema": _SCHEMA, "session": session}))
    else:
        print_out(f"{session}\n")
        print_note("to see its state: handrail fleet status")
    return OK


def run_status(options: SimpleNamespace) -> int:
    with open_sessions(options) as sessions:
        from handrail.fleet.status import open_status_database, read_status  # noqa: PLC0415  as above

        with closing(open_status_database(sessions.url)) as database:
            status = read_status(database)
        listed = sessions.list_sessions(limit=options.last)
    if options.json:
        print_json(encode({"schema": _SCHEMA, "status": status, "sessions": listed}))
        return OK
    states = ", ".join(f"{count} {state}" for state, count in status.sessions.items()) or "none"
    oldest = f", the oldest for {status.oldest_job_seconds:.0f} s" if status.oldest_job_seconds is not None else ""
    alive = [worker for worker in status.workers if worker.alive]
    rows = [
        ("workers", f"{len(alive)}, with {sum(worker.runs for worker in alive)} runs"),
        ("sessions", states),
        ("requests", f"{status.requests} waiting"),
        ("jobs", f"{status.jobs} waiting{oldest}"),
    ]
    print_out(render_table(rows))
    if listed:
        table = [("session", "state", "changed", "outcome")]
        table += [
            (one.id, one.state, format_time(one.changed), truncate(to_one_line(_describe_outcome(one.outcome)), 60))
            for one in listed
        ]
        print_out("\n" + render_table(table))
    return OK


def run_approvals(options: SimpleNamespace) -> int:
    with open_sessions(options) as sessions:
        waiting = sessions.list_waiting()
    if options.json:
        print_json(encode({"schema": _SCHEMA, "waiting": waiting}))
        return OK
    short = shorten_ids([one.request.id for one in waiting])
    rows = [(short[one.request.id], one.session, truncate(to_one_line(one.request.description), 60)) for one in waiting]
    if rows:
        print_out(render_table([("id", "session", "request"), *rows]))
        print_note(f"to approve one: handrail fleet allow {rows[0][0]}; to deny it: handrail fleet deny {rows[0][0]}")
    else:
        print_note("no request waits for an answer")
    return OK


def run_allow(options: SimpleNamespace) -> int:
    return _answer(options, Answer(kind="session" if options.for_session else "once"))


def run_deny(options: SimpleNamespace) -> int:
    return _answer(options, Answer(kind="deny", reason=options.reason))


def run_reply(options: SimpleNamespace) -> int:
    with open_sessions(options) as sessions:
        sessions.reply(options.session_id, options.call, Reply(text=options.text))
    print_note("a worker continues the run")
    return OK


def run_log(options: SimpleNamespace) -> int:
    """Prints the events, with --follow until Ctrl-C."""
    with open_sessions(options) as sessions:
        if sessions.find(options.session_id) is None:
            problem = f"there is no session {render_value(options.session_id)}."
            raise CommandFailed(problem, FAILED, then="handrail fleet status")
        if not options.follow:
            for event in sessions.events(options.session_id):
                print_json(encode(event))
            return OK
        from handrail.fleet.feed import EventFeed  # noqa: PLC0415  as above

        with closing(EventFeed(sessions.url)) as feed:
            feed.follow(options.session_id, lambda event: print_json(encode(event)))
            threading.Event().wait()
    return OK


def run_cancel(options: SimpleNamespace) -> int:
    with open_sessions(options) as sessions:
        if not sessions.cancel(options.session_id):
            raise CommandFailed(
                f"session {render_value(options.session_id)} has no running turn.", FAILED, then="handrail fleet status"
            )
    return OK


def run_resume(options: SimpleNamespace) -> int:
    with open_sessions(options) as sessions:
        sessions.resume(options.session_id)
    return OK


def run_verify(options: SimpleNamespace) -> int:
    """Compares the audit chain of each session with its journal."""
    with open_sessions(options) as sessions:
        names = [options.session_id] if options.session_id else [one.id for one in sessions.list_sessions(limit=10**9)]
        problems: list[str] = []
        for name in names:
            problems += [f"{name}: {problem}" for problem in sessions.verify(name).problems]
    for problem in problems:
        print_out(f"{problem}\n")
    print_note(f"{len(names)} audit chains checked, {len(problems)} problems")
    return FAILED if problems else OK


def run_limits(options: SimpleNamespace) -> int:
    with open_sessions(options) as sessions:
        from handrail.fleet.sessions import TenantLimits  # noqa: PLC0415  as above

        limits = TenantLimits(sessions=options.sessions, tokens=options.tokens, seconds=options.seconds)
        if limits != TenantLimits():
            sessions.set_limits(options.tenant, limits)
        limits, used = sessions.measure_tenant(options.tenant)
    rows = [("limit", "used", "of")]
    for name in ("sessions", "tokens", "seconds"):
        most = getattr(limits, name)
        rows.append((name, f"{getattr(used, name) or 0:,.0f}", "no limit" if most is None else f"{most:,.0f}"))
    print_out(render_table(rows))
    return OK


def _answer(options: SimpleNamespace, answer: Answer) -> int:
    with open_sessions(options) as sessions:
        found = _find_request(sessions, options.id)
    return answer_in_fleet(options, found.request, answer)


def _find_request(sessions: "FleetSessions", text: str) -> "FleetRequest":
    waiting = {one.request.id: one for one in sessions.list_waiting()}
    descriptions = {name: one.request.description for name, one in waiting.items()}
    name = choose_id(text, descriptions, "handrail fleet approvals")
    if name is None:
        raise CommandFailed(f"no request {render_value(text)} is waiting.", FAILED, then="handrail fleet approvals")
    return waiting[name]


def _describe_outcome(outcome: object) -> str:
    fields = ("branch", "message", "text", "reason")
    return next((value for name in fields if (value := getattr(outcome, name, None))), "")


def _add_worker_arguments(parser: ArgumentParser) -> None:
    add_database_option(parser)
    parser.add_argument(
        "--concurrency", metavar="N", type=parse_number(1, 1000), default=20, help="sessions at the same time (20)"
    )
    parser.add_argument("--folder", metavar="DIR", help="where clones and caches go (in the state folder)")
    parser.add_argument("--metrics", metavar="HOST:PORT", help="serve figures for Prometheus there")


def _add_run_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", type=parse_nonempty_text, help="the task")
    add_database_option(parser)
    parser.add_argument("--model", metavar="NAME", required=True, help="provider and model, such as anthropic:…")
    add_mode_option(parser)
    parser.add_argument("--git", metavar="URL", help="work in a clone of this repository")
    parser.add_argument("--revision", metavar="NAME", help="the commit, branch or tag to clone (HEAD)")
    parser.add_argument("--branch", metavar="NAME", help="the branch for the result (handrail/SESSION)")
    parser.add_argument("--shared", metavar="DIR", help="work in a folder that all workers share")
    parser.add_argument("--session", metavar="ID", help="the id of a new session, or of an idle one")
    parser.add_argument("--tenant", metavar="NAME", help="whose limits count")
    add_json_option(parser)


def _add_status_arguments(parser: ArgumentParser) -> None:
    add_database_option(parser)
    parser.add_argument(
        "--last", metavar="N", type=parse_number(0, 10_000), default=20, help="how many sessions to list (20)"
    )
    add_json_option(parser)


def _add_list_arguments(parser: ArgumentParser) -> None:
    add_database_option(parser)
    add_json_option(parser)


def _add_allow_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the request, or the beginning of its id")
    add_database_option(parser)
    add_json_option(parser)
    parser.add_argument("--for-session", action="store_true", help="approve similar calls of the session too")


def _add_deny_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the request, or the beginning of its id")
    add_database_option(parser)
    add_json_option(parser)
    parser.add_argument("--reason", metavar="TEXT", help="why; the model reads it")


def _add_reply_arguments(parser: ArgumentParser) -> None:
    _add_session_argument(parser)
    parser.add_argument("call", metavar="CALL", type=parse_nonempty_text, help="the call that asks")
    parser.add_argument("text", metavar="TEXT", type=parse_nonempty_text, help="the reply")
    add_database_option(parser)


def _add_one_session_arguments(parser: ArgumentParser) -> None:
    _add_session_argument(parser)
    add_database_option(parser)


def _add_log_arguments(parser: ArgumentParser) -> None:
    _add_one_session_arguments(parser)
    parser.add_argument("--follow", action="store_true", help="print new events too, until Ctrl-C")


def _add_verify_arguments(parser: ArgumentParser) -> None:
    _add_session_argument(parser, nargs="?")
    add_database_option(parser)


def _add_session_argument(parser: ArgumentParser, **more: str) -> None:
    parser.add_argument("session_id", metavar="SESSION", type=parse_nonempty_text, help="the session", **more)  # pyright: ignore[reportArgumentType]


def _add_limits_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("tenant", metavar="TENANT", type=parse_nonempty_text, help="whose limits")
    add_database_option(parser)
    parser.add_argument("--sessions", metavar="N", type=parse_number(0), help="open sessions at the same time")
    parser.add_argument("--tokens", metavar="N", type=parse_number(0), help="tokens of all its sessions")
    parser.add_argument("--seconds", metavar="N", type=parse_number(0), help="run time of all its sessions")


_URL = "--database postgresql://localhost/handrail"
COMMANDS = {
    "worker": Command(
        run_worker,
        _add_worker_arguments,
        (f"handrail worker {_URL}", "handrail worker --concurrency 8"),
    ),
    "fleet migrate": Command(
        run_migrate, add_database_option, (f"handrail fleet migrate {_URL}", "handrail fleet migrate")
    ),
    "fleet run": Command(
        run_prompt,
        _add_run_arguments,
        (
            "handrail fleet run 'Fix the tests.' --git https://… --model anthropic:…",
            "handrail fleet run 'Go on.' --shared /srv/project --model ollama:… --json",
        ),
    ),
    "fleet status": Command(
        run_status, _add_status_arguments, ("handrail fleet status", "handrail fleet status --json | jq .status")
    ),
    "fleet approvals": Command(
        run_approvals, _add_list_arguments, ("handrail fleet approvals", "handrail fleet approvals --json")
    ),
    "fleet allow": Command(
        run_allow,
        _add_allow_arguments,
        ("handrail fleet allow e18", "handrail fleet allow e18 --for-session"),
        {FAILED: "there is no such request"},
    ),
    "fleet deny": Command(
        run_deny,
        _add_deny_arguments,
        ("handrail fleet deny e18", "handrail fleet deny e18 --reason 'use the staging host'"),
        {FAILED: "there is no such request"},
    ),
    "fleet reply": Command(
        run_reply,
        _add_reply_arguments,
        ("handrail fleet reply s_18 call-3 'the second one'", "handrail fleet reply s_18 call-3 yes"),
    ),
    "fleet log": Command(
        run_log,
        _add_log_arguments,
        ("handrail fleet log s_18 | jq -r .kind", "handrail fleet log s_18 --follow"),
        {FAILED: "there is no such session"},
    ),
    "fleet cancel": Command(
        run_cancel,
        _add_one_session_arguments,
        ("handrail fleet cancel s_18", f"handrail fleet cancel s_18 {_URL}"),
        {FAILED: "the session has no running turn"},
    ),
    "fleet resume": Command(
        run_resume,
        _add_one_session_arguments,
        ("handrail fleet resume s_18", f"handrail fleet resume s_18 {_URL}"),
    ),
    "fleet verify": Command(
        run_verify,
        _add_verify_arguments,
        ("handrail fleet verify", "handrail fleet verify s_18"),
        {FAILED: "an audit chain has a problem"},
    ),
    "fleet limits": Command(
        run_limits,
        _add_limits_arguments,
        ("handrail fleet limits team-a", "handrail fleet limits team-a --sessions 10 --tokens 5000000"),
    ),
}
