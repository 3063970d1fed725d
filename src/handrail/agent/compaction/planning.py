"""Which messages stay as they are: the newest, from a message that a transcript may begin with."""

from collections.abc import Sequence

import msgspec

from handrail.agent.compaction.measuring import estimate_message_tokens
from handrail.agent.compaction.sending import truncate_results
from handrail.protocol.messages import ResultsMessage
from handrail.store.transcript import NumberedMessage

_CUTS = (None, 8_000, 2_000, 500)
"""How long a result may be, tried one after the other where not even the last exchange has room."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What goes and what stays."""

    dropped: tuple[NumberedMessage, ...]
    kept: tuple[NumberedMessage, ...]
    cut: int | None = None
    """How many characters each result has that stays; None where they stay as they are."""


def plan_compaction(shown: Sequence[NumberedMessage], room: int) -> CompactionPlan:
    """Keeps as many of the newest messages as have room. Results stay with the calls that they are of: a summary, which
    speaks in the person's place, may stand before anything but results."""
    for cut in _CUTS:
        first = _first_kept(shown, room, cut)
        if first < len(shown):
            return CompactionPlan(dropped=tuple(shown[:first]), kept=tuple(shown[first:]), cut=cut)
    return CompactionPlan(dropped=tuple(shown), kept=())


def _first_kept(shown: Sequence[NumberedMessage], room: int, cut: int | None) -> int:
    first = len(shown)
    for place in range(len(shown) - 1, -1, -1):
        message = shown[place].message
        room -= estimate_message_tokens(message if cut is None else truncate_results(message, cut))
        if room < 0:
            break
        if not isinstance(message, ResultsMessage):
            first = place
    return first
