"""Captures the output of a command."""

import codecs
import contextlib
import fcntl
import mmap
import os
import re
import time
from collections.abc import Callable
from typing import Self

import msgspec

from handrail.process.result import CapturedOutput
from handrail.sandbox.profile import ResourceLimits

# § [process.pipes] The pipes that a command prints into.

PIPE_CAPACITY_BYTES = 1 << 20
"""Fewer and larger reads: a pipe of this size moves twice as much as one of the usual 64 KB."""
_SET_CAPACITY = getattr(fcntl, "F_SETPIPE_SZ", 1031)


class Pipes:
    """One pipe for both streams, or one for each. Who has this closes it."""

    def __init__(self, count: int) -> None:
        self.reading: list[int] = []
        self.writing: list[int] = []
        try:
            for _ in range(count):
                self._add()
        except BaseException:
            self.close()
            raise

    def close_child_ends(self) -> None:
        """Closes here the ends that belong to the command; to be called once it has them."""
        _close(self.writing)

    def close(self) -> None:
        """Closes all of them; can be repeated."""
        self.close_child_ends()
        _close(self.reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _add(self) -> None:
        reading, writing = os.pipe()
        self.reading.append(reading)
        self.writing.append(writing)
        os.set_blocking(reading, False)
        with contextlib.suppress(OSError):  # the user's pipes have used up what the machine gives them
            fcntl.fcntl(reading, _SET_CAPACITY, PIPE_CAPACITY_BYTES)


def _close(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


# § [process.spilling] A file for output that memory does not hold.

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class SpillFile:
    """The beginning of an output, in a new file. A disk that is full or broken costs the file and nothing else: it is
    given up at once, since what is written down about the command needs the room."""

    def __init__(self, folder: str, most: int) -> None:
        self.path = os.path.join(folder, f"output-{os.urandom(12).hex()}")
        self.size = 0
        self.trouble: str | None = None
        """Why the file has less than it should."""
        self._most = most
        self._descriptor = -1
        try:
            self._descriptor = os.open(self.path, _NEW, 0o600)
        except OSError as error:
            self.trouble = error.strerror

    def add(self, data: memoryview) -> None:
        """Adds as much of it as still has room."""
        rest = data[: self._most - self.size]
        while rest and self.trouble is None:
            try:
                written = os.write(self._descriptor, rest)
            except OSError as error:
                self.trouble = error.strerror
                self.discard()
                return
            self.size += written
            rest = rest[written:]

    def close(self) -> None:
        """Ends the writing; can be repeated."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def discard(self) -> None:
        """Removes the file; can be repeated."""
        existed = self._descriptor >= 0 or self.size > 0
        self.close()
        self.size = 0
        if existed:
            with contextlib.suppress(OSError):
                os.unlink(self.path)


# § [process.collecting] What a command prints, in bounded memory: all of it, or its beginning, its end, and a file
# § with the rest.

_PIECE_BYTES = 1 << 18
_MAX_HEAD_BYTES = 1 << 16


class OutputBuffer:
    """The output of one pipe. Until `printed` or `discard` is called it may have a file."""

    def __init__(self, limits: ResourceLimits, folder: str) -> None:
        self.total = 0
        self._limits = limits
        self._folder = folder
        self._size = max(2, limits.output)
        self._head = min(_MAX_HEAD_BYTES, self._size // 2)
        # Memory that costs nothing until it is written to. Behind the head it is a ring: read into without copying.
        self._memory = memoryview(mmap.mmap(-1, self._size))
        self._place = 0
        self._spill: SpillFile | None = None

    def take(self, descriptor: int) -> memoryview | None:
        """Reads once: what came, valid until the next read; nothing where nothing is there; None at the end."""
        if self._place == self._size:
            self._turn()
        room = self._memory[self._place : self._place + _PIECE_BYTES]
        try:
            count = os.readv(descriptor, (room,))
        except BlockingIOError:
            return room[:0]
        if not count:
            return None
        self._place += count
        self.total += count
        if self._spill:
            self._spill.add(room[:count])
        return room[:count]

    @property
    def limited(self) -> bool:
        """Whether it was more than may be kept at all."""
        return self.total > max(self._size, self._limits.spilled)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong on the way."""
        if self._spill is None or self._spill.trouble is None:
            return ()
        return (f"Not all of the output could be kept: the file for it could not be written ({self._spill.trouble}).",)

    def printed(self) -> CapturedOutput:
        """All of it; the file is the caller's from here on."""
        if self.total <= self._size:
            self.discard()
            return CapturedOutput(head=bytes(self._memory[: self.total]), total=self.total)
        head, tail = bytes(self._memory[: self._head]), self._tail()
        spilled = self._finished_spill()
        size = spilled.size if spilled else 0
        return CapturedOutput(
            head=head,
            tail=tail,
            total=self.total,
            spilled=spilled.path if spilled else None,
            spilled_bytes=size,
            lost=max(0, self.total - len(tail) - max(len(head), size)),
        )

    def discard(self) -> None:
        """Removes the file, where there is one."""
        if self._spill:
            self._spill.discard()

    def _turn(self) -> None:
        """Begins the ring anew; what it held the first time is put into the file before it is written over."""
        self._place = self._head
        if self.total == self._size and self._spill is None and self._limits.spilled > self._head:
            self._spill = SpillFile(self._folder, self._limits.spilled)
            self._spill.add(self._memory)

    def _tail(self) -> bytes:
        return bytes(self._memory[self._place :]) + bytes(self._memory[self._head : self._place])

    def _finished_spill(self) -> SpillFile | None:
        """The file, if it has more than the head has."""
        if self._spill is None:
            return None
        self._spill.close()
        if self._spill.size > self._head:
            return self._spill
        self._spill.discard()
        return None


# § [process.tap] One pipe of a command, and where what comes out of it goes.

Tell = Callable[[bytes], None]


class Tap:
    """Takes what a pipe has without ever waiting for more."""

    def __init__(self, descriptor: int, collected: OutputBuffer, tell: Tell | None) -> None:
        self.descriptor = descriptor
        self.collected = collected
        self._tell = tell
        self._over = False

    def take(self) -> bool:
        """Reads once; whether the pipe is still open for more."""
        data = self.collected.take(self.descriptor)
        if data is None:
            self._over = True
        elif data and self._tell:
            self._tell(bytes(data))
        return not self._over

    def take_rest(self) -> None:
        """Takes what the pipe holds by now, and no more: somebody who got away may print for ever."""
        enough = self.collected.total + PIPE_CAPACITY_BYTES
        before = -1
        while not self._over and before < self.collected.total < enough:
            before = self.collected.total
            self.take()


# § [process.escapes] Finds the sequences that speak to a terminal: colours, cursor moves, titles, links.

MAX_TITLE_CHARS = 4096
"""Characters of a title or a link; what is longer is text that follows a broken beginning."""

_ESCAPE = "\x1b"
_PARAMETERS = r"\[[0-?]{0,64}+[ -/]{0,8}+"
_STRING = rf"[\]PX^_][^\x07\x18\x1a\x1b\r\n]{{0,{MAX_TITLE_CHARS}}}+"
# What is unfinished loses its beginning only: no sequence hides text that a terminal would show.
_SEQUENCE = re.compile(rf"\x1b(?:{_PARAMETERS}[@-~]?|{_STRING}(?:\x07|\x1b\\)|[ -/]{{1,8}}+[0-~]?|[0-~])?")
_UNFINISHED = re.compile(rf"\x1b(?:{_PARAMETERS}|{_STRING}\x1b?|[ -/]{{0,8}}+)\Z")
_TO_LINE_START = re.compile(r"\x1b\[[01]?G")


def remove_escapes(text: str) -> str:
    """The text without the sequences; what goes back to the beginning of the line is a return."""
    return _SEQUENCE.sub("", _TO_LINE_START.sub("\r", text)) if _ESCAPE in text else text


def count_unfinished_escape(text: str) -> int:
    """How many characters at the end may be the beginning of a sequence that goes on in what follows."""
    found = (
        _UNFINISHED.search(text, max(0, len(text) - MAX_TITLE_CHARS - 3))
        if _ESCAPE in text[-MAX_TITLE_CHARS - 3 :]
        else None
    )
    return len(text) - found.start() if found else 0


# § [process.cleaning] Makes what a command printed into text for the model: as a person would see it when it is
# § over. Sequences for a terminal are left out. Of a line that was written over and over (a progress bar) its last
# § state stays. Control characters, but for tab and newline, and bytes that are no UTF-8 become U+FFFD.

_MAX_LINE_CHARS = 1 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REPLACED = {code: "�" for code in (*range(32), *range(127, 160)) if code not in b"\t\n"}
# Both are tried where a run or a line begins, and nowhere else: no text makes them take more than linear time.
_RETURNS_AT_END = re.compile(r"(?<!\r)\r++(?=\n|\Z)")
_WRITTEN_OVER = re.compile(r"^[^\n]*\r", re.MULTILINE)


def clean_output(data: bytes) -> str:
    """All of it at once."""
    cleaner = Cleaner()
    return cleaner.feed(data) + cleaner.end()


class Cleaner:
    """The same in pieces, cut anywhere. Gives whole lines; a line over 1 MB in parts."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = ""
        """The beginning of a sequence that is not complete."""
        self._line: list[str] = []
        self._length = 0

    def feed(self, data: bytes) -> str:
        """What can be said by now."""
        return self._take(self._decoder.decode(data))

    def end(self) -> str:
        """The last line; the cleaner is as new then."""
        text = self._take(self._decoder.decode(b"", final=True))
        self._line.append(remove_escapes(self._escape))
        self._escape = ""
        return text + _finished(self._whole_line())

    def _take(self, text: str) -> str:
        text = self._escape + text
        held = count_unfinished_escape(text)
        self._escape = text[len(text) - held :]
        lines, newline, rest = remove_escapes(text[: len(text) - held]).rpartition("\n")
        done = _finished(self._whole_line() + lines) + newline if newline else ""
        self._line.append(rest)
        self._length += len(rest)
        return done + self._too_much() if self._length > _MAX_LINE_CHARS else done

    def _whole_line(self) -> str:
        line = "".join(self._line)
        self._line, self._length = [], 0
        return line

    def _too_much(self) -> str:
        """Passes a line on that is too long to be kept, unless most of it was written over."""
        line = self._whole_line()
        kept = _finished(line)
        if len(kept) * 2 > _MAX_LINE_CHARS:
            return kept
        ends = "\r" if line.endswith("\r") else ""
        self._line, self._length = [kept + ends], len(kept) + 1
        return ""


def _finished(text: str) -> str:
    """Whole lines, as they look in the end."""
    if "\b" in text:
        text = "".join(_without_backspaces(part) for part in re.split("([\r\n])", text))
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = _WRITTEN_OVER.sub("", _RETURNS_AT_END.sub("", text))
    return text.translate(_REPLACED) if _CONTROL.search(text) else text


def _without_backspaces(text: str) -> str:
    if "\b" not in text:
        return text
    kept: list[str] = []
    for character in text:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


# § [process.updates] Tells now and then what a running command prints: enough to follow it, never a flood.

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 1.0
_GROWTH = 0.02
"""The pause as a part of the time that the command has run: it grows from 10 s on, and is 1 s from 50 s on."""
_MAX_UPDATE_CHARS = 4000
_MAX_UPDATE_BYTES = 4 * _MAX_UPDATE_CHARS


class Update(msgspec.Struct, frozen=True):
    """What was printed since the last one."""

    text: str
    """The end of it, cleaned."""
    skipped: int
    """Bytes before it that are left out."""


class Updates:
    """Give it what is printed, and nothing (`b""`) now and then; it tells when it is time to."""

    def __init__(self, tell: Callable[[Update], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._began = clock()
        self._next = self._began + _FIRST_PAUSE_SECONDS
        self._latest = bytearray()
        self._skipped = 0

    def feed(self, data: bytes) -> None:
        """Takes it in; tells, if there is something and the time has come."""
        self._latest += data[-_MAX_UPDATE_BYTES:]
        excess = max(0, len(self._latest) - _MAX_UPDATE_BYTES)
        self._skipped += len(data) - len(data[-_MAX_UPDATE_BYTES:]) + excess
        del self._latest[:excess]
        now = self._clock()
        if now >= self._next and self._latest:
            self._next = now + min(_MAX_PAUSE_SECONDS, max(_FIRST_PAUSE_SECONDS, (now - self._began) * _GROWTH))
            self._emit()

    def _emit(self) -> None:
        data = bytes(self._latest)
        if self._skipped:
            data = self._without_half_a_character(data)
        text, used = codecs.utf_8_decode(data, "replace", False)
        whole = len(text) - count_unfinished_escape(text)
        # Half a character or sequence waits for its other half.
        self._latest = bytearray(text[whole:].encode() + data[used:])
        shown = clean_output(text[max(0, whole - _MAX_UPDATE_CHARS) : whole].encode())
        if shown:
            skipped = self._skipped + len(text[: max(0, whole - _MAX_UPDATE_CHARS)].encode())
            self._skipped = 0
            self._tell(Update(shown, skipped))

    def _without_half_a_character(self, data: bytes) -> bytes:
        start = next((place for place in range(min(3, len(data))) if data[place] & 0xC0 != 0x80), min(3, len(data)))
        self._skipped += start
        return data[start:]
