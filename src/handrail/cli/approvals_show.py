"""approvals show: a request as it waits, with what its trial would change and what it printed."""

from argparse import Namespace

from handrail.cli.answering import how_again, outdated_files
from handrail.cli.approvals import SCHEMA, waiting_row
from handrail.cli.exits import OK
from handrail.cli.inbox import found_request, short_id_of
from handrail.cli.next_step import how_to_answer
from handrail.cli.output import answer, answer_json, note
from handrail.cli.request import request_text
from handrail.protocol.permission import Preview
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Shows the question; the differences and the output where they are asked for."""
    waiting = found_request(options)
    request = waiting.request
    if options.json:
        row = waiting_row(waiting, {request.id: short_id_of(request.id)})
        answer_json(encode({"schema": SCHEMA, "waiting": [row], "granted": ()}))
        return OK
    again = how_again(request)
    outdated = outdated_files(options, waiting, request)
    answer(request_text(request, outdated, again))
    if request.preview is not None and request.preview.tried is not None:
        _print_trial(options, request.preview)
    note(how_to_answer(request, outdated=bool(outdated)))
    return OK


def _print_trial(options: Namespace, preview: Preview) -> None:
    if options.diff:
        answer(f"\n{preview.text}")
        if preview.truncated:
            note("the diff is cut: it is too long to be kept whole")
    if options.output:
        answer(f"\n{preview.output}")
