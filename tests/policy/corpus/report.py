"""What a failing test may say: of the held-out half never a text."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeVar

import pytest

from .records import Attack, Everyday, Half

Record = TypeVar("Record", Attack, Everyday)

_SHOWN = os.environ.get("HANDRAIL_SHOW_HELD_OUT", "") not in {"", "0"}


def chosen(half: Half, records: Sequence[Record], is_one: Callable[[Record], bool]) -> list[Record]:
    """The records that are one. What goes wrong on the way shows no text of the held-out half either."""
    try:
        return [record for record in records if is_one(record)]
    except Exception as error:
        if half == "seen" or _SHOWN:
            raise
        return fail(half, f"{type(error).__name__} on the way (HANDRAIL_SHOW_HELD_OUT=1 shows where)", [])


def fail(half: Half, what: str, records: Sequence[Attack | Everyday]) -> NoReturn:
    """Fails without pytest's own account, which would quote."""
    pytest.fail(f"{what}: {listed(half, records)}", pytrace=False)


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
