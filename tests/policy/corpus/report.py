"""What a failing test may say: of the held-out half never a text."""

import os
from collections import Counter
from collections.abc import Sequence

from .records import Attack, Everyday, Half

_SHOWN = os.environ.get("HANDRAIL_SHOW_HELD_OUT", "") not in {"", "0"}


def listed(half: Half, records: Sequence[Attack | Everyday]) -> str:
    """The records of the half one looks at; of the other half how many there are of which program."""
    if half == "held_out" and not _SHOWN:
        counted = Counter(_program(record) for record in records)
        return f"{len(records)} held out (HANDRAIL_SHOW_HELD_OUT=1 shows them): {dict(counted.most_common())}"
    return "\n".join([f"{len(records)}:", *(repr(record.text) for record in records)])


def _program(record: Attack | Everyday) -> str:
    if isinstance(record, Attack):
        return f"{record.program} {record.effect}"
    return " ".join(record.text.split()[: 2 if record.text.startswith("git ") else 1])
