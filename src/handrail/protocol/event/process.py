"""process: a background process changed state."""

from typing import Literal

from handrail.protocol.event.header import Event


class Process(Event, frozen=True, kw_only=True, tag="process"):
    """Started, ended or removed."""

    process: str
    """The id of the process session."""
    state: Literal["started", "ended", "removed"]
    command: str
    pid: int | None = None
    exit_code: int | None = None
    """Of a process that ended by itself."""
    ports: tuple[int, ...] = ()
    """TCP ports it listens on."""
