"""The part of a session that the tools of a dialect use."""

import os
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from handrail.dialects.limit import cut_text
from handrail.protocol.calls import ToolCall
from handrail.protocol.errors import ToolError
from handrail.protocol.records import TodoItem
from handrail.protocol.results import ToolResult
from handrail.runtime.decide import DECIDING
from handrail.runtime.execute import take_steps
from handrail.runtime.pending_call import PendingCall
from handrail.runtime.session import Session
from handrail.store.conversation_state import read_last_todo
from handrail.workspace.text import decode_text


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

    def read_before(self, change: ToolResult[Any], path: str, digest: str) -> str | None:
        """The text of a file before a change, cut to the length of an answer.

        None if it is not stored, or if neither this session read it nor policy would allow that without approval.
        """
        tool = self.session.offer.get(change.name)
        was_read = not change.meta.unread or (tool is not None and "fs.read" in tool.spec.permissions)
        if not was_read and not self.is_allowed("read", {"path": path}):
            return None
        data = self.session.recorder.content(digest)
        text = None if data is None else decode_text(data)
        return None if text is None else cut_text(text.text, self.session.characters)

    def is_allowed(self, name: str, args: Any) -> bool:
        """Whether the session offers a tool, and policy would allow this call of it without approval."""
        if name not in self.session.offer.names:
            return False
        pending = self._decide(name, args)
        return pending.error is None and not pending.needs_approval

    def _decide(self, name: str, args: Any) -> PendingCall:
        pending = PendingCall(self.build_call(name, args), 0)
        take_steps(self.session, pending, DECIDING)
        return pending

    def list_process_ids(self) -> list[str]:
        """The background processes of the session."""
        background = self.session.background
        return [process.id for process in background.sessions.list_sessions()] if background.any else []

    def find_pid(self, process_id: str) -> int | None:
        return self.session.background.sessions.find(process_id).pid

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
