"""Background processes of a session: how many may run, which events they emit, how they end."""

import os
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from handrail.kernel.files import wait_for_lock
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import Network, Process
from handrail.protocol.records import ProcessRecord
from handrail.settings.model import Limits
from handrail.settings.units import parse_seconds
from handrail.store.journal import SessionJournal
from handrail.store.runner import is_dead
from handrail.store.state_dir import save_workspace_path
from handrail.workspace.resolve import closing_descriptor

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSession, ProcessSessions

State = Literal["started", "ended", "removed"]
_FOLDER = "processes"
_AWAITED = "awaited"
_MARKER = "told-"
"""The start of the names of marker files, which say which events were emitted."""
_EMITTED = b"told\n"
_MAX_ENDED_SESSIONS = 64
"""Ended process sessions that are kept. Older ones are removed when another one starts."""
_MAX_BATCH_ATTEMPTS = 1_000
_PAUSE_SECONDS = 0.25
_MAX_PAUSE_SECONDS = 30.0
"""Seconds between two attempts to settle a process."""
_LOCK_SECONDS = 1.0
"""Seconds that another process may take to emit an event. Its listener may ask for the same event meanwhile."""
_STARTED_FIELDS = ("command", "cwd", "pid", "ports")
_ENDED_FIELDS = ("exit_code", "signal", "reason", "size")
_FAILURES = (StoreError, ToolError, OSError)
"""Failures after which a process is left to the next handrail that checks it."""


