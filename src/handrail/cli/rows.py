"""What a check of doctor has found, in words that name no user and no folder of theirs."""

import os
from typing import Literal, NamedTuple


class Finding(NamedTuple):
    """What one look has found; a row that is not ok says what to type."""

    group: str
    status: Literal["ok", "warning", "error"]
    text: str
    fix: str | None = None


def format_binary_size(count: int) -> str:
    """A number of bytes in units of 1,024: 1234 → 1.2 KB, 100 → 0.1 KB."""
    unit, divisor = ("GB", 1 << 30) if count >= 1 << 30 else ("MB", 1 << 20) if count >= 1 << 20 else ("KB", 1 << 10)
    return f"{count / divisor:.1f} {unit}"


def replace_home(text: str) -> str:
    """The text with every place that the environment names called by that name."""
    for name in ("HANDRAIL_STATE_DIR", "HANDRAIL_CONFIG", "XDG_STATE_HOME", "XDG_CONFIG_HOME"):
        if value := os.environ.get(name):
            text = text.replace(value, f"${name}")
    home = os.path.expanduser("~")
    return text.replace(home, "~") if home not in {"/", "~", ""} else text
