"""The form of errors for people: what failed and what was not done, then one next step."""

import re

from handrail.protocol.text import to_one_line
from handrail.terminal.slash_hints import to_slash_commands
from handrail.terminal.style import Paint, wrap_line

_CAPITAL = re.compile(r"(A|An|Another|Change|Command|Every|It|No|Nothing|Only|Rule|Stopped|That|The|There|This|You)\b")
"""The first word of a message for models. Others may be names."""


def render_error(text: str, then: str, paint: Paint, columns: int | None, *, in_session: bool) -> list[str]:
    """The rows of an error, which is escaped. `then`: the next step. `in_session`: as slash commands."""
    if in_session:
        text, then = to_slash_commands(text), to_slash_commands(then)
    if _CAPITAL.match(text):
        text = text[0].lower() + text[1:]
    if then:
        text = re.sub(rf" `{re.escape(then)}` [^.]*\.", "", text)
    head, *more = text.split("\n")
    lines = [f"{paint('error:', 'failed')} {head}", *more] if text else []
    rows = [row for line in lines for row in wrap_line(line, columns, 7).splitlines()]
    # The next step stays in one line, so that a command can be copied.
    return [*rows, f"{paint('next:', 'running')} {then}"] if then else rows


def describe_turn_failure(message: str) -> str:
    """The text of an error that ended a turn. The session has all of the turn."""
    line = to_one_line(message)
    return f"{line if line.endswith(('.', '!', '?', '…')) else f'{line}.'} The session is kept."
