"""The output of a command: captured in bounded memory, cleaned for a reader."""

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

PIPE_CAPACITY_BYTES = 1 << 20
"""A pipe of this size moves twice as much as one of the usual 64 KB, with fewer and larger reads."""
_SET_CAPACITY = getattr(fcntl, "F_SETPIPE_SZ", 1031)
_READ_BYTES = 1 << 18
_MAX_HEAD_BYTES = 1 << 16
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

_FIRST_PAUSE_SECONDS = 0.2
_MAX_PAUSE_SECONDS = 1.0
_PAUSE_SHARE = 0.02
"""Pause between updates as a share of the run time. It grows from 10 s on, up to 1 s at 50 s."""
_MAX_UPDATE_CHARS = 4000
_MAX_UPDATE_BYTES = 4 * _MAX_UPDATE_CHARS

_MAX_LINE_CHARS = 1 << 20
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_REPLACEMENTS = {code: "�" for code in (*range(32), *range(127, 160)) if code not in b"\t\n"}
# Both match only where a run or a line begins, so they take linear time on any text.
_RETURNS_AT_END = re.compile(r"(?<!\r)\r++(?=\n|\Z)")
_OVERWRITTEN = re.compile(r"^[^\n]*\r", re.MULTILINE)

_MAX_TITLE_CHARS = 4096
"""Characters of a title or link. A longer one is text after a broken beginning."""
_ESCAPE = "\x1b"
_PARAMETERS = r"\[[0-?]{0,64}+[ -/]{0,8}+"
_STRING = rf"[\]PX^_][^\x07\x18\x1a\x1b\r\n]{{0,{_MAX_TITLE_CHARS}}}+"
# Of an unfinished sequence only the beginning goes, so that no sequence hides text that a terminal would show.
_SEQUENCE = re.compile(rf"\x1b(?:{_PARAMETERS}[@-~]?|{_STRING}(?:\x07|\x1b\\)|[ -/]{{1,8}}+[0-~]?|[0-~])?")
_UNFINISHED = re.compile(rf"\x1b(?:{_PARAMETERS}|{_STRING}\x1b?|[ -/]{{0,8}}+)\Z")
_TO_LINE_START = re.compile(r"\x1b\[[01]?G")


class Pipes:
    """The pipes that a command prints into: one for both streams, or one for each."""

    def __init__(self, count: int) -> None:
        self.reading: list[int] = []
        self.writing: list[int] = []
        try:
            for _ in range(count):
                reading, writing = os.pipe()
                self.reading.append(reading)
                self.writing.append(writing)
                os.set_blocking(reading, False)
                with contextlib.suppress(OSError):  # the user's pipes have used up the memory for pipes
                    fcntl.fcntl(reading, _SET_CAPACITY, PIPE_CAPACITY_BYTES)
        except BaseException:
            self.close()
            raise

    def close_child_ends(self) -> None:
        """To be called once the command has them."""
        _close_all(self.writing)

    def close(self) -> None:
        self.close_child_ends()
        _close_all(self.reading)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _close_all(descriptors: list[int]) -> None:
    while descriptors:
        os.close(descriptors.pop())


