"""Tells once of what became of a process session, whichever runtime is there to tell it, and whenever one is killed.

A file in the folder of the process session says what was told. It is locked while somebody tells. One that was locked
and says nothing is of somebody who was killed in between: then the journal is asked whether it was told.
"""

import contextlib
import fcntl
import os
import time
from typing import TYPE_CHECKING, Any, Literal

from handrail.protocol.errors import ToolError
from handrail.protocol.events import Network, Process
from handrail.protocol.records import ProcessRecord
from handrail.store.journal import SessionJournal

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession
    from handrail.sandbox.proxy.attempt import Attempt

State = Literal["started", "ended", "removed"]
_NAME = "told-"
_TOLD = b"told\n"
_MAX_BATCH_ATTEMPTS = 1_000
"""Attempts to reach a host that are written down together."""
_LOCK_SECONDS = 1.0
"""How long somebody else may take to tell. Who listens may ask for the same process, in the midst of being told."""


def is_emitted(process: "ProcessSession", state: State) -> bool:
    """Whether there is nothing left to tell; one that is gone has somebody who told."""
    try:
        with open(_path(process, state), "rb") as file:
            return file.read() == _TOLD
    except FileNotFoundError:
        return not os.path.isdir(process.folder)


def emit_once(process: "ProcessSession", state: State, journal: SessionJournal) -> None:
    """Writes the event down, unless it is, or somebody is just about to."""
    if is_emitted(process, state):
        return
    with contextlib.suppress(FileNotFoundError, ToolError):  # removed meanwhile, by somebody who told
        new, descriptor = _opened(_path(process, state))
        try:
            if (
                not _locked(descriptor)
                or os.pread(descriptor, len(_TOLD), 0) == _TOLD
                or not os.path.isdir(process.folder)
            ):
                return
            if new or not _is_in(journal, process.id, state):
                journal.append((Process, _fields(process.record(), state)))
            os.pwrite(descriptor, _TOLD, 0)
        finally:
            os.close(descriptor)


def emit_attempts(process: "ProcessSession", journal: SessionJournal) -> None:
    """Writes down what it tried to reach since this was last done; whoever is killed in between may tell it again."""
    with contextlib.suppress(FileNotFoundError):
        _, descriptor = _opened(os.path.join(process.folder, f"{_NAME}tried"))
        try:
            if not _locked(descriptor):
                return
            before = int(os.pread(descriptor, 20, 0) or 0)
            tried = [(Network, _tried_fields(process.id, one)) for one in process.attempts(before)]
            for start in range(0, len(tried), _MAX_BATCH_ATTEMPTS):
                told = tried[start : start + _MAX_BATCH_ATTEMPTS]
                journal.append(*told)
                os.pwrite(descriptor, f"{before + start + len(told):020}".encode(), 0)
        finally:
            os.close(descriptor)


def _tried_fields(process: str, attempt: "Attempt") -> dict[str, Any]:
    reason = attempt.reason or "it was open to the command"
    return {
        "host": attempt.host,
        "port": attempt.port,
        "allowed": attempt.allowed,
        "reason": reason,
        "process": process,
    }


def _path(process: "ProcessSession", state: State) -> str:
    return os.path.join(process.folder, f"{_NAME}{state}")


def _opened(path: str) -> tuple[bool, int]:
    """Whether it is new, and the file."""
    try:
        return True, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False, os.open(path, os.O_RDWR | os.O_CLOEXEC)


def _locked(descriptor: int) -> bool:
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        else:
            return True


def _is_in(journal: SessionJournal, process: str, state: State) -> bool:
    return any(
        isinstance(event, Process) and event.process == process and event.state == state for event in journal.events()
    )


def _fields(record: ProcessRecord, state: State) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "process": record.id,
        "state": state,
        "command": record.command,
        "cwd": record.cwd,
        "pid": record.pid,
        "ports": record.ports,
    }
    if state == "started":
        return fields
    reason = "lost" if record.state == "lost" else record.reason
    return fields | {
        "exit_code": record.exit_code,
        "signal": record.signal,
        "reason": reason,
        "size": record.size,
    }
