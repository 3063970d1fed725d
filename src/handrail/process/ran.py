"""How a command went."""

from typing import Literal

import msgspec

Ending = Literal["exit", "timeout", "cancelled", "memory", "processes", "disk", "failed"]
"""`exit`: by itself, or by a signal that was none of ours. `failed`: it never ran: the sandbox could not be made."""


class CapturedOutput(msgspec.Struct, frozen=True, kw_only=True):
    """What came out of one pipe: all of it in `head`, or its beginning and its end."""

    head: bytes
    tail: bytes = b""
    """The end, where the whole is more than memory holds; nothing is in both."""
    total: int
    """How many bytes there were in all."""
    spilled: str | None = None
    """A file with the first `spilled_bytes` of it; who has this removes it or puts it away."""
    spilled_bytes: int = 0
    lost: int = 0
    """Bytes that are in none of these."""


class CommandResult(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is over, with everything it had started."""

    ending: Ending
    exit_code: int | None
    """As a shell tells it: 128 and more for a signal. None where it was ended, or never ran."""
    seconds: float
    output: CapturedOutput
    """Both streams in their order; where there are two pipes, stdout."""
    errors: CapturedOutput | None = None
    """stderr, where it has a pipe of its own."""
    limits: tuple[str, ...] = ()
    """The limits that fired: time, output, memory, processes, disk, file size."""
    warnings: tuple[str, ...] = ()
