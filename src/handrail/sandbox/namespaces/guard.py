"""What bash reads before the command: nothing runs when nobody is there any more, and its limits hold from the start.

It comes by a file that BASH_ENV names, not in front of the command's text: what bash says about the text, such as the
line it finds wrong, is about the text alone.
"""

import os
import resource

from handrail.sandbox.limits import ResourceLimits

NOBODY_THERE = 125
"""The exit code of a command that was not begun, since who asked for it is gone."""

_KILOBYTE = 1024


def build_guard_script(lifeline: int, own: int, limits: str) -> bytes:
    """The script: `lifeline` reads to its end once the runtime is gone, `own` is the file the script comes by."""
    gone = f"read -t 0 -u {lifeline} && exit {NOBODY_THERE}"
    return f"unset BASH_ENV; {gone}; exec {lifeline}<&- {own}<&-; {limits}\n".encode()


def build_limit_script(limits: ResourceLimits) -> str:
    """What sets the limits of each process, as a part of the script."""
    chosen = ["ulimit -c 0", f"ulimit -f {count_file_kilobytes(limits)}"]
    if is_counted_by_namespace():
        threads = _at_most(resource.RLIMIT_NPROC, limits.threads)
        chosen.append(f"ulimit -u {threads}")
    return "; ".join(chosen)


def count_file_kilobytes(limits: ResourceLimits) -> int:
    """As bash counts: in kilobytes."""
    return _at_most(resource.RLIMIT_FSIZE, limits.file_size) // _KILOBYTE


def is_counted_by_namespace() -> bool:
    """Whether the kernel counts processes by user namespace; an older one counts all of the user's, who may well have
    more outside than a command may have inside."""
    numbers = os.uname().release.split("-")[0].split(".")[:2]
    return [int(number) if number.isdigit() else 0 for number in numbers] >= [5, 14]


def _at_most(limit: int, wanted: int) -> int:
    most = resource.getrlimit(limit)[1]
    return wanted if most == resource.RLIM_INFINITY else min(wanted, most)
