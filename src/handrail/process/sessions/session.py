"""One process session, for whoever has its folder: nothing of it is kept in memory."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from handrail.process.cleaning import clean_output
from handrail.process.exit_codes import find_exit_signal
from handrail.process.keeper.files import RECORD, Json
from handrail.process.sessions.asking import NoKeeperError, ask, bind_to_caller
from handrail.process.sessions.known import KeeperRecord, read_end, read_record, read_state
from handrail.process.sessions.layers import read_settlement, remove_overlay
from handrail.process.sessions.log import ProcessLog
from handrail.process.sessions.network import read_attempts
from handrail.process.sessions.ports import list_listening_ports
from handrail.process.sessions.stopping import force_stop
from handrail.protocol.errors import ToolError
from handrail.protocol.records import ProcessRecord
from handrail.sandbox.proxy.attempt import Attempt

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
