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
_abandoned: list[threading.Thread] = []
Work = TypeVar("Work")


class AbandonedError(Exception):
    """The call ended, and the thread still runs."""

    def __init__(self, code: Literal["CANCELLED", "TIMEOUT"]) -> None:
        super().__init__(code)
        self.code: Literal["CANCELLED", "TIMEOUT"] = code


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
    stop, is_abandoned, outcome = threading.Event(), threading.Event(), Future[Work]()
    caller, until = get_call_thread(), time.monotonic() + seconds

    def run() -> None:
        work_for(lambda: 0 if is_abandoned.is_set() else caller)
        try:
            outcome.set_result(work(lambda: stop.is_set() or cancelled()))
        except BaseException as error:  # a third party can raise anything
            outcome.set_exception(error)

    _abandoned[:] = [thread for thread in _abandoned if thread.is_alive()]
    if len(_abandoned) >= _MAX_ABANDONED:
        text = f"{_MAX_ABANDONED} calls were abandoned here and still run. Nothing was run. Restart handrail."
        raise ToolError("UNAVAILABLE", text)
    thread = threading.Thread(name="handrail-tool", target=copy_context().run, args=(run,), daemon=True)
    try:
        try:
            thread.start()
        except RuntimeError as error:
            raise ToolError("UNAVAILABLE", f"No thread is free for the call: {error}. Nothing was run.") from None
        while thread.is_alive():
            thread.join(_POLL_SECONDS)
            is_late = time.monotonic() > until
            if is_late or cancelled():
                stop.set()
                thread.join(grace)
                if thread.is_alive():
                    raise AbandonedError("TIMEOUT" if is_late else "CANCELLED")
    except BaseException:
        stop.set()
        is_abandoned.set()
        _abandoned.append(thread)
        raise
    return outcome
