"""approvals reply: what a person says to a question of the model."""

import os
from argparse import Namespace

from handrail.api import Handrail
from handrail.cli.approvals import SCHEMA
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_note, print_out
from handrail.cli.preferences import load_settings
from handrail.cli.questions import render_question, resolve_question
from handrail.protocol.errors import UsageError
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode
from handrail.terminal.question_prompt import parse_reply


def run(options: Namespace) -> int:
    """Gives the question its reply; without one it is only shown."""
    asked = resolve_question(options)
    question = asked.question
    if not options.words and not options.put_aside:
        raise CommandFailed(f"say what you reply, or --put-aside.\n{render_question(question)}")
    workspace = options.workspace or asked.workspace
    if workspace is None or not os.path.isdir(workspace):
        told = f"the folder {to_one_line(workspace)} is not there" if workspace else "its workspace was not noted"
        raise CommandFailed(f"{told}. Nothing was replied. Name it with --workspace.", FAILED)
    said = None if options.put_aside else parse_reply(question, " ".join(options.words))
    with Handrail(workspace, session=asked.session_id, settings=load_settings(options, None, workspace)) as rail:
        try:
            done = rail.reply(question, said)
        except UsageError as error:
            if rail.is_pending(question):
                raise CommandFailed(f"{error} Nothing was replied; it still waits.") from None
            raise CommandFailed(f"replied elsewhere: {error}", FAILED) from None
    if options.json:
        print_json(encode({"schema": SCHEMA, "results": done.results, "waiting": ()}))
        return OK
    print_out(f"put aside: {to_one_line(question.question)}\n" if said is None else f"{done.results[0].content}\n")
    print_note(f"session {to_one_line(asked.session_id)} has it, and goes on from there when its loop does")
    return OK
