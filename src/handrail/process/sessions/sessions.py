"""The process sessions of one session."""

import base64
import os
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress

from handrail.process.sessions.known import read_record
from handrail.process.sessions.network import ProxyPlan
from handrail.process.sessions.session import ProcessSession
from handrail.process.sessions.starting import USUAL_SIZES, KeeperOptions, LogSizes, remove_abandoned, start_keeper
from handrail.protocol.errors import ToolError
from handrail.protocol.records import ProcessRecord
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import ResourceLimits
from handrail.sandbox.proxy.place import list_socket_folders

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
