"""Asks the person who typed the command, where there is one at a terminal."""

import sys
from argparse import Namespace
from typing import Any

import msgspec

from handrail.api import Handrail
from handrail.cli.output import warn
from handrail.protocol.calls import Done
from handrail.protocol.errors import UsageError
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.terminal.asking import ask_on_terminal, is_person_present, say_answered_elsewhere, say_kept
from handrail.terminal.source import PromptResult, RequestHooks


def can_ask(options: Namespace) -> bool:
    """Whether a question may be put: what is piped, or read by a program, is not interrupted by one."""
    return not options.json and sys.stdout is not None and sys.stdout.isatty() and is_person_present()


def ask_until_answered(rail: Handrail, result: ToolResult[Any], options: Namespace) -> ToolResult[Any]:
    """What came of a call that needs a yes: its result, once the person answered; as it was, where they did not."""
    while (request := find_request(result)) is not None:
        said = ask_on_terminal(request, source=build_session_hooks(rail), plain=options.plain)
        if said.answer is None and _is_open(rail, said.request):
            return replace_request(result, said.request)
        result = _answered(rail, said, options)
    return result


def find_request(result: ToolResult[Any]) -> PermissionRequest | None:
    """The request that a result waits for."""
    if result.error is None or result.error.code != "PERMISSION_REQUIRED":
        return None
    return convert(result.error.details, PermissionRequest)


def build_session_hooks(rail: Handrail) -> RequestHooks:
    """Where a question comes from that this session has put."""
    return RequestHooks(lambda request: _is_open(rail, request), rail.outdated, rail.retry)


def replace_request(result: ToolResult[Any], request: PermissionRequest) -> ToolResult[Any]:
    """The same result, of a request that took the place of the one that it waited for."""
    if result.error is None:
        return result
    error = msgspec.structs.replace(result.error, details=msgspec.to_builtins(request))
    return msgspec.structs.replace(result, error=error)


def _answered(rail: Handrail, said: PromptResult, options: Namespace) -> ToolResult[Any]:
    """What came of the call, whoever answered."""
    request, outcome = said.request, None
    try:
        outcome = rail.answer(request, said.answer) if said.answer is not None else None
    except UsageError:
        if _is_open(rail, request):
            raise
        say_answered_elsewhere(request)
    results = outcome.results if isinstance(outcome, Done) else ()
    own = [one for one in results if one.tool_call_id == request.tool_call_id]
    # Without one, somebody else ran it, or it waits again for what came of it.
    result = own[0] if own else rail.call(request.called, {}, tool_call_id=request.tool_call_id)
    if outcome is not None:
        say_kept(said, result, plain=options.plain)
    return result


def _is_open(rail: Handrail, request: PermissionRequest) -> bool:
    return any((one.id, one.revision) == (request.id, request.revision) for one in rail.waiting())


def say_left() -> None:
    """What a person reads who ended the question without an answer."""
    warn("Left waiting. Your files are untouched. handrail approvals lists it.")