class BackgroundWork:
    """The process sessions of a session. Nothing of their room is loaded before there is one."""

    def __init__(
        self, session_folder: str, journal: SessionJournal, limits: Limits, workspace: str | None = None
    ) -> None:
        """`workspace` is stored with the first process, for people who list the processes of every workspace."""
        self._session_folder = session_folder
        self.folder = os.path.join(session_folder, _FOLDER)
        self._journal = journal
        self._limits = limits
        self._workspace = workspace
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self.commit_deferred: Callable[[ProcessSession], None] | None = None
        """Commits or drops the changes of an ended command. None if nothing here can judge them."""
        self._retries: dict[str, tuple[float, float]] = {}
        """For each process that could not be settled: the next pause, and the time of the next attempt."""
        self._attempts_sizes: dict[str, int] = {}
        """For each process: the size of its file of network attempts when events were last emitted."""

    @property
    def sessions(self) -> "ProcessSessions":
        from handrail.process.sessions.sessions import ProcessSessions  # noqa: PLC0415  few sessions have processes

        return ProcessSessions(self.folder)

    @property
    def idle_seconds(self) -> float:
        """Seconds after which a silent process ends that nobody asks about."""
        return parse_seconds(self._limits.idle)

    @property
    def awaited(self) -> dict[str, str]:
        """The files of a process whose call waits for it. If this handrail is killed, the next one ends the process."""
        return {_AWAITED: self._journal.runner}

    @property
    def any(self) -> bool:
        """Whether the session may have processes."""
        return os.path.isdir(self.folder)

    def attach(self) -> None:
        """Emits the events that are missing when a session is opened, and watches its processes."""
        if not self.any:
            return
        for process in self.sessions.list_sessions():
            with suppress(*_FAILURES):  # the session opens all the same
                if is_emitted(process, "removed"):
                    process.remove()  # its remover was killed
                elif not self._is_awaited(process):
                    self._settle(process)
        self._watch()

    def make_room(self) -> None:
        """Refuses a process too many, and removes the oldest ended ones."""
        if not self.any:
            return
        processes = self.sessions.list_sessions()
        ended = [process for process in processes if process.wait(0)]
        running = len(processes) - len(ended)
        if running >= self._limits.sessions:
            message = f"{running} process sessions are running, which is the limit of limits.sessions."
            raise ToolError("LIMIT_EXCEEDED", f"{message} Nothing was run. End one: process kill, or remove.")
        for process in ended[:-_MAX_ENDED_SESSIONS]:
            self.forget(process)

    def announce_start(self, process: "ProcessSession") -> None:
        """Emits the start of a process that no call waits for any more, and watches it."""
        if self._workspace is not None:
            save_workspace_path(os.path.dirname(self._session_folder), self._workspace)
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(process.folder, _AWAITED))  # first: a process with a start event gets an end event
        emit_once(process, "started", self._journal)
        self._watch()

    def announce_end(self, process: "ProcessSession") -> None:
        """Emits the end of a process. Changes that cannot be committed now are left to the watcher."""
        with suppress(ToolError, OSError):
            self._settle(process)

    def forget(self, process: "ProcessSession", reason: str = "stopped") -> None:
        """Ends a process if it runs, and removes it."""
        if not process.wait(0):
            process.stop(reason)
        with suppress(OSError):
            process.log.clear()  # first: on a full disk the events need the room
        self._settle(process)
        emit_once(process, "removed", self._journal)
        process.remove()

    def end_all(self) -> None:
        """Ends and removes all processes with the session. A failure leaves that process to the next handrail."""
        if not self.any:
            return
        sessions = self.sessions
        with suppress(*_FAILURES):  # `forget` tries each again
            sessions.end_all("session")
        for process in sessions.list_sessions():
            with suppress(*_FAILURES):
                self.forget(process, "session")
        sessions.remove_rest()

    def close(self) -> None:
        """Ends the watcher. Processes go on."""
        self._closed.set()
        watcher = self._watcher
        if watcher is not None and watcher is not threading.current_thread():
            watcher.join()

    def _settle(self, process: "ProcessSession") -> None:
        """Emits the events of a process, and commits its changes if it has ended."""
        emit_once(process, "started", self._journal)
        has_ended = process.wait(0)
        self._emit_attempts(process)
        if has_ended:
            self._commit(process)
            emit_once(process, "ended", self._journal)

    def _commit(self, process: "ProcessSession") -> None:
        store = _load_store()
        if store.is_settled(process.folder):
            store.remove_overlay(process.folder)  # its settler may have been killed
        elif self.commit_deferred is not None:
            self.commit_deferred(process)
        else:
            store.drop_unfinished(process.folder, process.record())

    def _is_settled(self, process: "ProcessSession") -> bool:
        is_committed = self.commit_deferred is None or _load_store().is_settled(process.folder)
        return is_emitted(process, "ended") and is_committed

    def _emit_attempts(self, process: "ProcessSession") -> None:
        from handrail.process.keeper.state import ATTEMPTS  # noqa: PLC0415  few sessions have processes

        try:
            size = os.path.getsize(os.path.join(process.folder, ATTEMPTS))
        except OSError:
            return
        if size != self._attempts_sizes.get(process.id, 0):
            emit_attempts(process, self._journal)
            self._attempts_sizes[process.id] = size

    def _is_awaited(self, process: "ProcessSession") -> bool:
        """Whether a call waits or waited for a process. If the handrail of that call is dead, the process is ended."""
        try:
            with open(os.path.join(process.folder, _AWAITED), encoding="ascii") as file:
                runner = file.read()
        except FileNotFoundError:
            return False
        if is_dead(self._session_folder, runner):
            process.stop()
            self._emit_attempts(process)
            process.remove()
        return True

    def _watch(self) -> None:
        with self._lock:
            if self._closed.is_set() or (self._watcher is not None and self._watcher.is_alive()):
                return
            self._watcher = threading.Thread(target=self._run_watcher, name="handrail-processes", daemon=True)
            self._watcher.start()

    def _run_watcher(self) -> None:
        while not self._closed.wait(_PAUSE_SECONDS):
            with suppress(*_FAILURES):
                if not self._check_processes():
                    return

    def _check_processes(self) -> bool:
        """Settles ended processes. Returns whether any are left to watch."""
        with self._lock:
            processes = self.sessions.list_sessions()
            left = [one for one in processes if is_emitted(one, "started") and not self._is_settled(one)]
            if not left:
                self._watcher = None
                return False
        for process in left:
            self._try_to_settle(process)
        return True

    def _try_to_settle(self, process: "ProcessSession") -> None:
        """Settles a process. After failures the pauses grow, because retries do not empty a full disk."""
        pause, next_attempt = self._retries.get(process.id, (_PAUSE_SECONDS, 0.0))
        if time.monotonic() < next_attempt:
            return
        try:
            self._settle(process)
        except _FAILURES:
            self._retries[process.id] = (min(2 * pause, _MAX_PAUSE_SECONDS), time.monotonic() + pause)


