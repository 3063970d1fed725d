"""The runtime's side of a keeper: start it, ask it, kill it."""

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
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import NamedTuple

from handrail.kernel.bare_interpreter import build_bare_command
from handrail.kernel.files import is_locked, move_above_standard, open_pipe_above_standard, write_memory_file
from handrail.process.keeper.state import END, SOCKET, VERSION, Json, KeeperFolder, KeeperPlan, read_boot_id
from handrail.process.run import build_start_error
from handrail.process.sessions.store import KeeperRecord, ProcessIdentity, ProcessLog, is_alive, read_record
from handrail.process.tree import ProcessHandle, kill_orphans
from handrail.protocol.errors import ToolError
from handrail.sandbox.launch import Launch

_START_SECONDS = 30.0
_KILL_SECONDS = 5.0
_SEND_BYTES = 1 << 16
_MAX_REPORT_BYTES = 1 << 16
_MAX_ANSWER_BYTES = 4096
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class ProxyPlan(NamedTuple):
    """A proxy that the keeper runs as long as the command lives."""

    folder: str
    """For its socket, `proxy.sock`, which the launch shows to the command. The keeper makes and removes it."""
    allow: tuple[str, ...]
    """Allowlist entries, as in the settings."""


class LogSizes(NamedTuple):
    """Bytes of a log that are kept."""

    head: int = 64 << 10
    kept: int = 64 << 20
    """Of the tail, at least."""
    segment: int = 8 << 20
    """Of one file of the tail. The tail may take this much more on disk."""


def start_keeper(folder: str, launch: Launch, plan: KeeperPlan, files: Mapping[str, str]) -> None:
    """Make the session folder with some files, and start a keeper that takes the launch over."""
    with launch, contextlib.ExitStack() as made:
        _make_folder(folder)
        made.callback(shutil.rmtree, folder, ignore_errors=True)
        try:
            for name, text in files.items():
                with open(os.path.join(folder, name), "x", encoding="utf-8") as file:
                    file.write(text)
            report = _start(folder, launch, plan)
        except (OSError, ValueError) as error:
            raise build_start_error(error, launch) from None
        _check_report(report, launch)
        made.pop_all()


def _make_folder(folder: str) -> None:
    try:
        os.makedirs(os.path.dirname(folder), mode=0o700, exist_ok=True)
        os.mkdir(folder, 0o700)
    except OSError as error:
        code = "NO_SPACE" if error.errno in {errno.ENOSPC, errno.EDQUOT} else "IO_ERROR"
        text = (
            f"The command cannot run in the background: its folder cannot be created ({error.strerror}). "
            "Nothing was run."
        )
        raise ToolError(code, f"{text} The user has to repair this.") from None


def _start(folder: str, launch: Launch, plan: KeeperPlan) -> Json:
    if not sys.executable:
        text = (
            "Background processes are not possible: Python does not know its own path (sys.executable). "
            "Nothing was run."
        )
        raise ToolError("UNAVAILABLE", f"{text} Run it without background and yieldMs.")
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as handed:
        locked = _own(ours, move_above_standard(os.open(folder, _OPEN)))
        fcntl.flock(locked, fcntl.LOCK_EX)  # the keeper inherits it, so the folder is never unlocked in between
        reading, ready_fd = open_pipe_above_standard()
        _own(ours, reading)
        _own(handed, ready_fd)
        plan_fd = _own(handed, move_above_standard(os.memfd_create("handrail-keeper")))
        write_memory_file(plan_fd, plan._replace(folder=locked, ready_fd=ready_fd).encode())
        _run_keeper(plan_fd, (*launch.inherited, launch.status, launch.lifeline, locked, ready_fd, plan_fd))
        handed.close()
        launch.close()
        return _read_report(reading)


def _run_keeper(plan_fd: int, inherited: tuple[int, ...]) -> None:
    with subprocess.Popen(  # noqa: S603  our own program
        build_bare_command("handrail.process.keeper.program", "run", str(plan_fd)),
        env={name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ},
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        pass_fds=inherited,
        start_new_session=True,
    ):
        pass  # it ends at once, and leaves the keeper as an orphan


def _read_report(descriptor: int) -> Json:
    poller = select.poll()
    poller.register(descriptor, select.POLLIN)
    data, until = b"", time.monotonic() + _START_SECONDS
    while not data.endswith(b"\n") and len(data) < _MAX_REPORT_BYTES:
        if not poller.poll(max(0.0, until - time.monotonic()) * 1000):
            raise ToolError("TIMEOUT", "The command was not started within 30 s: the machine is too busy. Try again.")
        piece = os.read(descriptor, _MAX_REPORT_BYTES)
        if not piece:  # the keeper was killed
            kill_orphans()
            text = "The keeper of the command was killed at the start, and the command with it."
            raise ToolError("INTERRUPTED", f"{text} It may have begun: check before you repeat it.")
        data += piece
    return json.loads(data)


