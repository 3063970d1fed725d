"""Background processes of a session."""

import contextlib
import fcntl
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal

from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.events import Network, Process
from handrail.protocol.records import ProcessRecord
from handrail.settings.model import Limits
from handrail.store.journal import SessionJournal

if TYPE_CHECKING:
    from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
    from handrail.sandbox.proxy.proxy import Attempt


# § [runtime.background] The process sessions of a session: how many may run, who is told of them, and what is left
# § when the session ends. Nothing of it is loaded before a session has one.

_FOLDER = "processes"
_AWAITED = "awaited"
_MAX_ENDED_SESSIONS = 64
"""Process sessions that have ended and can still be looked at; older ones are forgotten when another begins."""
_PAUSE_SECONDS = 0.25
"""Seconds between two looks for what has ended."""
_MAX_PAUSE_SECONDS = 30.0
"""Seconds between two tries of what fails."""


_FAILURES = (StoreError, ToolError, OSError)
"""Why something is not told, or not ended, now: left to whoever looks next."""


class BackgroundWork:
    """What goes on in a session after its calls."""

    def __init__(
        self, session_folder: str, journal: SessionJournal, limits: Limits, workspace: str | None = None
    ) -> None:
        self._session_folder = session_folder
        self._journal = journal
        self._limits = limits
        self._workspace = workspace
        """Noted with the first that goes on, for people who list those of every workspace."""
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self.commit_deferred: Callable[[ProcessSession], None] | None = None
        """Commits or drops what an ended command changed in its overlay; None where nobody can judge that here."""
        self._failed: dict[str, tuple[float, float]] = {}
        """Of those that could not be told: how long to wait the next time, and until when now."""
        self._tried: dict[str, int] = {}
        """How long the file was of what each tried to reach, when it was last told."""

    @property
    def folder(self) -> str:
        """Where they are."""
        return os.path.join(self._session_folder, _FOLDER)

    @property
    def sessions(self) -> "ProcessSessions":
        """All that are known."""
        from handrail.process.sessions.sessions import ProcessSessions  # noqa: PLC0415  as said

        return ProcessSessions(self.folder)

    @property
    def idle_seconds(self) -> float:
        """How long one goes on that prints nothing and that nobody asks about."""
        from handrail.settings.units import parse_seconds  # noqa: PLC0415  as said

        return parse_seconds(self._limits.idle)

    @property
    def awaited(self) -> dict[str, str]:
        """For one whose call waits for it: if this process is killed meanwhile, whoever opens the session next ends
        it."""
        return {_AWAITED: self._journal.runner}

    @property
    def any(self) -> bool:
        """Whether there may be some: one look."""
        return os.path.isdir(self.folder)

    def attach(self) -> None:
        """To be called when a session is opened: tells what nobody was there to tell, and goes on watching."""
        if not self.any:
            return

        for process in self.sessions.list_sessions():
            with suppress(*_FAILURES):  # as one that cannot be ended now, which keeps nobody out
                if is_emitted(process, "removed"):
                    process.remove()  # whoever told it was killed before it was done
                elif not self._end_unawaited(process):
                    self._tell_all(process)
        self._watch()

    def make_room(self) -> None:
        """Refuses one too many; forgets the oldest that have ended."""
        if not self.any:
            return
        listed = self.sessions.list_sessions()
        ended = [process for process in listed if process.wait(0)]
        running = len(listed) - len(ended)
        if running >= self._limits.sessions:
            message = f"{running} process sessions are running, and limits.sessions allows no more."
            raise ToolError("LIMIT_EXCEEDED", f"{message} Nothing was run. End one: process kill, or remove.")
        for process in ended[:-_MAX_ENDED_SESSIONS]:
            self.forget(process)

    def announce_start(self, process: "ProcessSession") -> None:
        """Nobody waits for it any more."""

        from handrail.store.state_dir import save_workspace_path  # noqa: PLC0415

        if self._workspace is not None:
            save_workspace_path(os.path.dirname(self._session_folder), self._workspace)
        if os.path.exists(path := os.path.join(process.folder, _AWAITED)):
            os.unlink(path)  # first: what was told of ends with a word
        emit_once(process, "started", self._journal)
        self._watch()

    def announce_end(self, process: "ProcessSession") -> None:
        """It has ended: tells so, unless somebody did. What cannot be committed now is left to who watches."""
        with suppress(ToolError, OSError):
            self._tell_all(process)

    def forget(self, process: "ProcessSession", reason: str = "stopped") -> None:
        """Ends it where it runs, removes it, and tells both."""

        if not process.wait(0):
            process.stop(reason)
        with suppress(OSError):
            process.log.clear()  # first: a disk that it has filled has no room for what is told
        self._tell_all(process)
        emit_once(process, "removed", self._journal)
        process.remove()

    def end_all(self) -> None:
        """The session is over: nothing of it goes on, and nothing is kept. What cannot be ended, or not be told, is
        left to whoever looks next, and hinders no other."""
        if not self.any:
            return
        sessions = self.sessions
        with suppress(*_FAILURES):  # each of them is tried once more
            sessions.end_all("session")
        for process in sessions.list_sessions():
            with suppress(*_FAILURES):
                self.forget(process, "session")
        sessions.remove_rest()

    def close(self) -> None:
        """Nobody here watches any more; what runs goes on."""
        self._closed.set()
        watcher = self._watcher
        if watcher is not None and watcher is not threading.current_thread():
            watcher.join()

    def _tell_all(self, process: "ProcessSession") -> None:

        emit_once(process, "started", self._journal)
        ended = process.wait(0)
        self._tell_tried(process)
        if ended:
            self._keep(process)
            emit_once(process, "ended", self._journal)

    def _keep(self, process: "ProcessSession") -> None:
        from handrail.process.sessions.store import drop_unfinished, is_settled, remove_overlay  # noqa: PLC0415  as said

        if is_settled(process.folder):
            remove_overlay(process.folder)  # whoever settled it may have been killed before it was gone
            return
        if self.commit_deferred is not None:
            self.commit_deferred(process)
        else:
            drop_unfinished(process.folder, process.record())

    def _is_over(self, process: "ProcessSession") -> bool:
        from handrail.process.sessions.store import is_settled  # noqa: PLC0415  as said

        return is_emitted(process, "ended") and (self.commit_deferred is None or is_settled(process.folder))

    def _tell_tried(self, process: "ProcessSession") -> None:
        """Tells what it tried to reach, where that is more than when we last looked."""
        from handrail.process.keeper.state import ATTEMPTS  # noqa: PLC0415  as said

        try:
            size = os.path.getsize(os.path.join(process.folder, ATTEMPTS))
        except OSError:
            return
        if size != self._tried.get(process.id, 0):
            emit_attempts(process, self._journal)
            self._tried[process.id] = size

    def _end_unawaited(self, process: "ProcessSession") -> bool:
        """Whether a call waits, or waited, for it: nobody was told of it yet. Where that call is gone, so is it."""
        from handrail.store.runner import is_dead  # noqa: PLC0415  as said

        try:
            with open(os.path.join(process.folder, _AWAITED), encoding="ascii") as file:
                runner = file.read()
        except FileNotFoundError:
            return False
        if is_dead(self._session_folder, runner):
            process.stop()
            self._tell_tried(process)
            process.remove()
        return True

    def _watch(self) -> None:
        """Watches in a thread while something runs."""
        with self._lock:
            if self._closed.is_set() or (self._watcher is not None and self._watcher.is_alive()):
                return
            self._watcher = threading.Thread(target=self._look_on, name="handrail-processes", daemon=True)
            self._watcher.start()

    def _look_on(self) -> None:
        while not self._closed.wait(_PAUSE_SECONDS):
            try:
                if not self._look():
                    return
            except _FAILURES:
                continue  # it is told by whoever can write it down, or look, next

    def _look(self) -> bool:
        """Tells what has ended; whether to go on looking."""

        with self._lock:
            listed = self.sessions.list_sessions()
            left = [one for one in listed if is_emitted(one, "started") and not self._is_over(one)]
            if not left:
                self._watcher = None
                return False
        for process in left:
            self._try_to_tell(process)
        return True

    def _try_to_tell(self, process: "ProcessSession") -> None:
        """Where it fails, it is told by whoever can write it down, or look, next, and hinders no other; here after
        longer and longer, since a disk that is full is not emptied by trying."""
        pause, next_try = self._failed.get(process.id, (_PAUSE_SECONDS, 0.0))
        if time.monotonic() < next_try:
            return
        try:
            self._tell_all(process)
        except _FAILURES:
            self._failed[process.id] = (min(2 * pause, _MAX_PAUSE_SECONDS), time.monotonic() + pause)


