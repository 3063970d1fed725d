"""What waits for a person, where nobody is asked: what it is, and how to answer it."""

from handrail.agent.turn import Turn
from handrail.cli.next_step import describe_answer_commands
from handrail.cli.output import print_note, warn
from handrail.cli.request import render_request_text
from handrail.protocol.text import to_one_line


def print_waiting(turn: Turn, resume: str) -> None:
    """The requests with their previews, the questions with their choices, and what goes on afterwards."""
    for request in turn.requests:
        print_note(render_request_text(request).rstrip())
        warn(describe_answer_commands(request))
    for question in turn.questions:
        warn(f"? {to_one_line(question.question)}")
        for number, option in enumerate(question.options, 1):
            warn(f"{number:>3}  {to_one_line(option)}")
        warn(f"To reply: {resume} {'NUMBER-OR-TEXT' if question.options else 'TEXT'}")
    if turn.requests:
        warn(f"Then go on: {resume}")
