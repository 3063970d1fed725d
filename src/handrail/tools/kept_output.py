"""What a command printed that was to be handed over and ended before: as if its call had read it itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.process.ran import Printed
from handrail.process.spilling import Spill
from handrail.sandbox.limits import Limits

if TYPE_CHECKING:
    from handrail.process.sessions.log import ProcessLog

_HEAD = 1 << 16


def printed_of(log: "ProcessLog", limits: Limits, folder: str) -> Printed:
    """All of it, or its beginning and its end, with a file of the whole where that is kept."""
    total = log.size
    if total <= limits.output and not log.dropped:
        return Printed(head=b"".join(log.kept()), total=total)
    spill = None if log.dropped else Spill(folder, limits.spilled)
    head, tail = _both_ends(log.kept(), limits.output - _HEAD, spill)
    if spill is None:
        return Printed(head=head, tail=tail, total=total, lost=total - len(head) - len(tail))
    spill.close()
    if spill.size <= len(head):
        spill.discard()
        return Printed(head=head, tail=tail, total=total, lost=max(0, total - len(head) - len(tail)))
    lost = max(0, total - len(tail) - spill.size)
    return Printed(head=head, tail=tail, total=total, spilled=spill.path, spilled_bytes=spill.size, lost=lost)


def _both_ends(pieces: Iterator[bytes], most: int, spill: Spill | None) -> tuple[bytes, bytes]:
    head, tail = b"", bytearray()
    for piece in pieces:
        if spill is not None:
            spill.add(memoryview(piece))
        missing = _HEAD - len(head)
        head += piece[:missing]
        tail += piece[max(0, missing) :]
        del tail[: max(0, len(tail) - most)]
    return head, bytes(tail)
