"""Starts the command: everything that a process does to itself before the program is in its place."""

import os
import resource

from handrail.kernel.landlock import restrict_self
from handrail.kernel.process import (
    KILL,
    die_with_parent,
    filter_system_calls,
    keep_capabilities,
    refuse_new_privileges,
    reset_signals,
)
from handrail.kernel.procfs import list_processes
from handrail.sandbox.supervisor.plan import LandlockFence, SupervisorPlan

_MAX_REASON_BYTES = 65_536


def start(plan: SupervisorPlan) -> int:
    """The process that runs the command; OSError says why there is none."""
    supervisor = os.getpid()
    # Both ends close by themselves when the program takes over: silence says that it did.
    reading, writing = os.pipe()
    process = os.fork()
    if process == 0:
        _become_or_tell(plan, supervisor, writing)
    os.close(writing)
    reason = os.read(reading, _MAX_REASON_BYTES)
    os.close(reading)
    if reason:
        raise OSError(os.fsdecode(reason))
    return process


def _become_or_tell(plan: SupervisorPlan, supervisor: int, writing: int) -> None:
    try:
        _become(plan, supervisor)
    except BaseException as error:  # whatever it is: this process must not go on as a second supervisor
        os.write(writing, os.fsencode(_reason(error))[:_MAX_REASON_BYTES])
    finally:
        os._exit(1)


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    return str(error) or repr(error)


def _become(plan: SupervisorPlan, supervisor: int) -> None:
    os.setsid()  # `kill 0` is not for the supervisor
    if os.isatty(0):
        _have_terminal(0)
    die_with_parent(KILL)
    if os.getppid() != supervisor:
        return
    reset_signals()
    os.chdir(plan.cwd)
    _limit(plan)
    refuse_new_privileges()
    if plan.fence:
        _confine(plan.fence)
    os.write(plan.status, b'{"child-pid": %d}\n' % os.getpid())
    os.execve(plan.arguments[0], plan.arguments, plan.environment)  # noqa: S606  it is the shell


def _have_terminal(terminal: int) -> None:
    """Makes it this session's own: keys that send signals send them to the command, and /dev/tty is there."""
    from fcntl import ioctl  # noqa: PLC0415  only a command that is kept has a terminal
    from termios import TIOCSCTTY  # noqa: PLC0415

    ioctl(terminal, TIOCSCTTY, 0)


def _limit(plan: SupervisorPlan) -> None:
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, plan.file_size)
    # It counts everything that the user runs, not only the command's; root it does not bind at all.
    if user := os.getuid():
        _lower(resource.RLIMIT_NPROC, plan.threads + _threads_of(user))


def _lower(what: int, limit: int) -> None:
    _, most = resource.getrlimit(what)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(what, (limit, limit))


def _threads_of(user: int) -> int:
    return sum(one.threads for one in list_processes() if one.user() == user)


def _confine(fence: LandlockFence) -> None:
    keep_capabilities(fence.capabilities)
    restrict_self(fence.ruleset)
    filter_system_calls(fence.filter)