# § [runtime.telling] Tells once of what became of a process session, whichever runtime is there to tell it, and
# § whenever one is killed. A file in the folder of the process session says what was told. It is locked while
# § somebody tells. One that was locked and says nothing is of somebody who was killed in between: then the journal
# § is asked whether it was told.

State = Literal["started", "ended", "removed"]
_NAME = "told-"
_TOLD = b"told\n"
_MAX_BATCH_ATTEMPTS = 1_000
"""Attempts to reach a host that are written down together."""
_LOCK_SECONDS = 1.0
"""How long somebody else may take to tell. Who listens may ask for the same process, in the midst of being told."""


def is_emitted(process: "ProcessSession", state: State) -> bool:
    """Whether there is nothing left to tell; one that is gone has somebody who told."""
    try:
        with open(_path(process, state), "rb") as file:
            return file.read() == _TOLD
    except FileNotFoundError:
        return not os.path.isdir(process.folder)


def emit_once(process: "ProcessSession", state: State, journal: SessionJournal) -> None:
    """Writes the event down, unless it is, or somebody is just about to."""
    if is_emitted(process, state):
        return
    with contextlib.suppress(FileNotFoundError, ToolError):  # removed meanwhile, by somebody who told
        new, descriptor = _opened(_path(process, state))
        try:
            if (
                not _locked(descriptor)
                or os.pread(descriptor, len(_TOLD), 0) == _TOLD
                or not os.path.isdir(process.folder)
            ):
                return
            if new or not _is_in(journal, process.id, state):
                journal.append((Process, _fields(process.record(), state)))
            os.pwrite(descriptor, _TOLD, 0)
        finally:
            os.close(descriptor)


