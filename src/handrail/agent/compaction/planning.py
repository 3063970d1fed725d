"""Which messages stay as they are: the newest, from a place where a talk may begin."""

from collections.abc import Sequence

import msgspec

from handrail.agent.compaction.measuring import tokens_of
from handrail.agent.compaction.sending import shortened
from handrail.protocol.message import ResultsMessage
from handrail.store.messages import Numbered

_CUTS = (None, 8_000, 2_000, 500)
"""How long a result may be, tried one after the other where not even the last exchange has room."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What goes and what stays."""

    dropped: tuple[Numbered, ...]
    kept: tuple[Numbered, ...]
    cut: int | None = None
    """How many characters each result has that stays; None where they stay as they are."""


def plan(shown: Sequence[Numbered], room: int) -> Plan:
    """Keeps as many of the newest messages as have room. Results stay with the calls that they are of: a summary, which
    speaks in the person's place, may stand before anything but results."""
    for cut in _CUTS:
        first = _first_kept(shown, room, cut)
        if first < len(shown):
            return Plan(dropped=tuple(shown[:first]), kept=tuple(shown[first:]), cut=cut)
    return Plan(dropped=tuple(shown), kept=())


def _first_kept(shown: Sequence[Numbered], room: int, cut: int | None) -> int:
    first = len(shown)
    for place in range(len(shown) - 1, -1, -1):
        message = shown[place].message
        room -= tokens_of(message if cut is None else shortened(message, cut))
        if room < 0:
            break
        if not isinstance(message, ResultsMessage):
            first = place
    return first
