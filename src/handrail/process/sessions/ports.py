"""The TCP ports that a process session listens on, as the kernel tells."""

import contextlib
import os
from collections.abc import Iterable, Iterator

from handrail.kernel.procfs import ProcessStat, find_process, list_descendants, read_entry
from handrail.process.sessions.known import KeeperRecord, ProcessIdentity
from handrail.sandbox.proxy.inside import PORT

_LISTENS = b"0A"
_COUNTS = {"tcp": "sockstat", "tcp6": "sockstat6"}
_TABLES = tuple(_COUNTS)


def list_listening_ports(known: KeeperRecord) -> tuple[int, ...]:
    """Sorted, each once; none where it cannot be seen from here."""
    if not is_alive(known.program) or not is_alive(known.first):
        return ()
    if known.own_processes and has_own_network(known.first.number):
        ours = {PORT} if known.proxy is not None else set[int]()
        tables = [table for table in _TABLES if _has_sockets(known.first.number, table)]
        return tuple(sorted({port for port, _ in _listeners(known.first.number, tables)} - ours))
    tree = [process for process in list_descendants(known.program.number) if not process.dead]
    sockets = {inode for process in tree for inode in _sockets_of(process)}
    if not sockets:
        return ()
    return tuple(sorted({port for port, inode in _listeners(known.first.number, _TABLES) if inode in sockets}))


def is_alive(named: ProcessIdentity) -> bool:
    """Whether that very process still runs."""
    found = find_process(named.number) if named.number else None
    return found is not None and found.started == named.started and not found.dead


def has_own_network(process: int) -> bool:
    """Whether its network is another than ours."""
    try:
        return os.readlink(f"/proc/{process}/ns/net") != os.readlink("/proc/self/ns/net")
    except OSError:
        return False


def _has_sockets(process: int, table: str) -> bool:
    """Whether it is worth looking: reading a table takes 10 ms, as the kernel goes through those of all networks."""
    counts = read_entry(f"/proc/{process}/net/{_COUNTS[table]}").partition(table.upper().encode() + b": inuse ")[2]
    return not counts or counts.split()[0] != b"0"


def _listeners(process: int, tables: Iterable[str]) -> Iterator[tuple[int, bytes]]:
    """Every port that somebody listens on in the process's network, and the number of the socket."""
    for name in tables:
        with contextlib.suppress(OSError), open(f"/proc/{process}/net/{name}", "rb") as lines:
            for fields in map(bytes.split, lines):
                if len(fields) > 9 and fields[3] == _LISTENS:
                    yield int(fields[1].rpartition(b":")[2], 16), fields[9]


def _sockets_of(process: ProcessStat) -> Iterator[bytes]:
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{process.number}/fd"):
            with contextlib.suppress(OSError):
                leads_to = os.readlink(f"/proc/{process.number}/fd/{name}")
                if leads_to.startswith("socket:["):
                    yield leads_to[8:-1].encode()
