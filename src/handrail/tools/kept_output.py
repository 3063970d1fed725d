"""What a command printed that was to be handed over and ended before: as if its call had read it itself."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.process.ran import CapturedOutput
from handrail.process.spilling import SpillFile
from handrail.sandbox.limits import ResourceLimits

if TYPE_CHECKING:
    from handrail.process.sessions.log import ProcessLog

_MAX_HEAD_BYTES = 1 << 16


def read_captured_output(log: "ProcessLog", limits: ResourceLimits, folder: str) -> CapturedOutput:
    """All of it, or its beginning and its end, with a file of the whole where that is kept."""
    total = log.size
    if total <= limits.output and not log.dropped:
        return CapturedOutput(head=b"".join(log.kept()), total=total)
    spill = None if log.dropped else SpillFile(folder, limits.spilled)
    head, tail = _both_ends(log.kept(), limits.output - _MAX_HEAD_BYTES, spill)
    if spill is None:
        return CapturedOutput(head=head, tail=tail, total=total, lost=total - len(head) - len(tail))
    spill.close()
    if spill.size <= len(head):
        spill.discard()
        return CapturedOutput(head=head, tail=tail, total=total, lost=max(0, total - len(head) - len(tail)))
    lost = max(0, total - len(tail) - spill.size)
    return CapturedOutput(head=head, tail=tail, total=total, spilled=spill.path, spilled_bytes=spill.size, lost=lost)


def _both_ends(pieces: Iterator[bytes], most: int, spill: SpillFile | None) -> tuple[bytes, bytes]:
    head, tail = b"", bytearray()
    for piece in pieces:
        if spill is not None:
            spill.add(memoryview(piece))
        missing = _MAX_HEAD_BYTES - len(head)
        head += piece[:missing]
        tail += piece[max(0, missing) :]
        del tail[: max(0, len(tail) - most)]
    return head, bytes(tail)
