"""What is known of a process session from its folder, without asking its keeper."""

import os
from typing import NamedTuple, TypeVar

import msgspec

from handrail.process.keeper.files import BOOT, END, RECORD
from handrail.protocol.process import ProcessState
from handrail.protocol.reading import from_json
from handrail.store.locked_folder import is_locked

_Kind = TypeVar("_Kind")


class Named(NamedTuple):
    """A process so that it cannot be taken for another: by its number and since when it runs."""

    number: int
    started: int


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """What a keeper writes down when it begins."""

    v: int
    id: str
    command: str
    cwd: str
    session_id: str
    started: float
    boot: str
    keeper: Named
    program: Named
    first: Named
    own_processes: bool
    proxy: str | None = None


class End(msgspec.Struct, frozen=True, kw_only=True):
    """And when it ends."""

    v: int
    ended: float
    exit_code: int | None = None
    reason: str | None = None
    size: int = 0


def read_record(folder: str) -> Record | None:
    """None where there is none: it is not started yet, or never was."""
    return _read(os.path.join(folder, RECORD), Record)


def read_end(folder: str) -> End | None:
    """None where it runs, or its keeper was killed."""
    return _read(os.path.join(folder, END), End)


def state_of(folder: str) -> ProcessState:
    """A keeper holds the lock of its folder as long as it lives: no number can be another's, no clock wrong."""
    if os.path.exists(os.path.join(folder, END)):
        return "ended"
    if is_kept(folder):
        return "running"
    return "ended" if os.path.exists(os.path.join(folder, END)) else "lost"  # it may have ended meanwhile


def is_kept(folder: str) -> bool:
    """Whether its keeper, or who is just starting one, lives."""
    return is_locked(folder)


def this_boot() -> str:
    """What no other start of the machine has: numbers of processes mean something only together with it."""
    with open(BOOT, encoding="ascii") as file:
        return file.read().strip()


def _read(path: str, kind: type[_Kind]) -> _Kind | None:
    try:
        with open(path, "rb") as file:
            return from_json(file.read(), kind)
    except (OSError, msgspec.DecodeError):
        return None
