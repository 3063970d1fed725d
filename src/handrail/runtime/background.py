"""The process sessions of a session: how many may run, who is told of them, and what is left when the session ends.

Nothing of it is loaded before a session has one.
"""

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.protocol.errors import StoreError, ToolError
from handrail.settings.model import Limits
from handrail.store.journal import SessionJournal

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession
    from handrail.process.sessions.sessions import ProcessSessions

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
        from handrail.runtime.telling import is_emitted  # noqa: PLC0415  as said

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
        from handrail.runtime.telling import emit_once  # noqa: PLC0415  as said
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
        from handrail.runtime.telling import emit_once  # noqa: PLC0415  as said

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
        from handrail.runtime.telling import emit_once  # noqa: PLC0415  as said

        emit_once(process, "started", self._journal)
        ended = process.wait(0)
        self._tell_tried(process)
        if ended:
            self._keep(process)
            emit_once(process, "ended", self._journal)

    def _keep(self, process: "ProcessSession") -> None:
        from handrail.process.sessions.layers import drop_unfinished, is_settled, remove_overlay  # noqa: PLC0415  as said

        if is_settled(process.folder):
            remove_overlay(process.folder)  # whoever settled it may have been killed before it was gone
            return
        if self.commit_deferred is not None:
            self.commit_deferred(process)
        else:
            drop_unfinished(process.folder, process.record())

    def _is_over(self, process: "ProcessSession") -> bool:
        from handrail.process.sessions.layers import is_settled  # noqa: PLC0415  as said
        from handrail.runtime.telling import is_emitted  # noqa: PLC0415

        return is_emitted(process, "ended") and (self.commit_deferred is None or is_settled(process.folder))

    def _tell_tried(self, process: "ProcessSession") -> None:
        """Tells what it tried to reach, where that is more than when we last looked."""
        from handrail.process.keeper.files import ATTEMPTS  # noqa: PLC0415  as said
        from handrail.runtime.telling import emit_attempts  # noqa: PLC0415

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
        from handrail.runtime.telling import is_emitted  # noqa: PLC0415  as said

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
