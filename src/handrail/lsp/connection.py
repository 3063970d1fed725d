"""The connection to a language server, served by one thread."""

import os
import select
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from msgspec import Raw

from handrail.lsp.frames import (
    METHOD_NOT_FOUND,
    FrameReader,
    LspMessage,
    NonsenseError,
    ResponseError,
    encode_frame,
    parse_message,
)
from handrail.protocol.errors import ToolError

_READ_BYTES = 1 << 16
_POLL_SECONDS = 1.0
_WAIT_SECONDS = 0.05
"""Pause between two looks whether a call was cancelled."""
_STALL_SECONDS = 20.0
"""Seconds in which a server has to read some of what it is sent."""
_MAX_UNSENT_BYTES = 64 << 20
_RATE = 16 << 20
"""Bytes a second that are read from a server. Each message counts as some bytes more."""
_MESSAGE_COST = 1024
_MAX_WAITING = 1_000


class LanguageProgram(Protocol):
    """A running server program, connected by non-blocking pipes."""

    input: int
    output: int

    @property
    def how_it_ended(self) -> str | None: ...

    @property
    def never_ran(self) -> bool: ...

    @property
    def stderr_tail(self) -> str: ...

    def end(self) -> None: ...


class ConnectionEndedError(Exception):
    """The connection is over. The text says why."""


class LspRequestError(Exception):
    """The server refused a request."""

    def __init__(self, error: ResponseError) -> None:
        super().__init__(error.message)
        self.code = error.code


class _Reply:
    def __init__(self) -> None:
        self.ready = threading.Event()
        self.message: LspMessage | None = None