def emit_attempts(process: "ProcessSession", journal: SessionJournal) -> None:
    """Writes down what it tried to reach since this was last done; whoever is killed in between may tell it again."""
    with contextlib.suppress(FileNotFoundError):
        _, descriptor = _opened(os.path.join(process.folder, f"{_NAME}tried"))
        try:
            if not _locked(descriptor):
                return
            before = int(os.pread(descriptor, 20, 0) or 0)
            tried = [(Network, _tried_fields(process.id, one)) for one in process.attempts(before)]
            for start in range(0, len(tried), _MAX_BATCH_ATTEMPTS):
                told = tried[start : start + _MAX_BATCH_ATTEMPTS]
                journal.append(*told)
                os.pwrite(descriptor, f"{before + start + len(told):020}".encode(), 0)
        finally:
            os.close(descriptor)


def _tried_fields(process: str, attempt: "Attempt") -> dict[str, Any]:
    reason = attempt.reason or "it was open to the command"
    return {
        "host": attempt.host,
        "port": attempt.port,
        "allowed": attempt.allowed,
        "reason": reason,
        "process": process,
    }


def _path(process: "ProcessSession", state: State) -> str:
    return os.path.join(process.folder, f"{_NAME}{state}")


def _opened(path: str) -> tuple[bool, int]:
    """Whether it is new, and the file."""
    try:
        return True, os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return False, os.open(path, os.O_RDWR | os.O_CLOEXEC)


def _locked(descriptor: int) -> bool:
    until = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        else:
            return True


def _is_in(journal: SessionJournal, process: str, state: State) -> bool:
    return any(
        isinstance(event, Process) and event.process == process and event.state == state for event in journal.events()
    )


def _fields(record: ProcessRecord, state: State) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "process": record.id,
        "state": state,
        "command": record.command,
        "cwd": record.cwd,
        "pid": record.pid,
        "ports": record.ports,
    }
    if state == "started":
        return fields
    reason = "lost" if record.state == "lost" else record.reason
    return fields | {
        "exit_code": record.exit_code,
        "signal": record.signal,
        "reason": reason,
        "size": record.size,
    }
