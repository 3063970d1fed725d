"""The database of a fleet that a command names, with its inbox."""

import atexit
import os
from argparse import ArgumentParser
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING

from handrail.cli.exits import FAILED, INFRASTRUCTURE, OK, CommandFailed
from handrail.cli.output import print_json, print_note
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import Answer, InboxQuestion, PermissionRequest, Reply
from handrail.protocol.wire import encode

if TYPE_CHECKING:
    from handrail.fleet.inbox import FleetInbox
    from handrail.fleet.sessions import FleetSessions

_VARIABLE = "HANDRAIL_DATABASE"


def add_database_option(parser: ArgumentParser) -> None:
    parser.add_argument("--database", metavar="URL", help=f"of a fleet: postgresql://… (the variable {_VARIABLE})")


def find_database(options: SimpleNamespace) -> str | None:
    """The URL of the option, else of the variable. An empty one counts as none."""
    if not hasattr(options, "database"):
        return None
    named: str | None = options.database
    return (os.environ.get(_VARIABLE) if named is None else named) or None


@contextmanager
def open_sessions(options: SimpleNamespace) -> Generator["FleetSessions"]:
    url = require_database(options)
    with needs_extra():
        from handrail.fleet.sessions import FleetSessions  # noqa: PLC0415  optional dependency
    with closing(FleetSessions(url)) as sessions:
        yield sessions


def require_database(options: SimpleNamespace) -> str:
    if (url := find_database(options)) is None:
        raise CommandFailed(f"no database is named: --database URL, or the variable {_VARIABLE}. Nothing was done.")
    return url


@contextmanager
def needs_extra(extra: str = "fleet") -> Generator[None]:
    try:
        yield
    except ModuleNotFoundError as error:
        problem = f"the extra {extra} is not installed ({error.name} is missing). Nothing was done."
        raise CommandFailed(problem, INFRASTRUCTURE, then=f"pip install 'handrail[{extra}]'") from None


# handrail approvals


def open_fleet_inbox(options: SimpleNamespace) -> "FleetInbox | None":
    """The inbox of a fleet, if a database is named."""
    url = find_database(options)
    return None if url is None else _open_inbox(url)


@cache
def _open_inbox(url: str) -> "FleetInbox":
    """Its connection stays open until the process ends, as the inbox is read several times."""
    with needs_extra():
        from handrail.fleet.inbox import FleetInbox  # noqa: PLC0415  optional dependency
        from handrail.fleet.sessions import FleetSessions  # noqa: PLC0415  as above
    sessions = FleetSessions(url)
    atexit.register(sessions.close)
    return FleetInbox(sessions)


def answer_in_fleet(options: SimpleNamespace, request: PermissionRequest, answer: Answer) -> int:
    """Answers a request of a fleet. With the last answer of a batch, a worker runs the batch."""
    with open_sessions(options) as sessions:
        try:
            session = sessions.answer(request.id, answer, shown=request)
        except UsageError as error:
            raise CommandFailed(f"{error}. Nothing was answered.", FAILED, then="handrail approvals") from None
    return _print_session(options, session)


def reply_in_fleet(options: SimpleNamespace, asked: InboxQuestion, reply: Reply | str | None) -> int:
    given = Reply(text=reply) if isinstance(reply, str) else reply
    with open_sessions(options) as sessions:
        try:
            sessions.reply(asked.session_id, asked.question.tool_call_id, given)
        except UsageError as error:
            raise CommandFailed(f"{error}. Nothing was replied.", FAILED, then="handrail approvals") from None
    return _print_session(options, asked.session_id)


def _print_session(options: SimpleNamespace, session: str) -> int:
    if options.json:
        print_json(encode({"schema": "handrail.approvals/1", "results": (), "waiting": (), "session": session}))
    else:
        print_note(f"answered; a worker continues session {session}")
    return OK
