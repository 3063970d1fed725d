"""The shell that runs commands: where it is."""

import os
from collections.abc import Callable

from handrail.protocol.errors import ToolError

_PLACES = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


def find_bash(path: str, usable: Callable[[str], bool]) -> str:
    """The system's own before others on a PATH; ToolError where there is none that is usable."""
    on_path = (os.path.join(folder, "bash") for folder in path.split(os.pathsep))
    for program in (*_PLACES, *on_path):
        if os.path.isabs(program) and os.path.isfile(program) and os.access(program, os.X_OK) and usable(program):
            return program
    raise ToolError(
        "UNAVAILABLE", "There is no bash in /bin, in /usr/bin or on PATH, so no command can be run. Install bash."
    )
