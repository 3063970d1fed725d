"""How long the state folder keeps sessions, and what is removed or archived with them."""

import fcntl
import os
import shutil
import time
from collections import Counter
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Literal

from handrail.protocol.error import StoreError
from handrail.store.archive import open_journal
from handrail.store.audit import AuditChain
from handrail.store.blobs import Blobs
from handrail.store.folder import StateFolder, open_private, resolve_state_folder
from handrail.store.locked_folder import is_locked
from handrail.store.read_only import read_stamp
from handrail.store.runner import is_in_use

Use = Literal["running", "background", "waiting", "unreadable", "idle"]
_DAY = 86_400
_YOUNG_SECONDS = 60
"""Seconds in which a stored output may be of a call that is not written down yet."""
_AWAY = ".removed-"
_WAITS = "SELECT 1 FROM call WHERE state IN ('parked', 'ready', 'claimed') LIMIT 1"
_FINISHED = "SELECT count(*) FROM event WHERE kind IN ('tool_call.end', 'tool_call.error')"


def read_session_use(folder: str) -> Use:
    """What keeps a session from being removed."""
    processes = os.path.join(folder, "processes")
    if is_in_use(folder):
        return "running"
    if os.path.isdir(processes) and any(is_locked(os.path.join(processes, name)) for name in os.listdir(processes)):
        return "background"
    try:
        with open_journal(folder) as journal:
            return "waiting" if journal.database.row(_WAITS) else "idle"
    except StoreError:
        return "unreadable"


def read_last_use(folder: str) -> float:
    """When something was last written down in a session, in seconds; 0 where nothing ever was."""
    stamp = read_stamp(os.path.join(folder, "journal.db"))
    return max((changed for size, changed in stamp if size), default=0) / 1e9


def count_bytes(path: str) -> int:
    """How much a file takes, or all that is in a folder."""
    total = os.path.getsize(path) if os.path.isfile(path) else 0
    for folder, _, names in os.walk(path):
        with suppress(OSError):  # it is gone meanwhile
            total += sum(os.lstat(os.path.join(folder, name)).st_size for name in names)
    return total


def remove_session(folder: str, uses: tuple[Use, ...]) -> Use:
    """Removes a session if its use is one of these; its use.

    The folder is renamed first: if this process is killed, the next sweep removes the rest, and a process that opened
    the session just before is detected. The audit still names its calls, so their number is recorded.
    """
    if (use := read_session_use(folder)) in uses:
        calls = 1 << 62
        with suppress(StoreError), open_journal(folder) as journal:
            calls = journal.database.rows(_FINISHED)[0][0]
        with open(_notes(resolve_state_folder(folder)), "a", encoding="ascii", opener=open_private) as notes:
            notes.write(f"{os.path.basename(folder)} {calls}\n")
        away = os.path.join(os.path.dirname(folder), f"{_AWAY}{os.urandom(8).hex()}")
        os.rename(folder, away)
        if is_in_use(away):
            os.rename(away, folder)
            return "running"
        shutil.rmtree(away, ignore_errors=True)
    return use


def count_removed_calls(state: StateFolder) -> Counter[str]:
    """How many calls of removed sessions the audit may have, by the ids of the sessions."""
    found: Counter[str] = Counter()
    with suppress(FileNotFoundError), open(_notes(state), encoding="ascii", errors="replace") as notes:
        for session, _, calls in (line.rstrip().partition(" ") for line in notes):
            found[session] += int(calls) if calls.isdigit() else 0
    return found


def remove_outputs(state: StateFolder) -> None:
    """Removes stored outputs that no session names. A session that cannot be read may name any."""
    used: set[str] = set()
    with suppress(StoreError):
        for folder in state.sessions():
            with open_journal(folder) as journal:
                rows = journal.database.rows("SELECT blob FROM output")
                used |= {str(row[0]).rpartition(":")[2].partition(".")[0] for row in rows}
        Blobs(state.blobs()).sweep(used, _YOUNG_SECONDS)


def sweep(state: StateFolder, days: int) -> None:
    """Removes sessions that were not used for so long, and archives older audit records. A sweep counts at most two
    days since the last one, so a clock that jumps ahead removes nothing. What fails is left to the next sweep."""
    with suppress(OSError, StoreError), open(state.sweep_marker, "rb") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX | fcntl.LOCK_NB)  # of two who come at once, one sweeps
        swept = os.fstat(marker.fileno()).st_mtime
        if not state.is_swept():
            os.utime(state.sweep_marker)
            _sweep(state, min(time.time(), swept + 2 * _DAY) - days * _DAY)


def _sweep(state: StateFolder, before: float) -> None:
    old = [folder for folder in state.sessions() if read_last_use(folder) < before]
    removed = [folder for folder in old if remove_session(folder, ("idle",)) == "idle"]
    left = [os.path.join(home, name) for home in state.homes() for name in os.listdir(home) if name.startswith(_AWAY)]
    for folder in left:
        shutil.rmtree(folder, ignore_errors=True)
    if removed or left:
        remove_outputs(state)
    with closing(AuditChain(state.audit)) as chain:
        chain.archive(datetime.fromtimestamp(before, UTC))


def _notes(state: StateFolder) -> str:
    return os.path.join(state.path, "removed-sessions")
