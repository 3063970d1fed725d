"""A real HTTP server on the loopback that plays a script, byte by byte if need be, and looks at what it is asked."""

import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any, Literal

import msgspec

Ending = Literal["end", "drop", "hang"]
"""`drop`: the connection breaks. `hang`: nothing comes any more until the other side hangs up."""


class Received(msgspec.Struct, frozen=True):
    """One question, as it came."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What the server does with a question."""

    pieces: tuple[bytes, ...] = ()
    """Each goes out on its own."""
    status: int = 200
    headers: dict[str, str] = {}
    ending: Ending = "end"
    without_head: bool = False
    """The connection ends or hangs before a single byte of an answer."""


Script = Answer | Callable[[Received], Answer]


class WireServer:
    """Listens on a port of its own. Every wire says what it holds for wrong in a question."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.problems: list[str] = []
        self.hung_up = threading.Event()
        """Somebody ended a connection that was in the middle of an answer."""
        self.asked = threading.Semaphore(0)
        """Released for every question."""
        self._script: deque[Script] = deque()
        self._always: Script | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def sends(self, *answers: Script) -> None:
        """What it does with the next questions, one after the other."""
        self._script.extend(answers)

    def always(self, answer: Script) -> None:
        """What it does with every question when the script is over."""
        self._always = answer

    def check(self, question: Received) -> Iterable[str]:
        """What is wrong with a question, by the rules of the wire."""
        raise NotImplementedError

    def refusal(self, status: int, message: str, headers: dict[str, str] | None = None) -> Answer:
        """A refusal in the words of the wire."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends every connection and waits for every thread."""
        _end(self._listener)
        for connection in self._connections:
            _end(connection)
        for thread in self._threads:
            thread.join(10)

    def _start(self, what: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=what, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._connections.append(connection)
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as stream:
                while (question := _read(stream)) and self._answer(connection, question):
                    pass
        except OSError:
            self.hung_up.set()

    def _answer(self, connection: socket.socket, question: Received) -> bool:
        """Whether the connection stays."""
        self.received.append(question)
        wrong = list(self.check(question))
        self.problems += wrong
        self.asked.release()
        answer = self.refusal(400, wrong[0]) if wrong else self._next(question)
        if not answer.without_head:
            _send(connection, answer)
        if answer.ending == "hang":
            while connection.recv(1024):
                pass
            self.hung_up.set()
        if answer.ending == "end" and not answer.without_head:
            connection.sendall(b"0\r\n\r\n")
            return True
        return False

    def _next(self, question: Received) -> Answer:
        if not self._script and self._always is None:
            self.problems.append("a question came after the last answer of the script")
            return self.refusal(500, "the script is over")
        chosen = self._script.popleft() if self._script else self._always
        assert chosen is not None
        return chosen if isinstance(chosen, Answer) else chosen(question)


def _read(stream: Any) -> Received | None:
    first = stream.readline().decode("latin-1")
    if not first:
        return None
    headers: dict[str, str] = {}
    while line := stream.readline().decode("latin-1").rstrip():
        name, _, value = line.partition(":")
        headers[name.lower()] = value.strip()
    raw = stream.read(int(headers.get("content-length", 0)))
    return Received(first.split()[1], headers, json.loads(raw) if raw else {}, raw)


def _send(connection: socket.socket, answer: Answer) -> None:
    headers = {"content-type": "text/event-stream", **answer.headers, "transfer-encoding": "chunked"}
    head = f"HTTP/1.1 {answer.status} As scripted\r\n" + "".join(f"{name}: {headers[name]}\r\n" for name in headers)
    connection.sendall(head.encode() + b"\r\n")
    for piece in answer.pieces:
        if piece:
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))


def _end(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    finally:
        connection.close()


def event(data: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {name}\n" if name else ""
    body = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return f"{head}data: {body}\n\n".encode()


def split(pieces: Iterable[bytes], at: Iterable[int]) -> tuple[bytes, ...]:
    """The same bytes, cut at these places and nowhere else."""
    whole = b"".join(pieces)
    places = [0, *sorted({place for place in at if 0 < place < len(whole)}), len(whole)]
    return tuple(whole[start:end] for start, end in pairwise(places))


def in_parts(text: str, count: int) -> list[str]:
    """A text in about as many parts."""
    size = max(1, -(-len(text) // count)) if text else 1
    return [text[start : start + size] for start in range(0, len(text), size)]