class OutputBuffer:
    """Captures one pipe: everything, or the beginning, the end, and a file with the first part.

    Until `finish` or `discard` is called it may have that file.
    """

    def __init__(
        self, pipe: int, limits: ResourceLimits, folder: str, on_output: Callable[[bytes], None] | None = None
    ) -> None:
        self.pipe = pipe
        self.total = 0
        self._limits = limits
        self._folder = folder
        self._on_output = on_output
        self._size = max(2, limits.output)
        self._head = min(_MAX_HEAD_BYTES, self._size // 2)
        # Takes no memory until it is written to. Behind the head it is a ring, which is read into without copying.
        self._memory = memoryview(mmap.mmap(-1, self._size))
        self._position = 0
        self._spill: SpillFile | None = None
        self._is_at_end = False

    def read(self) -> bool:
        """Read once, without waiting. False: the pipe is at its end."""
        if self._position == self._size:
            self._restart_ring()
        room = self._memory[self._position : self._position + _READ_BYTES]
        try:
            data = room[: os.readv(self.pipe, (room,))]
        except BlockingIOError:
            return True
        self._is_at_end = not data
        self._take(data)
        return not self._is_at_end

    def add(self, data: bytes) -> None:
        """Take data that was read elsewhere."""
        rest = memoryview(data)
        while rest:
            if self._position == self._size:
                self._restart_ring()
            room = self._memory[self._position : self._position + len(rest)]
            room[:] = rest[: len(room)]
            self._take(room)
            rest = rest[len(room) :]

    def read_rest(self) -> None:
        """Read what the pipe holds now. The bound is for a process that escaped and prints forever."""
        enough = self.total + PIPE_CAPACITY_BYTES
        before = -1
        while not self._is_at_end and before < self.total < enough:
            before = self.total
            self.read()

    @property
    def is_limited(self) -> bool:
        """Whether there was more output than may be kept."""
        return self.total > max(self._size, self._limits.spilled)

    @property
    def warnings(self) -> tuple[str, ...]:
        if self._spill is None or self._spill.trouble is None:
            return ()
        return (f"Not all of the output could be kept: the file for it could not be written ({self._spill.trouble}).",)

    def finish(self) -> CapturedOutput:
        """The captured output. Its file belongs to the caller."""
        if self.total <= self._size:
            self.discard()
            return CapturedOutput(head=bytes(self._memory[: self.total]), total=self.total)
        head = bytes(self._memory[: self._head])
        tail = bytes(self._memory[self._position :]) + bytes(self._memory[self._head : self._position])
        spill = self._finish_spill()
        size = spill.size if spill else 0
        return CapturedOutput(
            head=head,
            tail=tail,
            total=self.total,
            spilled=spill.path if spill else None,
            spilled_bytes=size,
            lost=max(0, self.total - len(tail) - max(len(head), size)),
        )

    def discard(self) -> None:
        """Remove the file. Can be repeated."""
        if self._spill:
            self._spill.discard()

    def _take(self, data: memoryview) -> None:
        self._position += len(data)
        self.total += len(data)
        if self._spill:
            self._spill.add(data)
        if data and self._on_output:
            self._on_output(bytes(data))

    def _restart_ring(self) -> None:
        """Go back to the start of the ring. The first time, its content is saved to the file before."""
        self._position = self._head
        if self.total == self._size and self._spill is None and self._limits.spilled > self._head:
            self._spill = SpillFile(self._folder, self._limits.spilled)
            self._spill.add(self._memory)

    def _finish_spill(self) -> "SpillFile | None":
        """The file, if it holds more than the head."""
        if self._spill is None:
            return None
        self._spill.close()
        if self._spill.size > self._head:
            return self._spill
        self._spill.discard()
        return None


class SpillFile:
    """A new file for the first part of an output that memory does not hold.

    It is given up if the disk is full or broken: the call's own records need the room.
    """

    def __init__(self, folder: str, most: int) -> None:
        self.path = os.path.join(folder, f"output-{os.urandom(12).hex()}")
        self.size = 0
        self.trouble: str | None = None
        """Why the file has less than it should."""
        self._most = most
        self._descriptor = -1
        try:
            self._descriptor = os.open(self.path, _NEW_FILE, 0o600)
        except OSError as error:
            self.trouble = error.strerror

    def add(self, data: memoryview) -> None:
        """Add as much as has room."""
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
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def discard(self) -> None:
        """Remove the file. Can be repeated."""
        exists = self._descriptor >= 0 or self.size > 0
        self.close()
        self.size = 0
        if exists:
            with contextlib.suppress(OSError):
                os.unlink(self.path)


class Update(msgspec.Struct, frozen=True):
    """Output of a running command since the last update."""

    text: str
    """The end of it, cleaned."""
    skipped: int
    """Bytes before it that are left out."""


class Updates:
    """Reports output of a running command now and then. It has to be fed, with `b""` if nothing was printed."""

    def __init__(self, tell: Callable[[Update], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._tell = tell
        self._clock = clock
        self._began = clock()
        self._next = self._began + _FIRST_PAUSE_SECONDS
        self._latest = bytearray()
        self._skipped = 0

    def feed(self, data: bytes) -> None:
        self._latest += data[-_MAX_UPDATE_BYTES:]
        excess = max(0, len(self._latest) - _MAX_UPDATE_BYTES)
        self._skipped += len(data) - len(data[-_MAX_UPDATE_BYTES:]) + excess
        del self._latest[:excess]
        now = self._clock()
        if now >= self._next and self._latest:
            self._next = now + min(_MAX_PAUSE_SECONDS, max(_FIRST_PAUSE_SECONDS, (now - self._began) * _PAUSE_SHARE))
            self._emit()

    def _emit(self) -> None:
        data = bytes(self._latest)
        if self._skipped:
            data = self._skip_partial_character(data)
        text, used = codecs.utf_8_decode(data, "replace", False)
        end = len(text) - count_unfinished_escape(text)
        # A partial character or sequence stays until the rest of it comes.
        self._latest = bytearray(text[end:].encode() + data[used:])
        start = max(0, end - _MAX_UPDATE_CHARS)
        cleaned = clean_output(text[start:end].encode())
        if cleaned:
            skipped, self._skipped = self._skipped + len(text[:start].encode()), 0
            self._tell(Update(cleaned, skipped))

    def _skip_partial_character(self, data: bytes) -> bytes:
        most = min(3, len(data))
        start = next((index for index in range(most) if data[index] & 0xC0 != 0x80), most)
        self._skipped += start
        return data[start:]


def clean_output(data: bytes) -> str:
    """Output as text, as a person sees it in the end.

    Terminal sequences are removed. Of a line that was overwritten, such as a progress bar, the last state stays.
    Control characters other than tab and newline become U+FFFD, and so do bytes that are not UTF-8.
    """
    cleaner = Cleaner()
    return cleaner.feed(data) + cleaner.end()


class Cleaner:
    """`clean_output` for data in pieces. Gives whole lines, but a line over 1 MB in parts."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._escape = ""
        """The beginning of an incomplete sequence."""
        self._line: list[str] = []
        self._length = 0

    def feed(self, data: bytes) -> str:
        return self._take(self._decoder.decode(data))

    def end(self) -> str:
        """The last line. The cleaner can be used again then."""
        text = self._take(self._decoder.decode(b"", final=True))
        self._line.append(_remove_escapes(self._escape))
        self._escape = ""
        return text + _clean_lines(self._pop_line())

    def _take(self, text: str) -> str:
        text = self._escape + text
        end = len(text) - count_unfinished_escape(text)
        self._escape = text[end:]
        lines, newline, rest = _remove_escapes(text[:end]).rpartition("\n")
        cleaned = _clean_lines(self._pop_line() + lines) + newline if newline else ""
        self._line.append(rest)
        self._length += len(rest)
        return cleaned + self._cut_line() if self._length > _MAX_LINE_CHARS else cleaned

    def _pop_line(self) -> str:
        line = "".join(self._line)
        self._line, self._length = [], 0
        return line

    def _cut_line(self) -> str:
        """A line that is too long to be held, unless most of it was overwritten."""
        line = self._pop_line()
        cleaned = _clean_lines(line)
        if len(cleaned) * 2 > _MAX_LINE_CHARS:
            return cleaned
        ending = "\r" if line.endswith("\r") else ""
        self._line, self._length = [cleaned + ending], len(cleaned) + 1
        return ""


def _clean_lines(text: str) -> str:
    if "\b" in text:
        text = "".join(_apply_backspaces(part) for part in re.split("([\r\n])", text))
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if "\r" in text:
        text = _OVERWRITTEN.sub("", _RETURNS_AT_END.sub("", text))
    return text.translate(_REPLACEMENTS) if _CONTROL.search(text) else text


def _apply_backspaces(text: str) -> str:
    if "\b" not in text:
        return text
    characters: list[str] = []
    for character in text:
        if character != "\b":
            characters.append(character)
        elif characters:
            characters.pop()
    return "".join(characters)


def _remove_escapes(text: str) -> str:
    """Remove terminal sequences. A move to the beginning of the line becomes a return."""
    return _SEQUENCE.sub("", _TO_LINE_START.sub("\r", text)) if _ESCAPE in text else text


def count_unfinished_escape(text: str) -> int:
    """The number of characters at the end that may begin a terminal sequence."""
    start = max(0, len(text) - _MAX_TITLE_CHARS - 3)
    unfinished = _UNFINISHED.search(text, start) if _ESCAPE in text[start:] else None
    return len(text) - unfinished.start() if unfinished else 0
