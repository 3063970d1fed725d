"""Starts a keeper, and talks to it."""

import contextlib
import errno
import fcntl
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import NamedTuple

import msgspec

from handrail.kernel.files import move_above_standard, open_pipe_above_standard
from handrail.process.keeper.state import ATTEMPTS, SOCKET, VERSION, Json, KeeperPlan
from handrail.process.run import build_start_error
from handrail.process.sessions.store import has_keeper
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits
from handrail.sandbox.proxy.proxy import Attempt

# § [process.sessions.network] The network of a process session: what its keeper's proxy is told, and what it tells.


class ProxyPlan(msgspec.Struct, frozen=True):
    """A proxy for a keeper to run, as long as the command does."""

    folder: str
    """Where its socket is, `proxy.sock`, which the launch shows to the command. The keeper makes it, and removes it."""
    allow: tuple[str, ...]
    """The entries that are open, as settings write them."""


def read_attempts(folder: str, after: int) -> list[Attempt]:
    """What was tried, without the first so many."""
    try:
        with open(os.path.join(folder, ATTEMPTS), "rb") as file:
            lines = file.read().split(b"\n")[:-1]  # the last may be half a line, or is nothing
    except FileNotFoundError:
        return []
    return [Attempt(**msgspec.json.decode(line)) for line in lines[after:]]


# § [process.sessions.starting] Starts a keeper, hands a launch over to it, and hears how that went.

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
    from handrail.process.tree import kill_orphans  # noqa: PLC0415  hardly ever needed

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


# § [process.sessions.asking] Speaks to a keeper.

_PIECE_BYTES = 1 << 16
_MAX_REPLY_BYTES = 4096


class NoKeeperError(Exception):
    """Nobody answers: it has ended, or it hangs."""


def ask(folder: str, request: Json, data: bytes = b"", *, seconds: float) -> Json:
    """The answer of the folder's keeper, who has so many seconds for each step; NoKeeperError where there is none."""
    with _connected(folder, seconds) as connection:
        return _answer_to(connection, request, data, seconds)


@contextmanager
def bind_to_caller(folder: str, *, seconds: float) -> Generator[Callable[[], None]]:
    """Meanwhile the command ends with this process, however that ends; what is given lets go of it."""
    with ExitStack() as opened:
        try:
            connection = opened.enter_context(_connected(folder, seconds))
            _answer_to(connection, {"do": "await"}, b"", seconds)
        except NoKeeperError:  # it has ended by itself
            yield lambda: None
            return
        yield lambda: _let_go(connection)


def _let_go(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.send(b"\n")


@contextmanager
def _connected(folder: str, seconds: float) -> Generator[socket.socket]:
    opened = _open(folder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.settimeout(seconds)
            connection.connect(f"/proc/self/fd/{opened}/{SOCKET}")  # a path has 108 bytes, a folder's may be longer
        except OSError as error:
            raise NoKeeperError(str(error)) from None
        finally:
            os.close(opened)
        yield connection


def _answer_to(connection: socket.socket, request: Json, data: bytes, seconds: float) -> Json:
    line = json.dumps({"v": VERSION, **request}).encode() + b"\n"
    try:
        return _exchanged(connection, line + data, seconds)
    except OSError as error:
        raise NoKeeperError(str(error)) from None


def _exchanged(connection: socket.socket, data: bytes, seconds: float) -> Json:
    """Sends, and listens meanwhile: who does not want the rest says so early."""
    connection.setblocking(False)
    poller = select.poll()
    answer, rest = b"", memoryview(data)
    poller.register(connection, select.POLLIN | select.POLLOUT)
    until = time.monotonic() + seconds
    while b"\n" not in answer:
        ready = poller.poll(max(0.0, until - time.monotonic()) * 1000)
        if not ready:
            raise NoKeeperError("no answer")
        if ready[0][1] & ~select.POLLOUT:
            said = connection.recv(_MAX_REPLY_BYTES)
            if not said:
                raise NoKeeperError("it ended")
            answer += said
        elif rest:
            rest = rest[connection.send(rest[:_PIECE_BYTES]) :]
            until = time.monotonic() + seconds
        if not rest:
            poller.modify(connection, select.POLLIN)
    return _decoded(answer)


def _decoded(answer: bytes) -> Json:
    try:
        found = json.loads(answer)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NoKeeperError("it does not make sense")
    return found  # pyright: ignore[reportUnknownVariableType]


def _open(folder: str) -> int:
    try:
        return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise NoKeeperError(str(error)) from None
