"""What a host starts: our program by its name, so that the file is right on every machine that has it."""

import os
import sys
from collections.abc import Mapping

import msgspec


class Command(msgspec.Struct, frozen=True):
    """A program, and the words before ours."""

    program: str
    words: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    """What was asked for besides: --mode, --session."""

    def serving(self, workspace: str) -> list[str]:
        """The words that have it serve a workspace, without the program."""
        return [*self.words, "mcp", "--workspace", workspace, *self.extra]


def command_here(environ: Mapping[str, str], extra: tuple[str, ...] = ()) -> Command:
    """`handrail` where it is installed, since that starts soonest and needs no network; else `uvx`, which fetches it.

    One that is only in the environment that runs now does not count: whoever starts the host may not have entered it,
    and one that uvx made is gone tomorrow.
    """
    own = os.path.join(sys.prefix, "bin") if sys.prefix != sys.base_prefix else None
    for folder in environ.get("PATH", "").split(os.pathsep):
        program = os.path.join(folder, "handrail")
        if (
            os.path.isabs(folder)
            and folder.rstrip("/") != own
            and os.path.isfile(program)
            and os.access(program, os.X_OK)
        ):
            return Command("handrail", (), extra)
    return Command("uvx", ("handrail",), extra)
