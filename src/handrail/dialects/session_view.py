"""The part of a session that the tools of a dialect use."""

import os
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from handrail.dialects.limit import cut_text
from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.records import ProcessRecord, TodoItem
from handrail.runtime.decide import DECIDING
from handrail.runtime.execute import take_steps
from handrail.runtime.pending_call import PendingCall
from handrail.runtime.session import Session
from handrail.store.conversation_state import read_last_todo
from handrail.workspace.text import decode_text

_MAX_VERSION_BYTES = 8 * 1024 * 1024


class Surface:
    """A session with the paths of its workspace."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.memory: dict[str, Any] = {}
        """What the tools of the dialect remember, such as fields of a todo item that no canonical call has."""

    @property
    def mode(self) -> str:
        return self.session.rules.mode

    @cached_property
    def _root(self) -> str:
        return self.session.workspace.main.path

    def is_missing(self, path: str) -> bool:
        try:
            with self.session.workspace.open_file(path):
                return False
        except ToolError as error:
            return error.code == "NOT_FOUND"

    def is_folder(self, path: str) -> bool:
        return self.session.workspace.is_folder(path)

    def find_time(self, path: str) -> int:
        """When a file was changed last, in nanoseconds. Only for the order of paths: it follows every link."""
        try:
            return os.stat(path, dir_fd=self.session.workspace.main.descriptor).st_mtime_ns
        except (OSError, ValueError):
            return 0

    def sort_newest(self, paths: tuple[str, ...]) -> list[str]:
        """Paths by the time of their last change, the newest first."""
        return sorted(sorted(paths), key=self.find_time, reverse=True)

    def to_absolute(self, path: str) -> str:
        if path.startswith("/"):
            return path
        return self._root if path == "." else f"{self._root}/{path}"

    def to_relative(self, path: str) -> str:
        """A path below the workspace as the canonical tools name it."""
        return "." if path == self._root else path.removeprefix(f"{self._root}/")

    def list_todo(self) -> tuple[TodoItem, ...]:
        """The last todo list of the session."""
        return read_last_todo(self.session.journal)

    def read_small_file(self, path: str, most: int) -> bytes:
        """The content of a file, if policy would allow `read` of it without approval."""
        pending = self._decide("read", {"path": path})
        if pending.error is not None:
            raise ToolError(pending.error.code, pending.error.message, details=pending.error.details)
        if pending.needs_approval:
            raise ToolError("POLICY_DENIED", f"Reading {path} needs approval, so read it first. Nothing was changed.")
        return self.session.workspace.read_small_file(path, most)

    def read_version(self, path: str, digest: str | None) -> str | None:
        """The text that a file had or has, found by its hash, cut to the length of an answer.

        None if policy would not allow `read` of it without approval, or it is not stored.
        """
        if digest is None or not self.is_allowed("read", {"path": path}):
            return None
        try:
            data = self._read_stored(digest)
            if data is None and digest == self.session.workspace.hash_of(path):
                data = self.session.workspace.read_small_file(path, _MAX_VERSION_BYTES)
        except (ToolError, StoreError, OSError):
            return None
        text = None if data is None else decode_text(data)
        return None if text is None else cut_text(text.text, self.session.characters)

    def _read_stored(self, digest: str) -> bytes | None:
        data = bytearray()
        try:
            for piece in self.session.recorder.history.blobs.chunks(digest):
                data += piece
                if len(data) > _MAX_VERSION_BYTES:
                    return None
        except FileNotFoundError:
            return None
        return bytes(data)

    def is_allowed(self, name: str, args: Any) -> bool:
        """Whether the session offers a tool, and policy would allow this call of it without approval."""
        pending = self._decide(name, args)
        return pending.error is None and not pending.needs_approval

    def _decide(self, name: str, args: Any) -> PendingCall:
        pending = PendingCall(self.build_call(name, args), 0)
        take_steps(self.session, pending, DECIDING)
        return pending

    def list_processes(self) -> tuple[ProcessRecord, ...]:
        """The background processes of the session."""
        background = self.session.background
        return background.sessions.records() if background.any else ()

    def wait_for_end(self, process_id: str, milliseconds: float) -> None:
        """Waits until a background process has ended, or for a time."""
        try:
            found = self.session.background.sessions.find(process_id)
        except ToolError:
            return  # the call that follows answers so
        found.wait(milliseconds / 1000, self.session.cancelled.is_set)

    def build_call(self, name: str, args: Any, call_id: str = "") -> ToolCall:
        call_id = call_id or self.session.journal.new_call_id()
        return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))
