"""Background processes of stored sessions, for people who open none of these sessions."""

import os
import time
from codecs import utf_8_decode
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from socket import socket
from typing import NamedTuple

from handrail.process.output import Cleaner, clean_output
from handrail.process.sessions.ports import NamespaceConnector, forward_port
from handrail.process.sessions.sessions import ProcessSession, ProcessSessions
from handrail.protocol.errors import ToolError
from handrail.protocol.events import Notice
from handrail.protocol.records import ProcessRecord
from handrail.runtime.background import BackgroundWork
from handrail.settings.model import Limits
from handrail.state import add_notice, find_workspace, open_journal

_BLOCK_BYTES = 1 << 18
_PAUSE_SECONDS = 0.1


class LogPage(NamedTuple):
    text: str
    next: int
    """The byte that the next page begins with."""
    running: bool


class StoredProcess:
    """A process of a stored session. ToolError if an action fails. Each action is recorded as a person's."""

    def __init__(self, session_folder: str, process: ProcessSession) -> None:
        self._session_folder, self._process = session_folder, process
        self.id = process.id

    @property
    def workspace(self) -> str | None:
        """The folder that it works in, if it is recorded."""
        return find_workspace(self._session_folder)

    def record(self) -> ProcessRecord:
        return self._process.record()

    def has_ended(self) -> bool:
        return self._process.wait(0)

    def ask_to_stop(self) -> None:
        self._process.ask_to_stop("stopped")

    def stop(self) -> ProcessRecord:
        """Ends it with everything it started. Its log stays."""
        with self._act("stopped") as work:
            self._process.stop()
            work.announce_end(self._process)
            return self.record()

    def remove(self) -> ProcessRecord:
        """Ends it if it runs, and removes it with its log."""
        with self._act("removed") as work:
            record = self.record()
            work.forget(self._process)
            return record

    def write(self, data: bytes, deed: str, *, eof: bool) -> ProcessRecord:
        """Writes to its input. The record names the deed and not the data, which may be a password."""
        with self._act(deed):
            self._process.write(data, eof=eof)
            return self.record()

    def read_log(self, *, follow: bool) -> Iterator[bytes]:
        """The kept log. With `follow`, until it has ended."""
        if not follow:
            yield from self._process.log.kept()
            return
        position = 0
        while True:
            ended = self.has_ended()
            start, data = self._process.log.read_from(position, _BLOCK_BYTES)
            position = start + len(data)
            if data:
                yield data
            elif ended:
                return
            else:
                time.sleep(_PAUSE_SECONDS)

    def read_page(self, after: int) -> LogPage:
        """A part of the log as text, from a byte on or from the next that is kept. It ends with a whole line if there
        is one, so that pages do not cut sequences and characters."""
        ended = self.has_ended()
        start, data = self._process.log.read_from(after, _BLOCK_BYTES)
        whole = data.rfind(b"\n") + 1 or (len(data) if ended else utf_8_decode(data, "replace", False)[1])
        part = data if ended and len(data) < _BLOCK_BYTES else data[:whole]
        return LogPage(clean_output(part), start + len(part), not ended)

    def read_clean_log(self, *, follow: bool) -> Iterator[str]:
        """The same as text without terminal sequences."""
        cleaner = Cleaner()
        yield from (text for piece in self.read_log(follow=follow) if (text := cleaner.feed(piece)))
        if text := cleaner.end():
            yield text

    @contextmanager
    def open_port(self, port: int) -> Generator[Callable[[socket], None]]:
        """Opens a port of its network. The function forwards the connections of a listener until the process ends."""
        with closing(NamespaceConnector(self._process.folder, port)) as connector:
            yield partial(forward_port, self._process.folder, connector)

    def add_notice(self, text: str) -> None:
        add_notice(self._session_folder, text)

    @contextmanager
    def _act(self, deed: str) -> Generator[BackgroundWork]:
        with open_journal(self._session_folder, "crash") as journal:
            yield BackgroundWork(self._session_folder, journal, Limits())
            journal.append((Notice, {"text": f"A person {deed} {self.id}."}))


def list_processes(session_folders: Iterable[str]) -> list[tuple[StoredProcess, ProcessRecord]]:
    """The processes of sessions with their records, the oldest first."""
    found: list[tuple[StoredProcess, ProcessRecord]] = []
    for folder in session_folders:
        path = os.path.join(folder, "processes")
        for process in ProcessSessions(path).list_sessions() if os.path.isdir(path) else ():
            with suppress(ToolError):  # it was removed meanwhile
                found.append((StoredProcess(folder, process), process.record()))
    return sorted(found, key=lambda one: one[1].started)
