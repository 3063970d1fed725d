"""Asks the person who typed the command, if they are at a terminal."""

import sys
from argparse import Namespace
from typing import Any

from handrail.api import Handrail
from handrail.cli.output import warn
from handrail.protocol.calls import Done, Parked
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.wire import convert
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover, is_person_present


def can_ask(options: Namespace) -> bool:
    """Whether a prompt may be shown. Output for a pipe or a program is not interrupted by one."""
    return not options.json and sys.stdout is not None and sys.stdout.isatty() and is_person_present()


def ask_until_answered(rail: Handrail, result: ToolResult[Any], options: Namespace) -> ToolResult[Any]:
    """The result of a call after the answer of the person. If they leave it for later, it still needs approval."""
    if result.error is None or result.error.code != "PERMISSION_REQUIRED":
        return result
    request = convert(result.error.details, PermissionRequest)
    hooks = RequestHooks(rail.is_pending, rail.outdated, rail.retry)
    outcome = rail.ask(
        Parked(batch_id=request.batch_id, requests=(request,)), TerminalApprover(hooks, plain=options.plain)
    )
    results = outcome.results if isinstance(outcome, Done) else ()
    own = [one for one in results if one.tool_call_id == request.tool_call_id]
    # Otherwise the call is still parked, or another process ran it.
    return own[0] if own else rail.call(request.called, {}, tool_call_id=request.tool_call_id)


def say_left() -> None:
    """For a person who ended the prompt without an answer."""
    warn("Left waiting. Your files are untouched. handrail approvals lists it.")
