"""Asks the person who typed the command, where there is one at a terminal."""

import sys
from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.output import note
from handrail.protocol.batch import Done
from handrail.protocol.error import UsageError
from handrail.protocol.permission import PermissionRequest
from handrail.protocol.result import ToolResult
from handrail.rail import Handrail
from handrail.terminal.asking import ask_on_terminal, say_answered_elsewhere, somebody_is_there


def can_ask(options: Namespace) -> bool:
    """Whether a question may be put: what is piped, or read by a program, is not interrupted by one."""
    return not options.json and sys.stdout is not None and sys.stdout.isatty() and somebody_is_there()


def asked(rail: Handrail, result: ToolResult[Any], options: Namespace) -> ToolResult[Any]:
    """What came of a call that needs a yes: its result, once the person answered; as it was, where they did not."""
    request = msgspec.convert(result.error.details if result.error else None, PermissionRequest)

    def still_open() -> bool:
        return any(one.id == request.id for one in rail.waiting())

    said = ask_on_terminal(request, still_open=still_open, plain=options.plain)
    if said is None and still_open():
        return result
    try:
        outcome = rail.answer(request, said) if said is not None else None
    except UsageError:
        if still_open():
            raise
        say_answered_elsewhere(request)
        outcome = None
    if isinstance(outcome, Done):
        return next(one for one in outcome.results if one.tool_call_id == request.tool_call_id)
    return rail.call(request.tool_name, {}, tool_call_id=request.tool_call_id)  # somebody else ran it


def say_left() -> None:
    """What a person reads who ended the question without an answer."""
    note("Left waiting. Nothing was run. handrail approvals lists it.")
