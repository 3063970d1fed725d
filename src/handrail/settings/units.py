"""Amounts as people write them: "120s", "2 min", "4 MB". A plain number is seconds or bytes."""

import re
from typing import Annotated

import msgspec

SECONDS = {"ms": 0.001, "s": 1, "min": 60, "h": 3600, "d": 86_400}
BYTES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
"""1 MB is 1024 × 1024 bytes, as in programs that show memory."""

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,3})?"
_TIME = rf"\A{_NUMBER} ?(?:{'|'.join(SECONDS)})\Z"
_SIZE = rf"\A{_NUMBER} ?(?:{'|'.join(BYTES)})\Z"
Time = Annotated[str, msgspec.Meta(pattern=_TIME)] | Annotated[int, msgspec.Meta(ge=1)]
Size = Annotated[str, msgspec.Meta(pattern=_SIZE)] | Annotated[int, msgspec.Meta(ge=1)]
_AMOUNT = rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*"
_OTHER_SECONDS = {
    **dict.fromkeys(("msec", "millis", "milliseconds"), "ms"),
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("m", "mins", "minute", "minutes"), "min"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}
_OTHER_BYTES = {"byte": "B", "bytes": "B"} | {
    other: unit for unit in BYTES for other in (unit[0].lower(), unit.lower(), f"{unit[0].lower()}ib")
}


def parse_seconds(written: str | int) -> float:
    """A time in seconds. ValueError: it is no time."""
    return written if isinstance(written, int) else _parse(written, _TIME, SECONDS)


def parse_size(written: str | int) -> int:
    """A size in bytes. ValueError: it is no size."""
    return written if isinstance(written, int) else int(_parse(written, _SIZE, BYTES))


def suggest_time(written: str) -> str | None:
    """The correct form of a time: `"2 min"` for `"2m"`."""
    return _suggest(written, "s", SECONDS, _OTHER_SECONDS)


def suggest_size(written: str) -> str | None:
    """The correct form of a size: `"4 MB"` for `"4mb"`."""
    return _suggest(written, "B", BYTES, _OTHER_BYTES)


class AmountRange(msgspec.Struct, frozen=True):
    noun: str
    """`time` or `size`."""
    least: str
    most: str
    examples: str

    @property
    def allowed(self) -> str:
        unit = "seconds" if self.noun == "time" else "bytes"
        return (
            f'a {self.noun} from "{self.least}" to "{self.most}", such as {self.examples}, or a whole number of {unit}'
        )

    def parse(self, written: str | int) -> float:
        """In seconds or bytes. ValueError: it is no amount, or out of the range."""
        parse = parse_seconds if self.noun == "time" else parse_size
        amount = parse(written)
        if not parse(self.least) <= amount <= parse(self.most):
            raise ValueError(f"{written!r} is not between {self.least} and {self.most}")
        return amount

    def suggest(self, written: object) -> str | None:
        """The correct form of an amount, if it lies in the range."""
        suggest = suggest_time if self.noun == "time" else suggest_size
        correct = suggest(written) if isinstance(written, str) else None
        try:
            return correct if correct is not None and self.parse(correct) else None
        except ValueError:
            return None

    def pick_smaller(self, below: str | int, above: str | int) -> str | int:
        """The smaller of two amounts. Of two equal ones, the way `above` is written."""
        return min(above, below, key=self.parse)


def _parse(written: str, form: str, units: dict[str, int] | dict[str, float]) -> float:
    if not re.match(form, written):
        raise ValueError(f"{written!r} is not a number with one of the units {', '.join(units)}")
    unit = written.lstrip("0123456789. ")
    return float(written.removesuffix(unit)) * units[unit]


def _suggest(written: str, plain: str, units: dict[str, int] | dict[str, float], others: dict[str, str]) -> str | None:
    match = re.fullmatch(_AMOUNT, written)
    if match is None:
        return None
    unit = match[2] or plain
    known = unit if unit in units else others.get(unit.lower()) or (unit.lower() if unit.lower() in units else None)
    return None if known is None else f"{match[1]}{'' if known == 's' else ' '}{known}"
