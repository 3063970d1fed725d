"""Process sessions."""

import base64
import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

from handrail.process.keeper.state import RECORD, Json
from handrail.process.output import clean_output
from handrail.process.result import find_exit_signal
from handrail.process.sessions.keeper_client import (
    USUAL_SIZES,
    KeeperOptions,
    LogSizes,
    NoKeeperError,
    ProxyPlan,
    ask,
    bind_to_caller,
    read_attempts,
    remove_abandoned,
    start_keeper,
)
from handrail.process.sessions.store import (
    KeeperRecord,
    ProcessLog,
    force_stop,
    list_listening_ports,
    read_end,
    read_record,
    read_settlement,
    read_state,
    remove_overlay,
)
from handrail.protocol.errors import ToolError
from handrail.protocol.records import ProcessRecord
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits
from handrail.sandbox.proxy.handover import list_socket_folders
from handrail.sandbox.proxy.proxy import Attempt

# § [process.sessions.session] One process session, for whoever has its folder: nothing of it is kept in memory.

_ANSWER_SECONDS = 15.0
_STOP_SECONDS = 12.0
_STOP_ANSWER_SECONDS = 3.0
_PAUSE_SECONDS = 0.02
_MAX_LAST_LINE_BYTES = 4096


class ProcessSession:
    """A command that outlives its call."""

    def __init__(self, folder: str) -> None:
        self.id = os.path.basename(folder)
        self.folder = folder
        self.log = ProcessLog(folder)

    @property
    def running(self) -> bool:
        """Whether it has not ended, and its keeper lives."""
        return read_state(self.folder) == "running"

    def record(self) -> ProcessRecord:
        """What is known of it now; ToolError where it was removed."""
        state = read_state(self.folder)
        known = self._known()
        end = read_end(self.folder)
        code = end.exit_code if end else None
        return ProcessRecord(
            id=self.id,
            state=state,
            command=known.command,
            cwd=known.cwd,
            session_id=known.session_id,
            started=_time(known.started),
            pid=known.first.number or None,
            ports=list_listening_ports(known) if state == "running" else (),
            size=self.log.size,
            dropped=self.log.dropped,
            last_line=_last_line(self.log.last(_MAX_LAST_LINE_BYTES)),
            ended=_time(end.ended) if end else None,
            exit_code=code,
            signal=find_exit_signal(code) if code is not None else None,
            reason=end.reason if end else None,
            changed=read_settlement(self.folder),
        )

    def wait(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Waits until it has ended, or so long; whether it has."""
        until = time.monotonic() + seconds
        while self.running:
            if time.monotonic() >= until or cancelled():
                return False
            time.sleep(_PAUSE_SECONDS)
        return True

    def bind_lifetime(self) -> AbstractContextManager[Callable[[], None]]:
        """Meanwhile it ends with this process, also where that is killed; what is given lets go of it."""
        return bind_to_caller(self.folder, seconds=_ANSWER_SECONDS)

    def write(self, data: bytes, *, eof: bool = False) -> None:
        """Types it, and then the end of the file; ToolError where it has ended, or does not read."""
        if not self.running:
            raise build_ended_error(self.id)
        try:
            asked: Json = {"do": "write", "size": len(data), "eof": eof}
            answer = ask(self.folder, asked, data, seconds=_ANSWER_SECONDS)
        except NoKeeperError as error:
            if not self.running:
                raise build_ended_error(self.id) from None
            raise ToolError("TIMEOUT", f"The keeper of {self.id} does not answer ({error}); kill it.") from None
        if "error" in answer:
            said = answer.get("taken")
            taken = said if isinstance(said, int) else 0
            text = f"{self.id} took {taken:,} of {len(data):,} bytes and does not read on."
            raise ToolError("TIMEOUT", f"{text} The rest was not written: poll it, then write the rest.")

    def stop(self, reason: str = "stopped") -> None:
        """Ends it with everything it started; comes back when it is gone. ToolError where that cannot be."""
        if self.running and self.ask_to_stop(reason) and self.wait(_STOP_SECONDS):
            return
        if not force_stop(self.folder, reason):
            text = f"Something of {self.id} could not be ended"
            raise ToolError("TIMEOUT", f"{text}: it waits for the machine, such as for a disk. Try again later.")

    def ask_to_stop(self, reason: str) -> bool:
        """Asks its keeper to end it, and does not wait; whether there was an answer."""
        try:
            ask(self.folder, {"do": "stop", "reason": reason}, seconds=_STOP_ANSWER_SECONDS)
        except NoKeeperError:
            return False
        return True

    def remove(self) -> None:
        """Ends it if it runs, and forgets it."""
        self.stop()
        known = read_record(self.folder)
        if known is not None and known.proxy is not None:  # of a keeper that was killed
            shutil.rmtree(known.proxy, ignore_errors=True)
        remove_overlay(self.folder)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, RECORD))  # first: half of it is nobody's, whoever is killed here
        shutil.rmtree(self.folder, ignore_errors=True)

    def attempts(self, after: int) -> list[Attempt]:
        """What it tried to reach through its proxy, without the first so many; of what was blocked, the first 1,000."""
        return read_attempts(self.folder, after)

    def _known(self) -> KeeperRecord:
        known = read_record(self.folder)
        if known is None:
            raise ToolError("PROCESS_NOT_FOUND", f"The process session {self.id} was removed.")
        return known


def build_ended_error(name: str) -> ToolError:
    """What is told to who would write to one that does not read any more."""
    return ToolError("PROCESS_ENDED", f"{name} has ended. Nothing was written: its log says how it went.")


def _last_line(data: bytes) -> str:
    lines = [line for line in clean_output(data).split("\n") if line.strip()]
    return lines[-1].strip()[:200] if lines else ""


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


# § [process.sessions.sessions] The process sessions of one session.

_LETTERS = 20
"""Of five random bits each."""


def collect_records(sessions: Iterable[ProcessSession]) -> tuple[ProcessRecord, ...]:
    """What is known of some that were there a moment ago, without those that have been removed since."""
    found: list[ProcessRecord] = []
    for one in sessions:
        with suppress(ToolError):
            found.append(one.record())
    return tuple(found)


def generate_id() -> str:
    """The id of one that is to be started."""
    return "p-" + base64.b32encode(os.urandom(13)).decode()[:_LETTERS].lower()


class ProcessSessions:
    """They are in a folder, one for each; it is made when first needed."""

    def __init__(self, folder: str, *, sizes: LogSizes = USUAL_SIZES) -> None:
        self._folder = folder
        self._sizes = sizes

    def start(
        self,
        launch: Launch,
        *,
        session_id: str,
        command: str,
        cwd: str,
        limits: ResourceLimits,
        idle_seconds: float,
        proxy: ProxyPlan | None = None,
        files: Mapping[str, str] | None = None,
        name: str | None = None,
    ) -> ProcessSession:
        """Starts it under a keeper, which takes the launch over; ToolError where it cannot be, and nothing is left.

        `files` lie in its folder, by their names, before anybody can find it there. `name`: one that `new_name` gave.
        """
        name = name or generate_id()
        folder = os.path.join(self._folder, name)
        record = {"id": name, "command": command, "cwd": cwd, "session_id": session_id}
        start_keeper(folder, launch, KeeperOptions(record, limits, idle_seconds, self._sizes, proxy, files or {}))
        return ProcessSession(folder)

    def list_sessions(self) -> list[ProcessSession]:
        """All of them, the oldest first: those that run, that have ended and that were lost."""
        known = [(folder, read_record(folder)) for folder in self._folders()]
        for folder in (folder for folder, record in known if record is None):
            remove_abandoned(folder)
        found = sorted((record.started, folder) for folder, record in known if record is not None)
        return [ProcessSession(folder) for _, folder in found]

    def records(self) -> tuple[ProcessRecord, ...]:
        """What is known of each of them; one that is removed meanwhile is not among them."""
        return collect_records(self.list_sessions())

    def find(self, spelled: str) -> ProcessSession:
        """The one whose id that is, or the beginning of; ToolError where there is none, or more than one."""
        found = [one for one in self.list_sessions() if one.id.startswith(spelled)] if spelled else []
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(one.id for one in found[:10])
            message = f"{spelled[:40]!r} is the beginning of more than one id: {names}."
            raise ToolError("PROCESS_NOT_FOUND", f"{message} Give more of it.")
        raise ToolError(
            "PROCESS_NOT_FOUND", f"There is no process session {spelled[:40]!r} in this session: list them."
        )

    def end_all(self, reason: str) -> None:
        """Ends all that run, at the same time; one that cannot be ended keeps no other from it."""
        running = [one for one in self.list_sessions() if one.running]
        for one in running:
            with suppress(ToolError):
                one.ask_to_stop(reason)
        for one in running:
            with suppress(ToolError):
                one.stop(reason)

    def remove_rest(self) -> None:
        """Removes what keepers left that were killed before anybody knew of them; all others must be gone."""
        for place in list_socket_folders(self._folder):
            shutil.rmtree(place, ignore_errors=True)

    def _folders(self) -> list[str]:
        try:
            return [os.path.join(self._folder, name) for name in os.listdir(self._folder) if name.startswith("p-")]
        except FileNotFoundError:
            return []
