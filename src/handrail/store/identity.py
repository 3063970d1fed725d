"""New ids: they sort by the time they were made and cannot be guessed."""

import os
import time


def new_id(kind: str) -> str:
    """An id such as `call_18…`."""
    return f"{kind}_{time.time_ns():016x}{os.urandom(8).hex()}"
