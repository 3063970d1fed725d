"""approvals --watch: an inbox that stays open. On a terminal it asks; into a pipe it tells, one line a change."""

import time
from argparse import Namespace
from typing import Any

from msgspec import structs

from handrail.cli.answering import answer_request, source_of
from handrail.cli.approvals import SCHEMA, waiting_row, would_change
from handrail.cli.asking import can_ask
from handrail.cli.exits import OK, Stop
from handrail.cli.inbox import short_names
from handrail.cli.output import answer, answer_json, note, one_line, warn
from handrail.protocol.error import HandrailError
from handrail.protocol.wire import encode
from handrail.store.inbox import Inbox, Waiting
from handrail.terminal.asking import ask_on_terminal
from handrail.terminal.request import subject

_SECONDS = 0.5
"""Between two looks."""


def watch(options: Namespace, inbox: Inbox) -> int:
    """Goes on until somebody ends it (Ctrl-C), or nobody reads it any more."""
    asks = can_ask(options)
    known: dict[str, Waiting] = {}
    if not options.json:
        note("waiting for requests; Ctrl-C ends it")
    while True:
        found = {one.request.id: one for one in inbox.waiting()}
        gone = [one for name, one in known.items() if name not in found]
        new = [one for name, one in found.items() if name not in known]
        known = found
        if asks:
            for number, one in enumerate(new, start=1):
                _ask(options, inbox, one, number, len(new))
        else:
            changes = [(one, "answered") for one in gone] + [(one, one.state) for one in new]
            if not all(_tell(options, one, change, known) for one, change in changes):
                return OK
        time.sleep(_SECONDS)


def _ask(options: Namespace, inbox: Inbox, one: Waiting, number: int, of: int) -> None:
    """Asks about one request, and answers it. One that cannot be answered here is told, and the next one comes."""
    request, source = one.request, source_of(options, one, inbox)
    if not source.still_open(request):
        return
    if one.answer is not None:
        note(f"answered, not run: {subject(request)} (handrail approvals allow {request.id} runs it)")
        return
    warn(f"session {one_line(request.session_id)} in {one_line(one.workspace or '?')}")
    said = ask_on_terminal(request, number, of, source=source, plain=options.plain)
    if said.answer is None:
        return
    try:
        answer_request(options, structs.replace(one, request=said.request), said.answer, asked=True)
    except (Stop, HandrailError) as error:
        warn(f"handrail: {error}")


def _tell(options: Namespace, one: Waiting, change: str, known: dict[str, Waiting]) -> bool:
    """One line of what changed; whether somebody may still read it."""
    names = short_names([*known.values(), one], [])
    if options.json:
        told: dict[str, Any] = {"schema": SCHEMA, "change": change}
        return answer_json(encode(told | waiting_row(one, names)))
    what = f"{subject(one.request)}{would_change(one.request)}"
    answer(f"{change}  {names[one.request.id]}  {one.request.session_id}  {what}\n")
    return True
