"""Programs that run the code or the command they are given: an allow rule cannot speak of them as a whole."""

import re

_RUNNERS = frozenset({"python", "bash", "sh", "env", "xargs", "sudo", "timeout", "node", "perl", "ruby"})


def runs_code(program: str) -> bool:
    """Whether a program is an interpreter or a wrapper, by any path and in any version."""
    name = program.rpartition("/")[2].casefold()
    return name in _RUNNERS or re.sub(r"[\d.]+$", "", name) in _RUNNERS
