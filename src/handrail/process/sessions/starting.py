"""Starts a keeper, hands a launch over to it, and hears how that went."""

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple

from handrail.kernel.files import move_above_standard, open_pipe_above_standard
from handrail.process.keeper.files import Json
from handrail.process.keeper.plan import KeeperPlan
from handrail.process.sessions.known import has_keeper
from handrail.process.sessions.network import ProxyPlan
from handrail.process.starting import build_start_error
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import ResourceLimits

_PROGRAM = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "keeper", "main.py"))
_START_SECONDS = 30.0
_MAX_ANSWER_BYTES = 1 << 16
_MIN_ABANDONED_SECONDS = 60.0  # seconds: a folder is made before it is locked
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class LogSizes(NamedTuple):
    """How much of a log is kept: bytes."""

    head: int = 64 << 10
    """Of its beginning."""
    kept: int = 64 << 20
    """Of its end, at least."""
    segment: int = 8 << 20
    """Of one file of its end: so much more than that may be on disk."""


USUAL_SIZES = LogSizes()


class KeeperOptions(NamedTuple):
    """What a keeper is told beside the launch."""

    record: dict[str, str]
    limits: ResourceLimits
    idle_seconds: float
    sizes: LogSizes
    proxy: ProxyPlan | None
    files: Mapping[str, str]
    """What the folder has from the beginning, by name."""


def start_keeper(folder: str, launch: Launch, to_keep: KeeperOptions) -> None:
    """Makes the folder, and starts a keeper for it that takes the launch over; ToolError where that cannot be."""
    with launch, contextlib.ExitStack() as made:
        _make(folder)
        made.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            _fill(folder, to_keep.files)
            answer = _started(folder, launch, to_keep)
        except (OSError, ValueError) as error:
            raise build_start_error(error, launch) from None
        _check(answer, launch)
        made.pop_all()  # it is the keeper's from here on


def remove_abandoned(folder: str) -> None:
    """Removes the folder of a start or a removal that was cut off; a young one may still come to something."""
    with contextlib.suppress(OSError):
        if time.time() - os.stat(folder).st_mtime > _MIN_ABANDONED_SECONDS and not has_keeper(folder):
            shutil.rmtree(folder, ignore_errors=True)


def _make(folder: str) -> None:
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except OSError as error:
        code = "NO_SPACE" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "IO_ERROR"
        text = f"The command cannot be kept: no folder can be made for it ({error.strerror}). Nothing was run."
        raise ToolError(code, f"{text} A person has to see to it.") from None


def _fill(folder: str, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
            file.write(text)


def _started(folder: str, launch: Launch, to_keep: KeeperOptions) -> Json:
    if not sys.executable:
        text = "Nothing can go on after its call: Python cannot tell its own path (sys.executable). Nothing was run."
        raise ToolError("UNAVAILABLE", f"{text} Run it without background and yieldMs.")
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as handed:
        locked = _closed_by(ours, move_above_standard(os.open(folder, _OPEN)))
        fcntl.flock(locked, fcntl.LOCK_EX)  # the keeper holds it on, without a moment in between
        hearing, told = open_pipe_above_standard()
        _closed_by(ours, hearing)
        _closed_by(handed, told)
        plan = _plan(launch, to_keep, locked, told)
        _run_keeper(plan, launch, _closed_by(handed, move_above_standard(plan.write())))
        handed.close()
        launch.close()
        return _heard(hearing)


def _plan(launch: Launch, to_keep: KeeperOptions, folder: int, told: int) -> KeeperPlan:
    limits, sizes = to_keep.limits, to_keep.sizes
    return KeeperPlan(
        arguments=list(map(os.fsencode, launch.argv)),
        environment={os.fsencode(name): os.fsencode(value) for name, value in launch.environment.items()},
        tier=launch.tier,
        own_processes=launch.own_processes,
        inherited=list(launch.inherited),
        status=launch.status,
        lifeline=launch.lifeline,
        folder=folder,
        ready_fd=told,
        record=to_keep.record,
        memory=limits.memory,
        processes=limits.processes,
        disk=limits.disk,
        uppers=list(limits.uppers),
        threads=limits.threads,
        idle=to_keep.idle_seconds,
        head=sizes.head,
        kept=sizes.kept,
        segment=sizes.segment,
        proxy=[to_keep.proxy.folder, *to_keep.proxy.allow] if to_keep.proxy else None,
    )


def _run_keeper(plan: KeeperPlan, launch: Launch, written: int) -> None:
    with subprocess.Popen(  # noqa: S603  our own program
        [sys.executable, "-I", "-S", _PROGRAM, str(written)],
        env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=(*launch.inherited, launch.status, launch.lifeline, plan.folder, plan.ready_fd, written),
        start_new_session=True,
    ):
        pass  # it ends at once: the keeper is its child, and nobody's then


def _heard(hearing: int) -> Json:
    poller = select.poll()
    poller.register(hearing, select.POLLIN)
    data, until = b"", time.monotonic() + _START_SECONDS
    while not data.endswith(b"\n") and len(data) < _MAX_ANSWER_BYTES:
        if not poller.poll(max(0.0, until - time.monotonic()) * 1000):
            raise ToolError("TIMEOUT", "The command was not started within 30 s: the machine is too busy. Try again.")
        piece = os.read(hearing, _MAX_ANSWER_BYTES)
        if not piece:
            raise _killed()
        data += piece
    return json.loads(data)


def _killed() -> ToolError:
    """Of a keeper that is gone without a word; what it was just starting must not wait for it."""
    from handrail.process.abandoned import kill_orphans  # noqa: PLC0415  hardly ever needed

    kill_orphans()
    text = "What was to keep the command was killed while it started it, and the command with it."
    return ToolError("INTERRUPTED", f"{text} Whether it had begun is not known: look before you repeat it.")


def _check(answer: Json, launch: Launch) -> None:
    if "pid" in answer:
        return
    if "errno" in answer:
        number = answer["errno"]
        raise build_start_error(OSError(number if isinstance(number, int) else 0, str(answer.get("error"))), launch)
    lines = str(answer.get("said", "")).strip().splitlines()
    said = lines[-1].rpartition(": ")[2] if lines else "it ended without a word"
    text = f"Commands cannot run now: the sandbox (tier {launch.tier}) could not be made ({said[:300]})."
    raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Nothing was run. `handrail doctor` tells the person more.")


def _closed_by(stack: contextlib.ExitStack, descriptor: int) -> int:
    _ours_alone.add(descriptor)
    stack.callback(_close, descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    _ours_alone.discard(descriptor)
    os.close(descriptor)


def _close_in_child() -> None:
    while _ours_alone:
        _close(next(iter(_ours_alone)))


_ours_alone: set[int] = set()
"""What a child must not have that another thread forks meanwhile: it would hold the lock of a keeper that is gone."""

os.register_at_fork(after_in_child=_close_in_child)