# Each event of a process is emitted once, by whichever handrail, also if one is killed meanwhile. A marker file in the
# folder of the process says that an event was emitted. Its writer locks it. If a marker file is empty, its writer was
# killed. Then the journal shows whether the event was emitted.


def _load_store():  # the type is that of the module
    from handrail.process.sessions import store  # noqa: PLC0415  few sessions have processes

    return store


def is_emitted(process: "ProcessSession", state: State) -> bool:
    """Whether an event was emitted. A removed process has all its events."""
    try:
        with open(_build_marker_path(process, state), "rb") as file:
            return file.read() == _EMITTED
    except FileNotFoundError:
        return not os.path.isdir(process.folder)


def emit_once(process: "ProcessSession", state: State, journal: SessionJournal) -> None:
    """Emits an event of a process, unless it was emitted or another handrail is doing so."""
    if is_emitted(process, state):
        return
    # A ToolError or a missing folder: the process was removed meanwhile, with all its events.
    with suppress(FileNotFoundError, ToolError), _lock_marker(_build_marker_path(process, state)) as marker:
        if marker is None or not os.path.isdir(process.folder):
            return
        is_new, descriptor = marker
        if os.pread(descriptor, len(_EMITTED), 0) == _EMITTED:
            return
        known = () if is_new else (event for event in journal.events() if isinstance(event, Process))
        if not any((event.process, event.state) == (process.id, state) for event in known):
            journal.append((Process, _build_process_fields(process.record(), state)))
        os.pwrite(descriptor, _EMITTED, 0)


def emit_attempts(process: "ProcessSession", journal: SessionJournal) -> None:
    """Emits the network attempts since the last time. If this handrail is killed, some may be emitted again."""
    with suppress(FileNotFoundError), _lock_marker(os.path.join(process.folder, f"{_MARKER}tried")) as marker:
        if marker is None:
            return
        _, descriptor = marker
        count = int(os.pread(descriptor, 20, 0) or 0)
        events = [
            (
                Network,
                {
                    "host": attempt.host,
                    "port": attempt.port,
                    "allowed": attempt.allowed,
                    "reason": attempt.reason or "it was open to the command",
                    "process": process.id,
                },
            )
            for attempt in process.attempts(count)
        ]
        for start in range(0, len(events), _MAX_BATCH_ATTEMPTS):
            batch = events[start : start + _MAX_BATCH_ATTEMPTS]
            journal.append(*batch)
            os.pwrite(descriptor, f"{count + start + len(batch):020}".encode(), 0)


def _build_marker_path(process: "ProcessSession", state: State) -> str:
    return os.path.join(process.folder, f"{_MARKER}{state}")


@contextmanager
def _lock_marker(path: str) -> Generator[tuple[bool, int] | None]:
    """Whether a marker file is new, and its locked descriptor. None if another handrail holds the lock."""
    try:
        is_new, descriptor = True, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        is_new, descriptor = False, os.open(path, os.O_RDWR | os.O_CLOEXEC)
    with closing_descriptor(descriptor):
        yield (is_new, descriptor) if wait_for_lock(descriptor, _LOCK_SECONDS) else None


def _build_process_fields(record: ProcessRecord, state: State) -> dict[str, Any]:
    names = _STARTED_FIELDS if state == "started" else (*_STARTED_FIELDS, *_ENDED_FIELDS)
    fields = {"process": record.id, "state": state, **{name: getattr(record, name) for name in names}}
    return fields | {"reason": "lost"} if record.state == "lost" and state != "started" else fields
