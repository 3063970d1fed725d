"""approvals show: a request as it waits, with what its preview would change and what it printed."""

from argparse import Namespace

from handrail.cli.answering import describe_retry, list_outdated_files
from handrail.cli.approvals import SCHEMA, build_waiting_row
from handrail.cli.exits import OK
from handrail.cli.inbox import resolve_request, shorten_request_id
from handrail.cli.next_step import describe_answer_commands
from handrail.cli.output import print_json, print_note, print_out
from handrail.cli.request import render_request_text
from handrail.protocol.changes import Preview
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Shows the question; the differences and the output where they are asked for."""
    waiting = resolve_request(options)
    request = waiting.request
    if options.json:
        row = build_waiting_row(waiting, {request.id: shorten_request_id(request.id)})
        print_json(encode({"schema": SCHEMA, "waiting": [row], "granted": ()}))
        return OK
    again = describe_retry(request)
    outdated = list_outdated_files(options, waiting, request)
    print_out(render_request_text(request, outdated, again))
    if request.preview is not None and request.preview.tried is not None:
        _print_trial(options, request.preview)
    print_note(describe_answer_commands(request, outdated=bool(outdated)))
    return OK


def _print_trial(options: Namespace, preview: Preview) -> None:
    if options.diff:
        print_out(f"\n{preview.text}")
        if preview.truncated:
            print_note("the diff is cut: it is too long to be kept whole")
    if options.output:
        print_out(f"\n{preview.output}")
