"""The TCP ports that a process session listens on, as the kernel tells."""

import contextlib
import os
from collections.abc import Iterator

from handrail.kernel.process_table import Process, descendants, process_at
from handrail.process.sessions.known import Named, Record

_LISTENS = b"0A"


def listening(known: Record) -> tuple[int, ...]:
    """Sorted, each once; none where it cannot be seen from here."""
    if not is_there(known.program) or not is_there(known.first):
        return ()
    if known.own_processes and _has_own_network(known.first.number):
        return _sorted(port for port, _ in _listeners(known.first.number))
    tree = [process for process in descendants(known.program.number) if not process.dead]
    sockets = {inode for process in tree for inode in _sockets_of(process)}
    return _sorted(port for port, inode in _listeners(known.first.number) if inode in sockets)


def is_there(named: Named) -> bool:
    """Whether that very process still runs."""
    found = process_at(named.number) if named.number else None
    return found is not None and found.started == named.started and not found.dead


def _sorted(ports: Iterator[int]) -> tuple[int, ...]:
    return tuple(sorted(set(ports)))


def _has_own_network(process: int) -> bool:
    try:
        return os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _listeners(process: int) -> Iterator[tuple[int, bytes]]:
    """Every port that somebody listens on in the process's network, and the number of the socket."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{process}/net/{name}", "rb") as table:
            for fields in map(bytes.split, table):
                if len(fields) > 9 and fields[3] == _LISTENS:
                    yield int(fields[1].rpartition(b":")[2], 16), fields[9]


def _sockets_of(process: Process) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process.number}/fd"):
            with contextlib.suppress(OSError):
                leads_to = os.readlink(f"/proc/{process.number}/fd/{name}")
                if leads_to.startswith("socket:["):
                    yield leads_to[8:-1].encode()
