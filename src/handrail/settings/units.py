"""Units and ranges of settings."""

import re

# § [settings.units] Times and sizes as people write them: "120s", "2 min", "4 MB". A plain number is seconds or
# § bytes.

SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600}
BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""1 MB is 1024 times 1024 bytes, as programs that show memory count."""

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,3})?"
TIME = rf"\A{_NUMBER} ?(?:{'|'.join(SECONDS)})\Z"
SIZE = rf"\A{_NUMBER} ?(?:{'|'.join(BYTES)})\Z"
_WRITTEN = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*")
_OTHER_SECONDS = {
    **dict.fromkeys(("msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
}
_OTHER_BYTES = {"byte": "B", "bytes": "B"} | {
    other: unit for unit in BYTES for other in (unit[0].lower(), unit.lower(), f"{unit[0].lower()}ib")
}


def parse_seconds(written: str | int) -> float:
    """A time in seconds; ValueError where it is none."""
    return written if isinstance(written, int) else _amount(written, TIME, SECONDS)


def parse_size(written: str | int) -> int:
    """A size in bytes; ValueError where it is none."""
    return written if isinstance(written, int) else int(_amount(written, SIZE, BYTES))


def suggest_time(written: str) -> str | None:
    """The right form of a time that is written in another one: `"2m"` is meant as `"2 min"`."""
    return _nearest(written, "s", SECONDS, _OTHER_SECONDS)


def suggest_size(written: str) -> str | None:
    """The right form of a size that is written in another one."""
    return _nearest(written, "B", BYTES, _OTHER_BYTES)


def _amount(written: str, form: str, units: dict[str, int] | dict[str, float]) -> float:
    found = _WRITTEN.fullmatch(written) if re.match(form, written) else None
    if found is None:
        raise ValueError(f"{written!r} is no number with one of the units {', '.join(units)}")
    return float(found[1]) * units[found[2]]


def _nearest(written: str, plain: str, units: dict[str, int] | dict[str, float], others: dict[str, str]) -> str | None:
    found = _WRITTEN.fullmatch(written)
    if found is None:
        return None
    unit = found[2] or plain
    known = unit if unit in units else others.get(unit.lower()) or (unit.lower() if unit.lower() in units else None)
    return None if known is None else f"{found[1]}{'' if known == 's' else ' '}{known}"


# § [settings.ranges] How far each limit goes that a time or a size is written for.

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
