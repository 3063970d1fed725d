"""Tells once of what a process session tried to reach, whichever runtime is there to tell it.

A file in the folder of the process session says how many were told, and by whom; it is locked while somebody tells.
Where that is somebody else, who may have been killed in between, the journal is asked how many there are.
"""

import contextlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.protocol.event import Network
from handrail.runtime.telling import locked
from handrail.store.journal import Draft, Journal

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession

_TOLD = "told-attempts"
_ROOM = 128
_AT_ONCE = 500
"""Events in one transaction."""
_OPENED = "it was opened to the command when that was started"


class _Told(NamedTuple):
    """How much of what was written down was told, and by whom."""

    number: int = 0
    size: int = 0
    """Bytes of the file that is told: who finds it no longer need not read it."""
    runner: str = ""


def tell_attempts(process: "ProcessSession", journal: Journal) -> None:
    """Writes an event for every attempt that has none yet."""
    size = process.attempts_size
    if not size:
        return
    with contextlib.suppress(FileNotFoundError):  # removed meanwhile, by somebody who told
        descriptor = os.open(os.path.join(process.folder, _TOLD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if locked(descriptor):
                _tell_new(process, journal, descriptor, size)
        finally:
            os.close(descriptor)


def _tell_new(process: "ProcessSession", journal: Journal, descriptor: int, size: int) -> None:
    told = _read(descriptor)
    if told.runner == journal.runner and told.size == size:
        return
    number = told.number if told.runner == journal.runner else max(told.number, _in_journal(process, journal))
    while drafts := [_draft(process, attempt) for attempt in process.attempts(number)[:_AT_ONCE]]:
        journal.append(*drafts)
        number += len(drafts)
    os.pwrite(descriptor, f"{number} {size} {journal.runner}".encode().ljust(_ROOM), 0)


def _read(descriptor: int) -> _Told:
    words = os.pread(descriptor, _ROOM, 0).decode().split()
    return _Told(int(words[0]), int(words[1]), words[2]) if words else _Told()


def _in_journal(process: "ProcessSession", journal: Journal) -> int:
    return sum(isinstance(event, Network) and event.process == process.id for event in journal.events())


def _draft(process: "ProcessSession", attempt: tuple[str, int, bool, str]) -> Draft:
    host, port, allowed, reason = attempt
    fields: dict[str, Any] = {"host": host, "port": port, "allowed": allowed, "reason": reason or _OPENED}
    return Network, {**fields, "process": process.id}
