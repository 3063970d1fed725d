"""What is known of a process session from its folder, without asking its keeper."""

import os
from typing import NamedTuple, TypeVar

import msgspec

from handrail.process.keeper.files import BOOT, END, RECORD
from handrail.protocol.records import ProcessState
from handrail.protocol.wire import decode_json
from handrail.store.state_dir import is_locked

_Kind = TypeVar("_Kind")


class ProcessIdentity(NamedTuple):
    """A process so that it cannot be taken for another: by its number and since when it runs."""

    number: int
    started: int


class KeeperRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper writes down when it begins."""

    v: int
    id: str
    command: str
    cwd: str
    session_id: str
    started: float
    boot: str
    keeper: ProcessIdentity
    program: ProcessIdentity
    first: ProcessIdentity
    own_processes: bool
    proxy: str | None = None


class ExitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """And when it ends."""

    v: int
    ended: float
    exit_code: int | None = None
    reason: str | None = None
    size: int = 0


def read_record(folder: str) -> KeeperRecord | None:
    """None where there is none: it is not started yet, or never was."""
    return _read_record_file(os.path.join(folder, RECORD), KeeperRecord)


def read_end(folder: str) -> ExitRecord | None:
    """None where it runs, or its keeper was killed."""
    return _read_record_file(os.path.join(folder, END), ExitRecord)


def read_state(folder: str) -> ProcessState:
    """A keeper holds the lock of its folder as long as it lives: no number can be another's, no clock wrong."""
    if os.path.exists(os.path.join(folder, END)):
        return "ended"
    if has_keeper(folder):
        return "running"
    return "ended" if os.path.exists(os.path.join(folder, END)) else "lost"  # it may have ended meanwhile


def has_keeper(folder: str) -> bool:
    """Whether its keeper, or who is just starting one, lives."""
    return is_locked(folder)


def read_boot_id() -> str:
    """What no other start of the machine has: numbers of processes mean something only together with it."""
    with open(BOOT, encoding="ascii") as file:
        return file.read().strip()


def _read_record_file(path: str, kind: type[_Kind]) -> _Kind | None:
    try:
        with open(path, "rb") as file:
            return decode_json(file.read(), kind)
    except (OSError, msgspec.DecodeError):
        return None
