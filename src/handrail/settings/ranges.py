"""How far each limit goes that a time or a size is written for."""

from handrail.settings.units import parse_seconds, parse_size, suggest_size, suggest_time

TIMES: dict[str, tuple[str, str]] = {"exec": ("100 ms", "10 min"), "idle": ("1 s", "168 h")}
"""`exec`: as long as a call may ask for itself. `idle`: a week."""
SIZES: dict[str, tuple[str, str]] = {
    "output": ("64 KB", "64 MB"),
    "memory": ("16 MB", "64 TB"),
    "file_size": ("4 KB", "64 TB"),
    "preview": ("64 KB", "64 TB"),
    "waiting": ("64 KB", "64 TB"),
}


def parse_amount(name: str, written: str | int) -> float:
    """What a limit says, in seconds or bytes; ValueError where it is nothing, too little or too much."""
    measure = parse_seconds if name in TIMES else parse_size
    least, most = (TIMES if name in TIMES else SIZES)[name]
    found = measure(written)
    if not measure(least) <= found <= measure(most):
        raise ValueError(f"{written!r} is not between {least} and {most}")
    return found


def suggest_amount(name: str, written: object) -> str | None:
    """The right form of what was written for a limit, where there is one that is allowed."""
    if name not in {*TIMES, *SIZES} or not isinstance(written, str):
        return None
    meant = (suggest_time if name in TIMES else suggest_size)(written)
    try:
        return meant if meant is not None and parse_amount(name, meant) else None
    except ValueError:
        return None
