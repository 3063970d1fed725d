"""approvals retry: tries the command of a request again, as it is or as somebody changed it."""

from argparse import Namespace

from handrail.cli.answering import opened, refuse_other_variables
from handrail.cli.approvals import SCHEMA
from handrail.cli.exits import FAILED, WAITING, Stop
from handrail.cli.inbox import found_request
from handrail.cli.next_step import how_to_answer
from handrail.cli.output import answer, answer_json, note, one_line
from handrail.cli.patience import saying_what_takes_long
from handrail.cli.request import request_text
from handrail.protocol.error import ToolError, UsageError
from handrail.protocol.tool import label
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Tries it, and prints what came of it as a question; the question that it takes the place of is gone."""
    waiting = found_request(options)
    if waiting.request.command is None:
        called = one_line(label(waiting.request.tool_name, waiting.request.server_name))
        raise Stop(f"only commands are tried, and this is {called}. Nothing was done.", FAILED)
    with opened(options, waiting) as rail:
        refuse_other_variables(rail, waiting)
        try:
            with saying_what_takes_long(options, f"{options.command or waiting.request.command}, tried in a copy"):
                request = rail.retry(waiting.request.id, options.command)
        except (ToolError, UsageError) as error:
            told = error.message if isinstance(error, ToolError) else str(error)
            raise Stop(f"not tried: {told.rstrip('.')}. The request waits as it was.", FAILED) from None
    if options.json:
        answer_json(encode({"schema": SCHEMA, "request": request}))
        return WAITING
    answer(request_text(request))
    note(how_to_answer(request))
    return WAITING
