"""The thread of a tool whose code may never end. Python cannot end a thread, so a call can abandon it."""

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextvars import copy_context
from typing import Literal, TypeVar

from handrail.protocol.errors import ToolError
from handrail.runtime.locks import get_call_thread, work_for

_POLL_SECONDS = 0.02
_MAX_ABANDONED = 32
_abandoned: "list[_ToolThread]" = []
Work = TypeVar("Work")


class AbandonedError(Exception):
    """The call ended, and the thread still runs."""

    def __init__(self, code: Literal["CANCELLED", "TIMEOUT"]) -> None:
        super().__init__(code)
        self.code: Literal["CANCELLED", "TIMEOUT"] = code


class _ToolThread(threading.Thread):
    """Works for the call of another thread."""

    def __init__(self, run: Callable[[], None]) -> None:
        super().__init__(name="handrail-tool", target=copy_context().run, args=(self._run,), daemon=True)
        self._work = run
        self.caller = get_call_thread()
        """The thread that made the call. 0 once that no longer waits."""

    def _run(self) -> None:
        work_for(lambda: self.caller)
        self._work()


def run_in_thread(
    work: Callable[[Callable[[], bool]], Work],
    cancelled: Callable[[], bool],
    *,
    grace: float,
    seconds: float = float("inf"),
) -> Future[Work]:
    """What the work came to, whatever it raised. AbandonedError if it goes on for `grace` seconds after its time.

    The work gets a check of whether it should stop.
    """
    stop, outcome = threading.Event(), Future[Work]()

    def run() -> None:
        try:
            outcome.set_result(work(lambda: stop.is_set() or cancelled()))
        except BaseException as error:  # a third party can raise anything
            outcome.set_exception(error)

    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    if len(_abandoned) >= _MAX_ABANDONED:
        text = f"{_MAX_ABANDONED} calls were abandoned here and still run. Nothing was run. Restart handrail."
        raise ToolError("UNAVAILABLE", text)
    thread = _ToolThread(run)
    try:
        _start(thread)
        _wait(thread, cancelled, stop, grace, time.monotonic() + seconds)
    except BaseException:
        stop.set()
        thread.caller = 0
        _abandoned.append(thread)
        raise
    return outcome


def _start(thread: threading.Thread) -> None:
    try:
        thread.start()
    except RuntimeError as error:
        raise ToolError("UNAVAILABLE", f"No thread is free for the call: {error}. Nothing was run.") from None


def _wait(
    thread: threading.Thread, cancelled: Callable[[], bool], stop: threading.Event, grace: float, until: float
) -> None:
    while thread.is_alive():
        thread.join(_POLL_SECONDS)
        late = time.monotonic() > until
        if late or cancelled():
            stop.set()
            thread.join(grace)
            if thread.is_alive():
                raise AbandonedError("TIMEOUT" if late else "CANCELLED")
