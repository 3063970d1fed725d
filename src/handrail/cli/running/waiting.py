"""What waits for a person, where nobody is asked: what it is, and how to answer it."""

from handrail.agent.turn import Turn
from handrail.cli.next_step import how_to_answer
from handrail.cli.output import note, one_line, warn
from handrail.cli.request import request_text


def print_waiting(turn: Turn, resume: str) -> None:
    """The requests with their previews, the questions with their choices, and what goes on afterwards."""
    for request in turn.requests:
        note(request_text(request).rstrip())
        warn(how_to_answer(request))
    for question in turn.questions:
        warn(f"? {one_line(question.question)}")
        for number, option in enumerate(question.options, 1):
            warn(f"{number:>3}  {one_line(option)}")
        warn(f"To reply: {resume} {'NUMBER-OR-TEXT' if question.options else 'TEXT'}")
    if turn.requests:
        warn(f"Then go on: {resume}")