class LspConnection:
    """Requests and notifications to one program. Any thread may use it, and none waits without a limit."""

    def __init__(
        self,
        program: LanguageProgram,
        on_notification: Callable[[str, Raw], None],
        on_request: Callable[[str, Raw], Any],
    ) -> None:
        """Both functions run in the thread of the connection. LookupError from `on_request`: no such method."""
        self._program = program
        self._on_notification, self._on_request = on_notification, on_request
        self._lock = threading.Lock()
        self._unsent = bytearray()
        self._replies: dict[int, _Reply] = {}
        self._next_id = 0
        self.ended: str | None = None
        """Why the connection is over. None: it is not."""
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        self._is_open = True
        self._thread = threading.Thread(target=self._run, name="language-server", daemon=True)
        self._thread.start()

    def request(self, method: str, params: Any, seconds: float, cancelled: Callable[[], bool] | None = None) -> Raw:
        """The result. ToolError TIMEOUT or CANCELLED, LspRequestError, ConnectionEndedError."""
        reply, deadline = _Reply(), time.monotonic() + seconds
        with self._lock:
            if len(self._replies) >= _MAX_WAITING:
                raise ToolError("LIMIT_EXCEEDED", f"The language server has {_MAX_WAITING} open requests.")
            self._next_id += 1
            number = self._next_id
            self._replies[number] = reply
            self._put({"id": number, "method": method, "params": params})
        try:
            self._wait(reply, deadline, seconds, cancelled)
        except ToolError:
            with suppress(ConnectionEndedError):
                self.notify("$/cancelRequest", {"id": number})
            raise
        finally:
            with self._lock:
                self._replies.pop(number, None)
        message = reply.message
        if message is None:
            raise ConnectionEndedError(self.ended or "it ended")
        if message.error is not None:
            raise LspRequestError(message.error)
        return message.result

    def notify(self, method: str, params: Any) -> None:
        with self._lock:
            self._put({"method": method, "params": params})

    def close(self, reason: str) -> None:
        """Ends the connection and the program. Waiting requests fail. Can be repeated."""
        self._end(reason)
        self._thread.join()
        with self._lock:
            for descriptor in (self._wake, self._waker) if self._is_open else ():
                os.close(descriptor)
            self._is_open = False
        self._program.end()

    def _wait(self, reply: _Reply, deadline: float, seconds: float, cancelled: Callable[[], bool] | None) -> None:
        while not reply.ready.wait(_WAIT_SECONDS if cancelled else max(0.0, deadline - time.monotonic())):
            if cancelled is not None and cancelled():
                raise ToolError("CANCELLED", "The call was cancelled. Nothing was changed.")
            if time.monotonic() >= deadline:
                raise ToolError("TIMEOUT", f"The language server did not answer within {seconds:.3g} seconds.")

    def _put(self, message: dict[str, Any]) -> None:
        """Queues a message. The caller holds the lock."""
        if self.ended is not None:
            raise ConnectionEndedError(self.ended)
        self._unsent += encode_frame(message)
        if len(self._unsent) > _MAX_UNSENT_BYTES:
            self.ended = "it does not read its input"
        self._wake_up()

    def _wake_up(self) -> None:
        """The caller holds the lock."""
        with suppress(BlockingIOError):  # then the thread is about to wake up
            if self._is_open:
                os.write(self._waker, b".")

    def _end(self, reason: str) -> None:
        with self._lock:
            self.ended = self.ended or reason
            self._wake_up()
            for reply in self._replies.values():
                reply.ready.set()

    # The thread

    def _run(self) -> None:
        try:
            self._exchange()
        except NonsenseError as error:
            self._end(str(error))
        except OSError as error:
            self._end(f"its pipe is broken ({error.strerror})")
        except Exception as error:  # a defect of ours must not leave callers waiting
            self._end(f"its connection failed ({type(error).__name__})")
        finally:
            self._end("it closed its output")

    def _exchange(self) -> None:
        frames, poller = FrameReader(), select.poll()
        poller.register(self._program.output, select.POLLIN)
        poller.register(self._wake, select.POLLIN)
        written, window, spent = time.monotonic(), time.monotonic(), 0
        while self.ended is None:
            with self._lock:
                is_writing = bool(self._unsent)
            if is_writing:
                poller.register(self._program.input, select.POLLOUT)
            else:
                with suppress(KeyError):
                    poller.unregister(self._program.input)
                written = time.monotonic()
            ready = dict(poller.poll(_POLL_SECONDS * 1000))
            if self._wake in ready:
                os.read(self._wake, _READ_BYTES)
            if self._program.input in ready and self._write():
                written = time.monotonic()
            if is_writing and time.monotonic() - written > _STALL_SECONDS:
                raise NonsenseError(f"it has not read its input for {_STALL_SECONDS:.0f} seconds")
            if self._program.output in ready:
                data = _read(self._program.output)
                if data == b"":
                    return
                spent += len(data or b"") + self._take(frames, data or b"") * _MESSAGE_COST
                if spent > _RATE:
                    time.sleep(max(0.0, window + 1.0 - time.monotonic()))
                if time.monotonic() - window >= 1.0:
                    window, spent = time.monotonic(), 0

    def _write(self) -> bool:
        """Writes what the pipe takes. Whether it took any."""
        with self._lock:
            try:
                count = os.write(self._program.input, self._unsent[:_READ_BYTES])
            except BlockingIOError:
                return False
            del self._unsent[:count]
        return True

    def _take(self, frames: FrameReader, data: bytes) -> int:
        """Handles complete messages. Returns how many they were."""
        count = 0
        for body in frames.feed(data):
            count += 1
            message = parse_message(body)
            if message.method is None:
                self._answer(message)
            elif message.id is None:
                self._on_notification(message.method, message.params)
            else:
                self._serve(message.id, message.method, message.params)
        return count

    def _answer(self, message: LspMessage) -> None:
        with self._lock:
            reply = self._replies.get(message.id) if isinstance(message.id, int) else None
        if reply is not None:
            reply.message = message
            reply.ready.set()

    def _serve(self, number: int | str, method: str, params: Raw) -> None:
        try:
            answer = {"result": self._on_request(method, params)}
        except LookupError:
            answer = {"error": {"code": METHOD_NOT_FOUND, "message": f"handrail does not have {method}"}}
        with self._lock, suppress(ConnectionEndedError):
            self._put({"id": number, **answer})


def _read(descriptor: int) -> bytes | None:
    """The next bytes. None: there are none yet."""
    try:
        return os.read(descriptor, _READ_BYTES)
    except BlockingIOError:
        return None
