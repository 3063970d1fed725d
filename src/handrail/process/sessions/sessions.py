"""Process sessions: background commands of a session, each known by its folder alone."""

import base64
import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from handrail.kernel.files import is_locked
from handrail.process.keeper.state import ATTEMPTS, RECORD, Json, KeeperPlan
from handrail.process.output import clean_output
from handrail.process.result import find_exit_signal
from handrail.process.sessions.keeper_client import (
    LogSizes,
    NoKeeperError,
    ProxyPlan,
    ask,
    bind_to_caller,
    force_stop,
    start_keeper,
)
from handrail.process.sessions.ports import list_listening_ports, open_shared_network
from handrail.process.sessions.store import (
    ProcessLog,
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
from handrail.sandbox.session_network import NEW_NETWORK

_ANSWER_SECONDS = 15.0
_STOP_SECONDS = 12.0
_STOP_ANSWER_SECONDS = 3.0
_POLL_SECONDS = 0.02
_MIN_ABANDONED_SECONDS = 60.0
"""Age of a folder without a record. A younger one may belong to a start that has not locked it yet."""
_MAX_LAST_LINE_BYTES = 4096
_ID_CHARACTERS = 20


def generate_id() -> str:
    return "p-" + base64.b32encode(os.urandom(13)).decode()[:_ID_CHARACTERS].lower()


class ProcessSessions:
    """The process sessions of one session, in one folder, which is made when needed."""

    def __init__(self, folder: str, *, sizes: LogSizes | None = None) -> None:
        self._folder = folder
        self._sizes = sizes or LogSizes()

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
    ) -> "ProcessSession":
        """Start a command under a keeper, which takes the launch over. If that fails, nothing is left.

        `files` are in the session's folder, by name, before the session can be found. `name` is from `generate_id`.
        """
        name = name or generate_id()
        fields = {field: value for field, value in vars(launch).items() if not field.startswith("_")}
        plan = KeeperPlan(
            launch={**fields, "environment": dict(launch.environment)},
            record={"id": name, "command": command, "cwd": cwd, "session_id": session_id},
            memory=limits.memory,
            processes=limits.processes,
            threads=limits.threads,
            disk=limits.disk,
            uppers=limits.uppers,
            idle=idle_seconds,
            log=self._sizes._asdict(),
            proxy=(proxy.folder, proxy.allow) if proxy else None,
        )
        folder = os.path.join(self._folder, name)
        start_keeper(folder, launch, plan, files or {})
        return ProcessSession(folder)

    def list_sessions(self) -> list["ProcessSession"]:
        """Running, ended and lost ones, oldest first."""
        known = [(folder, read_record(folder)) for folder in self._list_folders()]
        for folder in (folder for folder, record in known if record is None):
            with contextlib.suppress(OSError):  # its start or its removal was cut off
                if time.time() - os.stat(folder).st_mtime > _MIN_ABANDONED_SECONDS and not is_locked(folder):
                    shutil.rmtree(folder, ignore_errors=True)
        found = sorted((record.started, folder) for folder, record in known if record is not None)
        return [ProcessSession(folder) for _, folder in found]

    def records(self) -> tuple[ProcessRecord, ...]:
        """The records of sessions, without those that were removed meanwhile."""
        records: list[ProcessRecord] = []
        for one in self.list_sessions():
            with contextlib.suppress(ToolError):
                records.append(one.record())
        return tuple(records)

    def find(self, prefix: str) -> "ProcessSession":
        found = [one for one in self.list_sessions() if one.id.startswith(prefix)] if prefix else []
        if len(found) == 1:
            return found[0]
        if found:
            names = ", ".join(one.id for one in found[:10])
            message = f"{prefix[:40]!r} is the beginning of several ids: {names}."
            raise ToolError("PROCESS_NOT_FOUND", f"{message} Write a longer beginning.")
        raise ToolError("PROCESS_NOT_FOUND", f"There is no process session {prefix[:40]!r} in this session: list them.")

    @contextlib.contextmanager
    def open_network(self) -> Generator[int | None]:
        """The network that running sessions share. None: none runs. A session in use is not idle."""
        running = [one for one in reversed(self.list_sessions()) if one.running]
        records = filter(None, (read_record(one.folder) for one in running))
        network = next((found for record in records if (found := open_shared_network(record)) is not None), None)
        try:
            for one in running if network is not None else ():
                one.log.mark_asked()
            yield network
        finally:
            if network is not None:
                os.close(network)

    @contextlib.contextmanager
    def claim_network(self) -> Generator[int]:
        """The network for a new session, or NEW_NETWORK. In this block no other session is started."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with self.open_network() as network:
                yield NEW_NETWORK if network is None else network
        finally:
            os.close(lock)

    def end_all(self, reason: str) -> None:
        """End all running sessions at the same time. One that cannot be ended does not stop the others."""
        running = [one for one in self.list_sessions() if one.running]
        for one in running:
            one.ask_to_stop(reason)
        for one in running:
            with contextlib.suppress(ToolError):
                one.stop(reason)

    def remove_rest(self) -> None:
        """Remove what killed keepers left behind. All process sessions must be removed before."""
        for folder in list_socket_folders(self._folder):
            shutil.rmtree(folder, ignore_errors=True)

    def _list_folders(self) -> list[str]:
        try:
            return [os.path.join(self._folder, name) for name in os.listdir(self._folder) if name.startswith("p-")]
        except FileNotFoundError:
            return []


class ProcessSession:
    """A command that outlives its call. All state is in its folder."""

    def __init__(self, folder: str) -> None:
        self.id = os.path.basename(folder)
        self.folder = folder
        self.log = ProcessLog(folder)

    @property
    def running(self) -> bool:
        return read_state(self.folder) == "running"

    @property
    def pid(self) -> int | None:
        """The id of its first process, if that started and the session is still there."""
        begin = read_record(self.folder)
        return begin.first.number or None if begin is not None else None

    def record(self) -> ProcessRecord:
        state = read_state(self.folder)
        begin, end = read_record(self.folder), read_end(self.folder)
        if begin is None:
            raise ToolError("PROCESS_NOT_FOUND", f"The process session {self.id} was removed.")
        exit_code = end.exit_code if end else None
        lines = [line for line in clean_output(self.log.last(_MAX_LAST_LINE_BYTES)).split("\n") if line.strip()]
        return ProcessRecord(
            id=self.id,
            state=state,
            command=begin.command,
            cwd=begin.cwd,
            session_id=begin.session_id,
            started=datetime.fromtimestamp(begin.started, UTC),
            pid=begin.first.number or None,
            ports=list_listening_ports(begin) if state == "running" else (),
            size=self.log.size,
            dropped=self.log.dropped,
            last_line=lines[-1].strip()[:200] if lines else "",
            ended=datetime.fromtimestamp(end.ended, UTC) if end else None,
            exit_code=exit_code,
            signal=find_exit_signal(exit_code) if exit_code is not None else None,
            reason=end.reason if end else None,
            changed=read_settlement(self.folder),
        )

    def wait(self, seconds: float, cancelled: Callable[[], bool] = lambda: False) -> bool:
        """Wait for its end. False: it still runs."""
        until = time.monotonic() + seconds
        while self.running:
            if time.monotonic() >= until or cancelled():
                return False
            time.sleep(_POLL_SECONDS)
        return True

    def bind_lifetime(self) -> AbstractContextManager[Callable[[], None]]:
        """In this block the command ends with this process, even if that is killed. The function releases it."""
        return bind_to_caller(self.folder, seconds=_ANSWER_SECONDS)

    def write(self, data: bytes, *, eof: bool = False) -> None:
        """Type bytes, then the end of file if wanted."""
        if not self.running:
            raise build_ended_error(self.id)
        try:
            request: Json = {"do": "write", "size": len(data), "eof": eof}
            answer = ask(self.folder, request, data, seconds=_ANSWER_SECONDS)
        except NoKeeperError as error:
            if not self.running:
                raise build_ended_error(self.id) from None
            raise ToolError("TIMEOUT", f"The keeper of {self.id} does not answer ({error}); kill it.") from None
        if "error" in answer:
            taken = answer.get("taken")
            text = f"{self.id} took {taken if isinstance(taken, int) else 0:,} of {len(data):,} bytes"
            text = f"{text} and stopped reading. The rest was not written: poll it, then write the rest."
            raise ToolError("TIMEOUT", text)

    def stop(self, reason: str = "stopped") -> None:
        """End the command with everything it started, and wait for that."""
        if self.running and self.ask_to_stop(reason) and self.wait(_STOP_SECONDS):
            return
        if not force_stop(self.folder, reason):
            text = f"A process of {self.id} could not be stopped"
            raise ToolError("TIMEOUT", f"{text}: it waits for the machine, for example for a disk. Try again later.")

    def ask_to_stop(self, reason: str) -> bool:
        """Ask the keeper to end the command, without waiting. False: no answer."""
        try:
            ask(self.folder, {"do": "stop", "reason": reason}, seconds=_STOP_ANSWER_SECONDS)
        except NoKeeperError:
            return False
        return True

    def remove(self) -> None:
        self.stop()
        record = read_record(self.folder)
        if record is not None and record.proxy is not None:  # left by a killed keeper
            shutil.rmtree(record.proxy, ignore_errors=True)
        remove_overlay(self.folder)
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self.folder, RECORD))  # first: without it the rest counts as abandoned
        shutil.rmtree(self.folder, ignore_errors=True)

    def attempts(self, after: int) -> list[Attempt]:
        """Connection attempts through its proxy, without the first `after`. Only 1,000 blocked ones are recorded."""
        try:
            with open(os.path.join(self.folder, ATTEMPTS), "rb") as file:
                lines = file.read().split(b"\n")[:-1]  # the last may be half a line
        except FileNotFoundError:
            return []
        return [Attempt(**json.loads(line)) for line in lines[after:]]


def build_ended_error(name: str) -> ToolError:
    return ToolError("PROCESS_ENDED", f"{name} has ended. Nothing was written. Its log has the outcome.")
