"""Tells once of what a process session tried to reach, whichever runtime is there to tell it.

A file in the folder of the process session says how many were told, and by whom; it is locked while somebody tells.
Where that is somebody else, who may have been killed in between, the journal is asked how many there are.
"""

import fcntl
import os
from typing import TYPE_CHECKING, Any

from handrail.protocol.event import Network, Notice
from handrail.store.journal import Draft, Journal

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession

_TOLD = "told-attempts"
_OPENED = "it was opened to the command when that was started"


def tell_attempts(process: "ProcessSession", journal: Journal) -> None:
    """Writes an event for every attempt that has none yet."""
    found = process.attempts()
    if not found.each:
        return
    descriptor = os.open(os.path.join(process.folder, _TOLD), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        told = _told(descriptor, process, journal)
        drafts = [_draft(process, one) for one in found.each[told:]]
        total = len(found.each)
        if found.more and told <= total:
            text = f"{found.more:,} attempts of {process.id} to reach a host, after the first {total:,}, are no events."
            drafts.append((Notice, {"code": "LIMIT_EXCEEDED", "text": text}))
            total += 1
        if drafts:
            journal.append(*drafts)
            os.pwrite(descriptor, f"{total} {journal.runner}".encode().ljust(128), 0)
    finally:
        os.close(descriptor)


def _told(descriptor: int, process: "ProcessSession", journal: Journal) -> int:
    count, _, runner = os.pread(descriptor, 128, 0).decode().strip().partition(" ")
    known = int(count or 0)
    return known if runner == journal.runner else max(known, _in_journal(process, journal))


def _in_journal(process: "ProcessSession", journal: Journal) -> int:
    return sum(isinstance(event, Network) and event.process == process.id for event in journal.events())


def _draft(process: "ProcessSession", attempt: tuple[str, int, bool, str]) -> Draft:
    host, port, allowed, reason = attempt
    fields: dict[str, Any] = {"host": host, "port": port, "allowed": allowed, "reason": reason or _OPENED}
    return Network, {**fields, "process": process.id}
