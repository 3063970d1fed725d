"""What the methods of the library stand on: a session, and work in it that its end waits for."""

import os
from collections.abc import Callable
from threading import Condition, Lock, get_ident
from typing import ParamSpec, TypeVar

from handrail.protocol.errors import UsageError
from handrail.runtime.session import Session

CLOSED = "this Handrail is closed"
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")


class CallGate:
    """Whatever has a session. Work enters it until it is shut, and whoever shuts it waits for what is inside."""

    _session: Session

    def __init__(self) -> None:
        self._inside: dict[object, int] = {}
        """The calls that are on their way, each with its thread."""
        self._lock = Lock()
        self._door = Condition(self._lock)
        self._closed = False
        self._process = os.getpid()

    def _enter(
        self, work: Callable[Parameters, Returned], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> Returned:
        """Does something that `close` has to wait for."""
        token, thread = object(), get_ident()
        self._check_process()
        try:
            with self._lock:
                if self._closed and thread not in self._inside.values():
                    raise UsageError(CLOSED)
                self._inside[token] = thread
            return work(*args, **kwargs)
        finally:
            with self._lock:
                self._inside.pop(token, None)
                if self._closed:
                    self._door.notify_all()

    def _check_open(self) -> None:
        """For what waits for nothing. It takes no lock, so that a signal's handler can cancel, and lets everybody in
        while `close` waits for calls, so that they can be cancelled."""
        self._check_process()
        if self._closed and not self._inside:
            raise UsageError(CLOSED)

    def _check_process(self) -> None:
        if os.getpid() != self._process:
            raise UsageError("this Handrail belongs to the process that opened it; open one of your own after a fork")

    def _shut(self) -> bool:
        """Lets nothing in any more and waits for what is inside. False where that is done, or not ours to do."""
        if os.getpid() != self._process:
            return False  # a forked child leaves its parent's work alone
        with self._door:
            if get_ident() in self._inside.values():
                raise UsageError("a Handrail cannot be closed from inside one of its calls")
            if self._closed:
                return False
            self._closed = True
            self._door.wait_for(lambda: not self._inside)
        return True
