"""New ids: they sort by the time they were made and cannot be guessed."""

import os
import re
import time

_OWN = re.compile(r"call-([0-9a-f]{1,15})-[0-9a-f]{16}")


def make_call_id(seq: int) -> str:
    """An id for a call that comes in when the journal is at a number: it lies behind it, and needs no index."""
    return f"call-{seq:x}-{os.urandom(8).hex()}"


def parse_call_position(call_id: str) -> int | None:
    """The number that a call of our own making lies behind; None when the id was made elsewhere."""
    found = _OWN.fullmatch(call_id)
    return int(found[1], 16) if found else None


def make_id(kind: str) -> str:
    """An id such as `ask_18…`."""
    return f"{kind}_{time.time_ns():016x}{os.urandom(8).hex()}"
