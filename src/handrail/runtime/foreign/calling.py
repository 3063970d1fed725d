"""Calls another server's tool so that nothing it does, or does not do, holds up the session."""

import threading
from typing import Any

from msgspec.structs import replace

from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text
from handrail.protocol.tool_spec import ForeignArguments, ToolSpec
from handrail.runtime.foreign.outcome import sanitize_error, sanitize_output
from handrail.runtime.sources import ToolSource
from handrail.tools.contract import CommandContext, Output

_POLL_SECONDS = 0.05
_CANCEL_SECONDS = 5.0
"""Seconds that a source has to end what was cancelled, before it is left to itself."""


def call_foreign_tool(
    source: ToolSource, spec: ToolSpec, context: CommandContext, arguments: ForeignArguments, *, looks: bool
) -> Output:
    """What came of it; ToolError where that is nothing. The source works in a thread of its own, which is left behind
    where it does not end although it was cancelled."""
    work = _ForeignCallThread(source, spec.own_name, context, arguments.given)
    try:
        work.start()
        given = work.result(context)
    except BaseException:
        work.stop.set()
        raise
    return sanitize_output(spec, given, looks=looks)


class _ForeignCallThread:
    def __init__(self, source: ToolSource, name: str, context: CommandContext, given: dict[str, Any]) -> None:
        self.stop = threading.Event()
        self._done = threading.Event()
        self._given: object = None
        self._error: BaseException | None = None
        self._source, self._name, self._arguments = source, name, given
        self._context = replace(context, cancelled=lambda: self.stop.is_set() or context.cancelled())

    def start(self) -> None:
        try:
            threading.Thread(target=self._run, name="handrail-foreign", daemon=True).start()
        except RuntimeError as error:
            raise ToolError("UNAVAILABLE", f"No thread can be had for the call: {error}. Nothing was sent.") from None

    def result(self, context: CommandContext) -> object:
        """Waits for it. Nobody knows what a call did that was cancelled on its way."""
        patience = _CANCEL_SECONDS
        while not self._done.wait(_POLL_SECONDS):
            if context.cancelled():
                patience -= _POLL_SECONDS
            if patience <= 0:
                self.stop.set()
                told = f"The call was cancelled, and {self._source.server} did not end it."
                raise ToolError("CANCELLED", f"{told} What it did is not known; look before you repeat it.")
        if self._error is not None:
            raise self._failure(self._error)
        return self._given

    def _run(self) -> None:
        try:
            self._given = self._source.call(self._context, self._name, self._arguments)
        except BaseException as error:  # whatever it is: the session goes on
            self._error = error
        finally:
            self._done.set()

    def _failure(self, error: BaseException) -> ToolError:
        if isinstance(error, ToolError):
            return sanitize_error(error)
        what = clip_text(f"{type(error).__name__}: {error}", 300)
        told = f"The connection to {self._source.server} failed in a way that it should not ({what})."
        return ToolError("INTERNAL", f"{told} What the call did is not known; look before you repeat it.")
