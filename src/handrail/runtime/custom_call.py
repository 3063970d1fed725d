"""Calls of custom tools. Their code may raise anything, never end, or return anything."""

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.protocol.errors import CODES, StoreError, ToolError
from handrail.protocol.wire import sanitize_json
from handrail.runtime.tool_thread import AbandonedError, run_in_thread
from handrail.tools.custom import check_output
from handrail.tools.tool import Context, Output, Tool
from handrail.workspace.roots import Root

_GRACE_SECONDS = 1.0
"""How long a tool may go on after its call was cancelled, before handrail abandons it."""
_HOOK_SECONDS = 10.0
"""How long a tool may take to describe a call before it runs."""
_MAX_UPDATE_CHARS, _MIN_UPDATE_CHARS = 1_000_000, 1_000
"""How much progress a tool reports, and how much of that one update counts at least."""


def run_custom_tool(
    tool: Tool,
    context: Context,
    arguments: msgspec.Struct,
    roots: tuple[Root, ...],
    explain: Callable[[BaseException], ToolError],
) -> Output:
    """The output of a tool, or one ToolError. The call ends in time, whatever the tool does."""
    name = tool.spec.name

    def work(cancelled: Callable[[], bool]) -> Output:
        own = replace(context, cancelled=cancelled, metadata=_UpdateLimit(context.metadata))
        try:
            with context.workspace.root_sets.lend(roots):
                return check_output(tool.run(own, arguments), name)
        except ToolError as error:  # of any class, with anything in it
            code = error.code if error.code in CODES else "INTERNAL"
            raise ToolError(code, str(error.message), details=sanitize_json(error.details)[0]) from None
        except StoreError:
            raise
        except BaseException as error:  # also SystemExit: it ends this thread only
            raise explain(error) from None
        finally:
            context.workspace.drop_cached()

    try:
        outcome = run_in_thread(work, context.cancelled, grace=_GRACE_SECONDS, seconds=tool.timeout)
    except AbandonedError as abandoned:
        late = abandoned.code == "TIMEOUT"
        message = f"took longer than {tool.timeout:g} s" if late else "was cancelled and did not stop"
        unknown = "It may still run. Its effects are unknown. Check before you repeat it."
        raise ToolError(abandoned.code, f"{name} {message}. {unknown}") from None
    error = outcome.exception()
    if error is None or isinstance(error, ToolError | StoreError):
        return outcome.result()
    raise explain(RuntimeError())  # an error that cannot be described is described by its place


def guard_hooks(tool: Tool) -> Tool:
    """The tool, whose other functions end in time too, and raise nothing but a ToolError."""
    spec = tool.spec
    plain = dict(zip(("touches", "preview", "asks"), Tool.__struct_defaults__, strict=False))
    hooks = {name: hook for name, default in plain.items() if (hook := getattr(tool, name)) is not default}
    if spec.format_error is not None:
        spec = replace(spec, format_error=_guard(spec.format_error, spec.name))
    return replace(tool, spec=spec, **{name: _guard(hook, spec.name) for name, hook in hooks.items()})


def _guard(hook: Callable[..., Any], name: str) -> Callable[..., Any]:
    def run(*given: Any) -> Any:
        try:
            outcome = run_in_thread(lambda _: hook(*given), lambda: False, grace=0, seconds=_HOOK_SECONDS)
        except AbandonedError:
            text = f"{name} did not describe the call within {_HOOK_SECONDS:g} s. Nothing was run."
            raise ToolError("TIMEOUT", text) from None
        error = outcome.exception()
        if error is None or isinstance(error, Exception):
            return outcome.result()
        raise ToolError("INTERNAL", f"{name} could not describe the call ({type(error).__name__}). Nothing was run.")

    return run


class _UpdateLimit:
    """Reports the progress of a tool. Updates after a million characters are dropped."""

    def __init__(self, report: Callable[..., None]) -> None:
        self._report, self._left = report, _MAX_UPDATE_CHARS

    def __call__(self, title: object = None, output: object = None, **more: Any) -> None:
        texts = [None if text is None else str(text) for text in (title, output)]
        self._left -= _MIN_UPDATE_CHARS + sum(len(text or "") for text in (*texts, str(more)))
        if self._left >= 0:
            self._report(*texts, **more)
