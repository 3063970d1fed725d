"""New ids: they sort by the time they were made and cannot be guessed."""

import os
import time

_DIGITS = frozenset("0123456789abcdef")


def new_call_id(seq: int) -> str:
    """An id for a call that comes in when the journal is at a number: it lies behind it, and needs no index."""
    return f"call-{seq:x}-{os.urandom(8).hex()}"


def place_of_call(call_id: str) -> int | None:
    """The number that a call of our own making lies behind; None when the id was made elsewhere."""
    kind, _, rest = call_id.partition("-")
    digits = rest.partition("-")[0]
    return int(digits, 16) if kind == "call" and 0 < len(digits) < 16 and not set(digits) - _DIGITS else None


def new_id(kind: str) -> str:
    """An id such as `ask_18…`."""
    return f"{kind}_{time.time_ns():016x}{os.urandom(8).hex()}"
