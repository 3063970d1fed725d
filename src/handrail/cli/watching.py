"""approvals --watch: an inbox that stays open. On a terminal it asks; into a pipe it tells, one line a change."""

import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from msgspec import structs

from handrail.cli.answering import answer_request, build_inbox_hooks
from handrail.cli.approvals import SCHEMA, build_waiting_row, summarize_request_changes
from handrail.cli.asking import can_ask
from handrail.cli.exits import OK, CommandFailed
from handrail.cli.inbox import build_short_ids
from handrail.cli.output import print_json, print_note, print_out, warn
from handrail.protocol.errors import HandrailError
from handrail.protocol.permissions import Answer, InboxRequest, PermissionRequest
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.terminal.permission_prompt import RequestHooks, TerminalApprover
from handrail.terminal.request_text import describe_subject

_POLL_SECONDS = 0.5
"""Between two looks."""


def watch(options: Namespace, list_waiting: Callable[[], list[InboxRequest]]) -> int:
    """Goes on until somebody ends it (Ctrl-C), or nobody reads it any more."""
    asks = can_ask(options)
    known: dict[str, InboxRequest] = {}
    if not options.json:
        print_note("waiting for requests; Ctrl-C ends it")
    while True:
        found = {one.request.id: one for one in list_waiting()}
        gone = [one for name, one in known.items() if name not in found]
        new = [one for name, one in found.items() if name not in known]
        known = found
        if asks:
            for number, one in enumerate(new, start=1):
                _ask(options, one, build_inbox_hooks(options, one, list_waiting), number, len(new))
        else:
            changes = [(one, "answered") for one in gone] + [(one, one.state) for one in new]
            if not all(_tell(options, one, change, known) for one, change in changes):
                return OK
        time.sleep(_POLL_SECONDS)


def _ask(options: Namespace, one: InboxRequest, source: RequestHooks, number: int, of: int) -> None:
    """Asks about one request, and answers it. One that cannot be answered here is told, and the next one comes."""
    request = one.request
    if not source.still_open(request):
        return
    if one.answer is not None:
        print_note(f"answered, not run: {describe_subject(request)} (handrail approvals allow {request.id} runs it)")
        return
    warn(f"session {to_one_line(request.session_id)} in {to_one_line(one.workspace or '?')}")
    approver = TerminalApprover(source, plain=options.plain)
    reply = approver.ask(request, number, of)
    if not isinstance(reply.answer, Answer) or not isinstance(reply.subject, PermissionRequest):
        return
    try:
        answer_request(options, structs.replace(one, request=reply.subject), reply.answer, report=approver.report)
    except (CommandFailed, HandrailError) as error:
        warn(f"handrail: {error}")


def _tell(options: Namespace, one: InboxRequest, change: str, known: dict[str, InboxRequest]) -> bool:
    """One line of what changed; whether somebody may still read it."""
    names = build_short_ids([*known.values(), one], [])
    if options.json:
        told: dict[str, Any] = {"schema": SCHEMA, "change": change}
        return print_json(encode(told | build_waiting_row(one, names)))
    what = f"{describe_subject(one.request)}{summarize_request_changes(one.request)}"
    print_out(f"{change}  {names[one.request.id]}  {one.request.session_id}  {what}\n")
    return True
