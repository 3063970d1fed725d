"""process: a process session began, ended or was forgotten."""

from typing import Literal

from handrail.protocol.event.header import Event


class Process(Event, frozen=True, kw_only=True, tag="process"):
    """Started, ended or removed; each is told once, whoever is there to tell it."""

    process: str
    """The id of the process session."""
    state: Literal["started", "ended", "removed"]
    command: str
    cwd: str | None = None
    """The folder that it was started in, as results name folders."""
    pid: int | None = None
    exit_code: int | None = None
    """Of a process that ended by itself."""
    signal: str | None = None
    """The signal that ended it, as far as the exit code tells."""
    reason: str | None = None
    """Why it ended, where it did not do so by itself: `stopped`, `idle`, `session`, `memory`, `processes`, `lost`."""
    ports: tuple[int, ...] = ()
    """TCP ports it listens on."""
    size: int | None = None
    """Bytes that it had printed."""
