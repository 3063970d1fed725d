"""approvals retry: tries the command of a request again, as it is or as somebody changed it."""

from argparse import Namespace

from handrail.cli.answering import open_asking_session, refuse_other_variables
from handrail.cli.approvals import SCHEMA
from handrail.cli.exits import FAILED, WAITING, CommandFailed
from handrail.cli.inbox import resolve_request
from handrail.cli.next_step import describe_answer_commands
from handrail.cli.output import print_json, print_note, print_out
from handrail.cli.patience import print_slow_notice
from handrail.cli.request import render_request_text
from handrail.protocol.errors import ToolError, UsageError
from handrail.protocol.text import to_one_line
from handrail.protocol.tool_spec import format_tool_label
from handrail.protocol.wire import encode


def run(options: Namespace) -> int:
    """Tries it, and prints what came of it as a question; the question that it takes the place of is gone."""
    waiting = resolve_request(options)
    if waiting.request.command is None:
        called = to_one_line(format_tool_label(waiting.request.tool_name, waiting.request.server_name))
        raise CommandFailed(f"only commands are tried, and this is {called}. Nothing was done.", FAILED)
    with open_asking_session(options, waiting) as rail:
        refuse_other_variables(rail, waiting)
        try:
            with print_slow_notice(options, f"{options.command or waiting.request.command}, tried in a copy"):
                request = rail.retry(waiting.request.id, options.command)
        except (ToolError, UsageError) as error:
            told = error.message if isinstance(error, ToolError) else str(error)
            raise CommandFailed(f"not tried: {told.rstrip('.')}. The request waits as it was.", FAILED) from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "request": request}))
        return WAITING
    print_out(render_request_text(request))
    print_note(describe_answer_commands(request))
    return WAITING
