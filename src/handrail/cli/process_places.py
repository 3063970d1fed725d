"""Finds process sessions for a person, whatever session started them, without opening any."""

import os
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from handrail.cli.context import open_state_folder, resolve_workspace
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_out, warn
from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.protocol.errors import ToolError
from handrail.protocol.events import Notice
from handrail.protocol.records import ProcessRecord
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.settings.model import Limits
from handrail.state import find_workspace, open_journal

if TYPE_CHECKING:
    from handrail.runtime.background import BackgroundWork

SCHEMA = "handrail.processes/1"


class ProcessEntry(NamedTuple):
    """A process session, and the folder of the session that it belongs to."""

    process: ProcessSession
    session_folder: str

    @property
    def session(self) -> str:
        """The session's id."""
        return os.path.basename(self.session_folder)

    @property
    def workspace(self) -> str | None:
        """The folder that it works in, where that was noted."""
        return find_workspace(self.session_folder)


def list_processes(options: Namespace, *, everywhere: bool = False, session: str | None = None) -> list[ProcessEntry]:
    """Those of this workspace, or of all; of one session, or of all."""
    state = open_state_folder()
    folders = state.sessions(None if everywhere else os.path.realpath(resolve_workspace(options)))
    wanted = [folder for folder in folders if session is None or os.path.basename(folder) == session]
    if session is not None and not wanted:
        raise CommandFailed(f"there is no session {session[:80]!r}. Look: handrail log --sessions", FAILED)
    return [
        ProcessEntry(process, folder)
        for folder in wanted
        if os.path.isdir(path := os.path.join(folder, "processes"))
        for process in ProcessSessions(path).list_sessions()
    ]


def resolve_process(options: Namespace) -> ProcessEntry:
    """The one that an id, or the beginning of one, names: of this workspace; where none is, of any."""
    found = _named(options.id, list_processes(options)) or _named(options.id, list_processes(options, everywhere=True))
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(place.process.id for place in found[:10])
        raise CommandFailed(f"{options.id[:80]!r} could be {ids}. Nothing was done. Say more of the id.")
    raise CommandFailed(
        f"there is no process session {options.id[:80]!r}. Nothing was done. Look: handrail processes --all", FAILED
    )


def _named(spelled: str, among: list[ProcessEntry]) -> list[ProcessEntry]:
    return [place for place in among if spelled and place.process.id.startswith(spelled)]


def apply(place: ProcessEntry, said: str, work: "Callable[[BackgroundWork], ProcessRecord]") -> ProcessRecord:
    """Does what a person asked for, and writes down that a person did. ToolError if it cannot be done."""
    from handrail.runtime.background import BackgroundWork  # noqa: PLC0415  looking needs none of it

    with open_journal(place.session_folder, "crash") as journal:
        record = work(BackgroundWork(place.session_folder, journal, Limits()))
        journal.append((Notice, {"text": f"A person {said} {place.process.id}."}))
    return record


def act(options: Namespace, place: ProcessEntry, said: str, work: "Callable[[BackgroundWork], ProcessRecord]") -> int:
    """Does it, and tells what came of it; the exit code."""
    try:
        record = apply(place, said, work)
    except ToolError as error:
        return print_refusal(options, error)
    if options.json:
        print_json(encode({"schema": SCHEMA, "process": record}))
    else:
        print_out(f"{said} {place.process.id}: {to_one_line(record.command)}\n")
    return OK


def describe_error(error: ToolError) -> dict[str, object]:
    """An error as JSON."""
    return {"code": error.code, "message": error.message, "details": error.details}


def print_refusal(options: Namespace, error: ToolError) -> int:
    """Tells why it was not done; the exit code."""
    if options.json:
        print_json(encode({"schema": SCHEMA, "error": describe_error(error)}))
    else:
        warn(f"{error.code}: {error.message}")
    return FAILED
