"""What the person says: on the command line, on stdin, or both."""

import os
import stat
import sys
from argparse import Namespace

from handrail.agent.prompt import fence_text
from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_note

_MAX_PROMPT_BYTES = 1_000_000


def read_prompt(options: Namespace) -> str | None:
    """The prompt; None where none was given. `-` is all of stdin; what is piped in beside a prompt is its material."""
    given: str | None = options.prompt
    if given == "-":
        given = _stdin()
    elif given is not None and given.strip() and _is_piped():
        material = _stdin().strip("\n")
        given = f"{given}\n\n{fence_text('stdin', material)}" if material else given
    if given is not None and not given.strip():
        raise CommandFailed(
            "the prompt is empty. Nothing was run. Say what is to be done: handrail run 'fix the failing test'"
        )
    return given


def _is_piped() -> bool:
    """Whether somebody put something there for us: a pipe or a file, not a terminal, a device or a socket."""
    try:
        mode = os.fstat(0).st_mode
    except OSError:
        return False
    return sys.stdin is not None and (stat.S_ISFIFO(mode) or stat.S_ISREG(mode))


def _stdin() -> str:
    if sys.stdin is None:
        raise CommandFailed("the prompt cannot be read: stdin is closed. Nothing was run.")
    if sys.stdin.isatty():
        print_note("waiting for the prompt; end with Ctrl-D")
    data = sys.stdin.buffer.read(_MAX_PROMPT_BYTES + 1)
    if len(data) > _MAX_PROMPT_BYTES:
        told = "stdin has more than 1 MB, too much for a model to read at once. Nothing was run."
        raise CommandFailed(f"{told} Put it into a file of the workspace, and name that.")
    return data.decode(errors="replace")
