"""Tells the person at the desktop that a call waits, where their client cannot."""

import os
import threading
import time
from html import escape

from handrail.mcp.outcomes import UnansweredCall
from handrail.mcp.permission.words import describe_waiting
from handrail.process.desktop import has_desktop, show_on_desktop

_NOTIFY_PAUSE_SECONDS = 10.0
"""Seconds between two: of many calls that wait together, one is enough."""
_OFF = frozenset(("0", "off", "no", "false"))
_lock = threading.Lock()
_last = [-_NOTIFY_PAUSE_SECONDS]


def notify(asks: UnansweredCall) -> bool:
    """Shows what waits; whether it was tried. It never waits and never fails. HANDRAIL_NOTIFY=off: never."""
    if os.environ.get("HANDRAIL_NOTIFY", "").lower() in _OFF or not has_desktop(os.environ) or not _is_due():
        return False
    # What is shown may be marked up: a command must not look like what we say.
    return show_on_desktop("handrail waits for your answer", f"{escape(describe_waiting(asks))}\nhandrail approvals")


def _is_due() -> bool:
    with _lock:
        now = time.monotonic()
        due = now - _last[0] >= _NOTIFY_PAUSE_SECONDS
        _last[0] = now if due else _last[0]
        return due
