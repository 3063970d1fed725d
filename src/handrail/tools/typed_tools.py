"""The methods of Handrail that call the built-in tools with typed arguments."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ForwardRef

from msgspec import to_builtins

from handrail.protocol.results import ToolResult

if TYPE_CHECKING:
    from handrail.tools.apply_patch import ApplyPatchData
    from handrail.tools.delete import DeleteData
    from handrail.tools.edit import EditData
    from handrail.tools.exec.spec import ExecData
    from handrail.tools.find import FindData
    from handrail.tools.grep import GrepData
    from handrail.tools.ls import LsData
    from handrail.tools.multi_edit import MultiEditData, OneEdit
    from handrail.tools.process import Action, ProcessData
    from handrail.tools.read import ReadData
    from handrail.tools.write import WriteData


_MODULES = {
    "protocol.changes": "ChangeRecord LineOrigin StoredDiff",
    "protocol.permissions": "Question Reply",
    "protocol.records": "Memory ProcessRecord SkillEntry TodoItem",
    "runtime.approvals": "Approver OnPermission SettledReply",
    "runtime.conversation": "Conversation",
    "runtime.foreign.source": "ToolSource",
    "runtime.undo": "Resolve",
    "store.approvals": "DeferredCalls",
    "store.shared_store": "SharedStore",
    "tools.apply_patch": "ApplyPatchData",
    "tools.delete": "DeleteData",
    "tools.edit": "EditData",
    "tools.exec.spec": "ExecData",
    "tools.find": "FindData",
    "tools.grep": "GrepData",
    "tools.ls": "LsData",
    "tools.multi_edit": "MultiEditData OneEdit",
    "tools.process": "Action ProcessData",
    "tools.read": "ReadData",
    "tools.undo": "UndoData",
    "tools.write": "WriteData",
}
LATE_TYPES = {
    name: ForwardRef(f"__import__('handrail.{module}', fromlist=['_']).{name}")
    for module, names in _MODULES.items()
    for name in names.split()
}
"""The types in signatures of the API, for `typing.get_type_hints`. It imports a module when it resolves its types."""

if not TYPE_CHECKING:
    globals().update(LATE_TYPES)


class TypedTools:
    """Methods that each call one tool."""

    def _call_tool(self, name: str, args: Any) -> ToolResult[Any]:
        raise NotImplementedError

    def read(self, path: str, *, offset: int = 1, limit: int = 2_000) -> "ToolResult[ReadData]":
        """Reads a page of a file."""
        return self._call_tool("read", {"path": path, "offset": offset, "limit": limit})

    def write(self, path: str, content: str) -> "ToolResult[WriteData]":
        """Writes a whole file."""
        return self._call_tool("write", {"path": path, "content": content})

    def edit(self, path: str, old_text: str, new_text: str, *, replace_all: bool = False) -> "ToolResult[EditData]":
        """Replaces one text of a file by another."""
        args = {"path": path, "oldText": old_text, "newText": new_text, "replaceAll": replace_all}
        return self._call_tool("edit", args)

    def multi_edit(self, path: str, edits: "Iterable[OneEdit | dict[str, str]]") -> "ToolResult[MultiEditData]":
        """Applies several edits to one file, in order, all or none. The settings must enable this tool.

        An edit is a OneEdit, or a dict: `{"oldText": …, "newText": …, "occurrence": "first"}`.
        """
        return self._call_tool("multi_edit", {"path": path, "edits": [to_builtins(edit) for edit in edits]})

    def apply_patch(self, patch: str) -> "ToolResult[ApplyPatchData]":
        """Changes several files, all or none. The settings must enable this tool."""
        return self._call_tool("apply_patch", {"patch": patch})

    def delete(self, path: str) -> "ToolResult[DeleteData]":
        """Deletes a file or a link. The settings must enable this tool."""
        return self._call_tool("delete", {"path": path})

    def find(
        self, pattern: str, path: str = ".", *, max_results: int = 1_000, exclude: Sequence[str] = ()
    ) -> "ToolResult[FindData]":
        """Finds files by name."""
        args = {"pattern": pattern, "path": path, "maxResults": max_results, "exclude": list(exclude)}
        return self._call_tool("find", args)

    def grep(
        self,
        pattern: str,
        path: str = ".",
        *,
        file_pattern: str | None = None,
        case_sensitive: bool = True,
        context_lines: int = 0,
        max_results: int = 100,
    ) -> "ToolResult[GrepData]":
        """Searches lines of files."""
        args = {
            "pattern": pattern,
            "path": path,
            "caseSensitive": case_sensitive,
            "contextLines": context_lines,
            "maxResults": max_results,
        }
        return self._call_tool("grep", args if file_pattern is None else args | {"filePattern": file_pattern})

    def ls(self, path: str = ".", *, depth: int = 1) -> "ToolResult[LsData]":
        """Lists a folder."""
        return self._call_tool("ls", {"path": path, "depth": depth})

    def exec(
        self,
        command: str,
        *,
        cwd: str = ".",
        timeout_ms: int | None = None,
        background: bool = False,
        yield_ms: int | None = None,
    ) -> "ToolResult[ExecData]":
        """Runs a shell command in the sandbox. With `background` or `yield_ms` it may outlive the call."""
        given = {"timeoutMs": timeout_ms, "background": background or None, "yieldMs": yield_ms}
        return self._call_tool("exec", {"command": command, "cwd": cwd, **_drop_none(given)})

    def process(
        self,
        action: "Action",
        session_id: str | None = None,
        *,
        offset: int | None = None,
        limit: int | None = None,
        data: str | None = None,
        eof: bool | None = None,
    ) -> "ToolResult[ProcessData]":
        """Polls, writes to or ends a background process."""
        given = {"sessionId": session_id, "offset": offset, "limit": limit, "data": data, "eof": eof}
        return self._call_tool("process", {"action": action, **_drop_none(given)})


def _drop_none(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value is not None}