def _check_report(report: Json, launch: Launch) -> None:
    if "pid" in report:
        return
    if "errno" in report:
        number = report["errno"]
        raise build_start_error(OSError(number if isinstance(number, int) else 0, str(report.get("error"))), launch)
    lines = str(report.get("said", "")).strip().splitlines()
    reason = lines[-1].rpartition(": ")[2] if lines else "it ended without an answer"
    text = f"Commands cannot run now: the sandbox (tier {launch.tier}) could not be made ({reason[:300]})."
    raise ToolError("SANDBOX_UNAVAILABLE", f"{text} Nothing was run. `handrail doctor` tells the user more.")


def _own(stack: contextlib.ExitStack, descriptor: int) -> int:
    """Have the stack close a descriptor here, and a fork of another thread close it in its child."""
    _not_for_children.add(descriptor)
    stack.callback(_close, descriptor)
    return descriptor


def _close(descriptor: int) -> None:
    _not_for_children.discard(descriptor)
    os.close(descriptor)


def _close_in_child() -> None:
    while _not_for_children:
        _close(next(iter(_not_for_children)))


_not_for_children: set[int] = set()
"""A child that had these would hold the lock of a keeper that has ended."""

os.register_at_fork(after_in_child=_close_in_child)


class NoKeeperError(Exception):
    """The keeper does not answer: it has ended, or it hangs."""


def ask(folder: str, request: Json, data: bytes = b"", *, seconds: float) -> Json:
    """The answer of the folder's keeper. It has that many seconds for each step."""
    with _connect(folder, seconds) as connection:
        return _exchange(connection, request, data, seconds)


@contextlib.contextmanager
def bind_to_caller(folder: str, *, seconds: float) -> Generator[Callable[[], None]]:
    """In this block the command ends with this process, even if that is killed. The function releases the command."""
    with contextlib.ExitStack() as opened:
        try:
            connection = opened.enter_context(_connect(folder, seconds))
            _exchange(connection, {"do": "await"}, b"", seconds)
        except NoKeeperError:  # the command has ended
            yield lambda: None
            return
        yield lambda: _release(connection)


def _release(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.send(b"\n")


@contextlib.contextmanager
def _connect(folder: str, seconds: float) -> Generator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            opened = os.open(folder, _OPEN)
            try:
                connection.settimeout(seconds)
                connection.connect(f"/proc/self/fd/{opened}/{SOCKET}")  # the folder's own path may exceed 108 bytes
            finally:
                os.close(opened)
        except OSError as error:
            raise NoKeeperError(str(error)) from None
        yield connection


def _exchange(connection: socket.socket, request: Json, data: bytes, seconds: float) -> Json:
    """Send the request with its data, and receive the answer. It may come before all data is sent."""
    line = json.dumps({"v": VERSION, **request}).encode() + b"\n"
    try:
        answer = json.loads(_send_and_receive(connection, line + data, seconds))
    except OSError as error:
        raise NoKeeperError(str(error)) from None
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NoKeeperError("it does not make sense")
    return answer  # pyright: ignore[reportUnknownVariableType]


def _send_and_receive(connection: socket.socket, data: bytes, seconds: float) -> bytes:
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
            received = connection.recv(_MAX_ANSWER_BYTES)
            if not received:
                raise NoKeeperError("it ended")
            answer += received
        elif rest:
            rest = rest[connection.send(rest[:_SEND_BYTES]) :]
            until = time.monotonic() + seconds
        if not rest:
            poller.modify(connection, select.POLLIN)
    return answer


def force_stop(folder: str, reason: str) -> bool:
    """Kill a session whose keeper does not end it, and write its exit record. False: a process is left.

    If the keeper was gone before, no one knows why the command ended: the session stays lost.
    """
    record = read_record(folder)
    if record is None:
        return True
    had_keeper = is_locked(folder)
    is_gone = record.boot != read_boot_id() or _kill(record)
    if is_gone and had_keeper:
        with contextlib.suppress(OSError):
            _write_end(folder, reason)
    return is_gone


def _kill(record: KeeperRecord) -> bool:
    """Kill the keeper and the command. False: a process is left."""
    with contextlib.ExitStack() as stack:
        processes = (record.keeper, record.first, record.program)
        # A namespace ends with its first process. A supervisor ends its tree when its lifeline breaks.
        for handle in _hold(stack, processes if record.own_processes else (record.keeper,)):
            handle.kill()
        until = time.monotonic() + _KILL_SECONDS
        return all(handle.wait(until) for handle in _hold(stack, processes))


def _hold(stack: contextlib.ExitStack, identities: tuple[ProcessIdentity, ...]) -> Iterator[ProcessHandle]:
    for identity in identities:
        handle = ProcessHandle(identity.number)
        stack.callback(handle.close)
        if is_alive(identity):  # checked while held, so that its number is not reused
            yield handle


def _write_end(folder: str, reason: str) -> None:
    """Write the exit record in the keeper's place. Two callers take turns."""
    descriptor = os.open(folder, _OPEN)
    try:
        with contextlib.suppress(BlockingIOError):  # another process reads the state, or has the lock from a fork
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.access(END, os.F_OK, dir_fd=descriptor):
            size = ProcessLog(folder).size
            KeeperFolder(descriptor).write_end(
                {"ended": time.time(), "exit_code": None, "reason": reason, "size": size}
            )
    finally:
        os.close(descriptor)
