"""One client: what is sent to it, what it is asked, and the calls of its that are on their way."""

import threading
from collections.abc import Callable
from typing import Any

from handrail.mcp.caller import Caller
from handrail.mcp.results import complete_result
from handrail.mcp.stdio.outlet import MessageWriter
from handrail.mcp.stdio.workers import Job, Workers
from handrail.protocol.jsonrpc import INTERNAL_ERROR, ProtocolError, RequestId

Then = Callable[[dict[str, Any] | None], None]


class StdioConnection:
    """Every method may be called by any thread."""

    def __init__(self, outlet: MessageWriter, workers: Workers) -> None:
        self.caller = Caller()
        """Who is there: by the handshake, or by the last request of a version without one."""
        self._outlet = outlet
        self._workers = workers
        self._lock = threading.Lock()
        self._asked: dict[int, Then] = {}
        self._last = 0
        self._gone = False

    def send(self, message: dict[str, Any], written: Callable[[], None] = lambda: None) -> None:
        """Sends a message; nothing happens where the client has gone. `written` is called once all of it is written."""
        self._outlet.send({"jsonrpc": "2.0", **message}, written)

    def work(self, job: Job) -> None:
        """Has something done by a worker thread."""
        self._workers.add(job)

    def ask(self, method: str, params: dict[str, Any], then: Then) -> int:
        """Asks the client something. `then` is called once, by a worker thread: with its result, or with None where it
        answered with an error, or went. The id of the request."""
        with self._lock:
            self._last += 1
            number, gone = self._last, self._gone
            if not gone:
                self._asked[number] = then
        if gone:
            self.work(lambda: then(None))
        else:
            self.send({"id": number, "method": method, "params": params})
        return number

    def withdraw(self, number: int) -> None:
        """Tells the client that nobody waits for its answer any more; `then` is not called."""
        with self._lock:
            waited = self._asked.pop(number, None)
        if waited is not None:
            self.send({"method": "notifications/cancelled", "params": {"requestId": number}})

    def take_reply(self, number: object, result: dict[str, Any] | None) -> bool:
        """Takes the client's answer to something that it was asked; whether it was."""
        with self._lock:
            then = self._asked.pop(number, None) if type(number) is int else None
        if then is not None:
            self.work(lambda: then(result))
        return then is not None

    def drop_requests(self) -> None:
        """The client is gone: nothing that it was asked will be answered."""
        with self._lock:
            self._gone = True
            waiting, self._asked = list(self._asked.values()), {}
        for then in waiting:
            self.work(lambda then=then: then(None))


def _untold(_: str) -> None:
    """For a client that did not ask to be told."""


class ClientRequest:
    """One request on its way. It is answered once, by whichever thread; a cancelled one is not answered."""

    def __init__(
        self,
        connection: StdioConnection,
        request_id: RequestId,
        params: dict[str, Any],
        caller: Caller,
        over: Callable[["ClientRequest"], None] = lambda _: None,
    ) -> None:
        self.connection = connection
        self.request_id = request_id
        self.params = params
        self.caller = caller
        self.call_id = ""
        """What the call is called here, and nowhere else, in events and in the journal."""
        self.tell: Callable[[str], None] = _untold
        """Takes what the client is told while it waits."""
        self._over = over
        self._lock = threading.Lock()
        self._done = self._cancelled = False

    @property
    def cancelled(self) -> bool:
        """Whether the client has said that it does not wait for the answer."""
        return self._cancelled

    @property
    def over(self) -> bool:
        """Whether it is answered or cancelled."""
        return self._done

    def progress(self, message: str) -> None:
        """Tells the client how far it is, if it asked to be told; never after the answer."""
        with self._lock:
            if not self._done:
                self.tell(message)

    def answer(self, result: dict[str, Any], written: Callable[[], None] = lambda: None) -> bool:
        """Answers it, unless it is answered or cancelled; whether it was not. `written` is called once the client can
        read all of the answer. What cannot be spelled out is answered with an error, and raised."""
        if not self._finish():
            return False
        try:
            self.connection.send({"id": self.request_id, "result": complete_result(result, self.caller)}, written)
        except Exception as error:
            told = f"A defect: the result cannot be spelled out ({type(error).__name__})."
            self.connection.send({"id": self.request_id, "error": ProtocolError(INTERNAL_ERROR, told).to_wire()})
            raise
        return True

    def fail(self, error: ProtocolError) -> None:
        """Answers it with an error, unless it is answered or cancelled."""
        if self._finish():
            self.connection.send({"id": self.request_id, "error": error.to_wire()})

    def cancel(self) -> bool:
        """The client does not wait any more; False where it was answered before."""
        with self._lock:
            fresh, self._done = not self._done, True
            self._cancelled = self._cancelled or fresh
        if fresh:
            self._over(self)
        return fresh

    def _finish(self) -> bool:
        with self._lock:
            fresh, self._done = not self._done, True
        if fresh:
            self._over(self)
        return fresh
