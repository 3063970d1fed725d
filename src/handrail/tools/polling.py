"""What a process session has printed since somebody last asked: every byte once, in its order."""

import codecs
import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from handrail.process.cleaning import clean_output
from handrail.process.escapes import count_unfinished_escape

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession

_NAME = "polled"
_WAIT_SECONDS = 1.0
_PAUSE_SECONDS = 0.02
_DIGITS = 20


class NewOutput(msgspec.Struct, frozen=True):
    """A piece of what was printed."""

    text: str
    start: int
    end: int
    """Where it begins and ends, in bytes from the beginning of all that was printed."""
    skipped: int
    """Bytes before it that are not kept any more."""
    waiting: int
    """Bytes behind it that were there already."""


def poll(process: "ProcessSession", room: int, cancelled: Callable[[], bool]) -> NewOutput:
    """What is new, at most so many bytes, and remembers it as told. Where nothing is and it runs, waits a little."""
    until = time.monotonic() + _WAIT_SECONDS
    while True:
        news, ended = _look(process, room)
        if news.end > news.start or news.skipped or ended or cancelled() or time.monotonic() >= until:
            _mark(process, news.end)
            return news
        time.sleep(_PAUSE_SECONDS)


def take_new_output(process: "ProcessSession", room: int) -> NewOutput:
    """The same without waiting."""
    news, _ = _look(process, room)
    _mark(process, news.end)
    return news


def _mark(process: "ProcessSession", position: int) -> None:
    """Remembers how far it was told, for whoever polls next in whatever runtime."""
    descriptor = os.open(os.path.join(process.folder, _NAME), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        os.pwrite(descriptor, f"{position:0{_DIGITS}}".encode(), 0)
    finally:
        os.close(descriptor)


def _polled(process: "ProcessSession") -> int:
    with contextlib.suppress(OSError, ValueError), open(os.path.join(process.folder, _NAME), "rb") as file:
        return int(file.read(_DIGITS))
    return 0


def _look(process: "ProcessSession", room: int) -> tuple[NewOutput, bool]:
    """What is new, and whether nothing comes any more."""
    ended = process.wait(0)  # first: what it has printed when it has ended is all
    polled = _polled(process)
    start, data = process.log.read_from(polled, room)
    size = process.log.size
    if not ended or start + len(data) < size:
        data = data[: _whole(data, full=len(data) >= room)]
    end = start + len(data)
    return NewOutput(clean_output(data), start, end, start - polled, max(0, size - end)), ended


def _whole(data: bytes, *, full: bool) -> int:
    """How much of it is whole characters and sequences, which may go on in what follows; of very much, whole lines."""
    if full and (line := data.rfind(b"\n") + 1) > len(data) // 2:
        return line
    text, used = codecs.utf_8_decode(data, "replace", False)
    held = count_unfinished_escape(text)
    whole = max(0, used - len(text[len(text) - held :].encode())) if held else used
    return whole if whole > 0 or not full else len(data)
