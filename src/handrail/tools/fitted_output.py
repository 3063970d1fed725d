"""What a command printed, cut to what a result has room for."""

import contextlib
import os

import msgspec

from handrail.process.cleaning import clean_output
from handrail.process.ran import CapturedOutput, CommandResult
from handrail.tools.contract import Context, OffloadedText
from handrail.tools.preview import build_output_reference, truncate_middle, truncate_with_reference

_BYTES_A_CHARACTER = 4
_ENDING_ROOM_CHARS = 300
"""Characters of the result that say how it ended."""


class FittedOutput(msgspec.Struct, frozen=True):
    """What was printed, in what a result has room for."""

    text: str
    shown: str
    kept: OffloadedText | None
    """All of it, where that is more than is shown."""
    raw: bytes | None
    """The very bytes, where the text is not the same."""


def fit_output(context: Context, ran: CommandResult, below: int) -> FittedOutput:
    """What there is room for; `below`: characters of the result that come after it."""
    printed = ran.output if ran.errors is None else _joined(ran.output, ran.errors)
    budget = max(1_000, context.limits.characters - _ENDING_ROOM_CHARS - below)
    reference = build_output_reference(context.tool_call_id) if context.limits.offloads else ""
    if printed.tail or printed.lost or printed.spilled:
        return _in_part(printed, budget, reference)
    text = clean_output(printed.head)
    raw = None if not reference or text.encode() == printed.head else printed.head
    if len(text) <= budget:
        return FittedOutput(text, text, None, raw)
    if not reference:
        return FittedOutput(text, truncate_middle(text, budget, "\n… {} characters are not shown …\n"), None, None)
    return FittedOutput(
        text, truncate_with_reference(text, budget, reference), OffloadedText(text=text, characters=len(text)), raw
    )


def _in_part(printed: CapturedOutput, budget: int, reference: str) -> FittedOutput:
    """The beginning and the end of what memory did not hold; the file has the rest, or most of it."""
    room = budget * _BYTES_A_CHARACTER  # no more than that can be shown, and cleaning megabytes takes its time
    head, tail = clean_output(printed.head[:room]), clean_output(_from_character(printed.tail[-room:]))
    kept = _kept(printed) if reference else None
    if kept is None and printed.spilled is not None:
        with contextlib.suppress(OSError):
            os.unlink(printed.spilled)
    all_of_it = "all of it" if not printed.lost else "most of it"
    where = f"; read {reference} for {all_of_it}" if kept is not None else ""
    note = f"\n… only the beginning and the end of {printed.total:,} bytes are shown{where} …\n"
    whole = f"{head}{note}{tail}"
    return FittedOutput(
        whole, whole if len(whole) <= budget else truncate_middle(head + tail, budget, note), kept, None
    )


def _kept(printed: CapturedOutput) -> OffloadedText | None:
    if printed.spilled is None:
        return None
    behind = printed.tail[max(0, len(printed.tail) - (printed.total - printed.spilled_bytes)) :]
    if printed.total <= printed.spilled_bytes:
        behind = b""
    elif printed.lost:
        behind = f"\n… {printed.lost:,} bytes were not kept …\n".encode() + behind
    return OffloadedText(file=printed.spilled, tail=behind)


def _from_character(data: bytes) -> bytes:
    """Without the rest of a character that the cut went through."""
    cut = next((n for n in range(min(4, len(data))) if data[n] & 0xC0 != 0x80), 0)
    return data[cut:]


def _joined(output: CapturedOutput, errors: CapturedOutput) -> CapturedOutput:
    """Two streams as one, where each is taken in apart: first the one, then the other."""
    streams = (output, errors)
    for one in streams:
        if one.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(one.spilled)
    head = b"".join(part for one in streams for part in (one.head, one.tail))
    total = output.total + errors.total
    return CapturedOutput(head=head, total=total, lost=total - len(head))
