"""Tier 2: starts a command in namespaces of its own."""

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from handrail.kernel.files import move_above_standard, open_pipe_above_standard
from handrail.sandbox.launch import Launch
from handrail.sandbox.layer.layer import Overlay
from handrail.sandbox.layer.mounting import require_programs, wrap_in_overlay
from handrail.sandbox.namespaces.fresh_signals import wrap_with_fresh_signals
from handrail.sandbox.namespaces.guard import build_guard_script


class PreparedCommand(NamedTuple):
    """Everything about a command's sandbox that does not differ from one start to the next."""

    program: str
    arguments: bytes
    """As bubblewrap reads them from a file."""
    bash: str
    environment: Mapping[str, str]
    filter: bytes
    limiting: str
    """What sets the limits of each process, for the guard."""


def launch_namespaced(
    prepared: PreparedCommand, text: str, overlay: Overlay | None = None, *, waits: bool = False
) -> Launch:
    """A command that is ready to be started, under its overlay if it has one. `waits`: it does not begin before it is
    let, whatever of its sandbox is ready."""
    opened: list[int] = []
    try:
        return _launch(prepared, text, overlay, opened, waits=waits)
    except BaseException:
        for descriptor in opened:
            os.close(descriptor)
        raise


def encode_arguments(words: Iterable[str]) -> bytes:
    """Arguments as bubblewrap reads them from a file."""
    return b"".join(b"%b\0" % os.fsencode(word) for word in words)


def _launch(prepared: PreparedCommand, text: str, overlay: Overlay | None, opened: list[int], *, waits: bool) -> Launch:
    status = _pipe(opened)[0]
    status_end = _both_ends(opened)
    lifeline_end, lifeline = _pipe(opened)
    script = _file(opened, lambda own: build_guard_script(lifeline_end, own, prepared.limiting))
    rules = _file(opened, lambda _: prepared.filter)
    # The lifeline once more: bubblewrap closes what it waits for, and goes on where that is at its end. Then bash,
    # which begins with the guard, sees that end too.
    gate = (_again(opened, lifeline_end),) if waits else ()
    own = (
        "--json-status-fd",
        str(status_end),
        "--seccomp",
        str(rules),
        *(("--block-fd", str(gate[0])) if gate else ()),
    )
    told = encode_arguments(own) + prepared.arguments
    # By a file: what is told names the hidden, and everybody can read a process's arguments.
    listed = _file(opened, lambda _: told)
    shell = (prepared.bash, "--noprofile", "--norc", "-c", text)
    argv = (prepared.program, "--args", str(listed), "--", *shell)
    if overlay is not None:
        argv = wrap_in_overlay(argv, overlay, require_programs())
    return Launch(
        tier=2 if overlay is None else 3,
        argv=wrap_with_fresh_signals(argv),
        # First: by that process/abandoned.py knows bubblewrap's processes for ours.
        environment={"BASH_ENV": f"/proc/self/fd/{script}", **prepared.environment},
        inherited=(status_end, lifeline_end, script, rules, listed, *gate),
        status=status,
        lifeline=lifeline,
        own_processes=True,
        held=waits,
    )


def _pipe(opened: list[int]) -> tuple[int, int]:
    ends = open_pipe_above_standard()
    opened += ends
    return ends


def _both_ends(opened: list[int]) -> int:
    """The end of the latest pipe to write to, in the place of one that can also be read from. With nobody left to read
    the status, writing it would kill the one of bubblewrap's processes that the other waits for."""
    both = move_above_standard(os.open(f"/proc/self/fd/{opened[-1]}", os.O_RDWR | os.O_CLOEXEC))
    os.close(opened[-1])
    opened[-1] = both
    return both


def _again(opened: list[int], descriptor: int) -> int:
    again = move_above_standard(os.dup(descriptor))
    opened.append(again)
    return again


def _file(opened: list[int], content: Callable[[int], bytes]) -> int:
    """A file in memory, to be read from its beginning; what is in it may depend on its number."""
    descriptor = move_above_standard(os.memfd_create("handrail"))
    opened.append(descriptor)
    os.write(descriptor, content(descriptor))
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor
