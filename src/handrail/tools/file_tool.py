"""Tools that change files by a plan.

A plan lists what every file becomes. The same plan is shown in a preview, committed as one change set, and laid below a
command that is tried after the call. Planning and committing take the engine rooms (`edit`, `changes`), which many
sessions do not need. So the modules of these tools import them in the functions that plan and run.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self

import msgspec

from handrail.edit.lines import count_common_end, count_common_start, format_line_range, list_line_ranges
from handrail.policy.names import find_protection
from handrail.protocol.changes import Preview, State
from handrail.protocol.errors import ToolError
from handrail.protocol.tool_spec import ToolSpec
from handrail.tools.text import MAX_TEXT_BYTES
from handrail.tools.tool import Context, Output, ReadMarks, Tool, Touches
from handrail.workspace.errors import to_tool_error
from handrail.workspace.file_state import FileSnapshot, read_file_snapshot, read_state
from handrail.workspace.pages import WholeFileMark, decode_mark, encode_mark, identify_content
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.roots import clip_path
from handrail.workspace.text import SAMPLE_BYTES, decode_text

if TYPE_CHECKING:
    from handrail.changes.model import OverlayChanges
    from handrail.changes.recorder import Recorder


# The state of a file before a tool changes it


class FileTarget(msgspec.Struct, frozen=True):
    """A path that a call changes, and the file or link there now."""

    path: str
    """As the call spells it."""
    real: str
    """As results show it."""
    exact: bytes
    """As the change log stores it."""
    snapshot: FileSnapshot | None = None
    """The file, with its bytes unless it is large."""
    link: State | None = None
    """The link, if the path names one and is to be removed."""
    missing: tuple[str, ...] = ()
    """Folders on the way that do not exist yet."""
    mark: bytes | None = None
    """What the session has seen of the file."""
    parent: ResolvedParent | None = None
    """The open folder, if the call changes this path alone."""

    @property
    def state(self) -> State | None:
        """Waits for the hash of the file."""
        return self.snapshot.to_state() if self.snapshot is not None else self.link

    @property
    def data(self) -> bytes | None:
        return self.snapshot.data if self.snapshot is not None else None

    @property
    def mode(self) -> int | None:
        return stat.S_IMODE(self.snapshot.status.st_mode) if self.snapshot is not None else None

    @property
    def exists(self) -> bool:
        return self.snapshot is not None or self.link is not None

    @property
    def is_link(self) -> bool:
        return self.link is not None

    @property
    def is_unread(self) -> bool:
        return self.exists and self.mark is None

    @property
    def is_stale(self) -> bool:
        """Whether the session may have seen other bytes than those there now."""
        if self.mark is None or self.snapshot is None:
            return False
        seen = decode_mark(self.mark)
        if isinstance(seen, WholeFileMark):
            return seen.hash != self.snapshot.hash
        return seen.identity != identify_content(self.snapshot.status)


class FileView:
    """The files of the workspace as one call sees them."""

    def __init__(self, context: Context, marks: ReadMarks, recorder: "Recorder", doing: str) -> None:
        """`doing` names the work in messages: writing, editing."""
        self.context = context
        self._marks = marks
        self._recorder = recorder
        self._doing = doing
        self._parents = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._parents.close()

    def open_target(self, path: str, keep: int) -> FileTarget:
        """The only file that the call changes. Its folder stays open as long as the view, and it is written there."""
        parent, real = self.context.workspace.resolve_for_write(path)
        self._parents.enter_context(parent)
        with _convert_errors(path):
            return msgspec.structs.replace(self._look(parent, real, path, keep), parent=parent)

    def open_text(self, path: str, *, advice: str = "") -> tuple[FileTarget, bytes]:
        """The same for a file that exists and can be held in memory, with its bytes. `advice` ends NOT_FOUND."""
        target = self.open_target(path, -1)
        if target.snapshot is None:
            missing = self.context.workspace.build_not_found_error(path, "file")
            raise ToolError(missing.code, f"{missing.message}{advice}", details=missing.details)
        if target.snapshot.data is None:
            raise build_too_large_error(path)
        return target, target.snapshot.data

    def look_to_write(self, path: str) -> FileTarget:
        """One of many paths that are written. Links are followed."""
        parent, real = self.context.workspace.resolve_for_write(path)
        with parent, _convert_errors(path):
            target = self._look(parent, real, path, -1)
        self.refuse_stale(target)
        return target

    def look_to_remove(self, path: str) -> FileTarget:
        """A path that is removed. If it is a link, the link is. NOT_FOUND if there is nothing."""
        if path.rpartition("/")[2] in {"", ".", ".."} and path:
            message = f"{clip_path(path)} is a directory, which cannot be deleted. Give the path of a file."
            raise ToolError("NOT_A_FILE", message)
        parent, real = self.context.workspace.resolve_for_removal(path)
        with parent, _convert_errors(path):
            target = self._look_at_name(parent, real, path)
        self.refuse_stale(target)
        return target

    def find_exact_name(self, path: str) -> bytes | None:
        """The exact path of a name, which may be that of a link. None if its folder does not exist."""
        try:
            parent, _ = self.context.workspace.resolve_for_removal(path)
        except ToolError:
            return None
        with parent:
            return self.context.workspace.build_exact_path(parent)

    def refuse_stale(self, target: FileTarget) -> None:
        """STALE_FILE if the session saw other bytes. Waits for the hash of the file."""
        if target.is_stale:
            lines = self._describe_changed_lines(target)
            message = f"{clip_path(target.path)} changed since you read it{lines}. Read it again before {self._doing}."
            raise ToolError("STALE_FILE", message)

    def _look(self, parent: ResolvedParent, real: str, path: str, keep: int) -> FileTarget:
        """`keep`: how many bytes are held of a file of any size; -1 holds all bytes and refuses a file too large."""
        if keep < 0:
            _refuse_large(parent, path)
        if not parent.name or path.rpartition("/")[2] in {"", ".", ".."}:
            message = f"{clip_path(path)} names a directory; {self._doing} takes the name of a file."
            raise ToolError("NOT_A_FILE", message)
        self._refuse_credential(real, path)
        most = MAX_TEXT_BYTES if keep < 0 else keep
        snapshot = None if parent.missing else read_file_snapshot(parent.folder, parent.name, most)
        return self._build_target(parent, real, path, snapshot)

    def _look_at_name(self, parent: ResolvedParent, real: str, path: str) -> FileTarget:
        self._refuse_credential(real, path)
        with contextlib.suppress(FileNotFoundError):
            mode = os.stat(parent.name, dir_fd=parent.folder, follow_symlinks=False).st_mode
            if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
                raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), parent.name)
        found = read_state(parent, MAX_TEXT_BYTES)
        if found.state is None:
            raise self.context.workspace.build_not_found_error(path, "file")
        if found.state.kind == "folder":
            message = f"{clip_path(path)} is a directory, which cannot be deleted. Delete its files one by one."
            raise ToolError("NOT_A_FILE", message)
        target = self._build_target(parent, real, path, found.current)
        return target if found.current is not None else msgspec.structs.replace(target, link=found.state)

    def _build_target(self, parent: ResolvedParent, real: str, path: str, snapshot: FileSnapshot | None) -> FileTarget:
        mark = self._marks.get_mark(real)
        exact = self.context.workspace.build_exact_path(parent)
        return FileTarget(path, real, exact, snapshot, None, parent.missing, mark)

    def _refuse_credential(self, real: str, path: str) -> None:
        if find_protection(real) == "credential":
            raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {self._doing} {clip_path(path)}.")

    def _describe_changed_lines(self, target: FileTarget) -> str:
        """The lines that changed. Empty if the bytes that the session saw were not stored."""
        seen = decode_mark(target.mark) if target.mark is not None else None
        stored = self._recorder.content(seen.hash) if isinstance(seen, WholeFileMark) else None
        old = decode_text(stored) if stored is not None else None
        new = decode_text(target.data) if target.data is not None else None
        if old is None or new is None or old.text == new.text:
            return ""
        start = count_common_start(old.text, new.text)
        end = len(new.text) - count_common_end(old.text[start:], new.text[start:])
        [(first, last)] = list_line_ranges(new.text, [(start, end)])
        return f" ({format_line_range(first, last)})"


def build_too_large_error(path: str) -> ToolError:
    """The refusal of a file of which several copies would not fit into memory."""
    message = f"{clip_path(path)} is larger than 32 MiB, the limit for edits. Use a program such as sed."
    return ToolError("LIMIT_EXCEEDED", message)


@contextmanager
def _convert_errors(path: str) -> Generator[None]:
    try:
        yield
    except OSError as error:
        raise to_tool_error(error, path) from None


def _refuse_large(parent: ResolvedParent, path: str) -> None:
    """Before the file is read, since it can be larger than memory."""
    if not parent.name or parent.missing:
        return
    with contextlib.suppress(FileNotFoundError):
        if os.stat(parent.name, dir_fd=parent.folder, follow_symlinks=False).st_size > MAX_TEXT_BYTES:
            raise build_too_large_error(path)


class SimulatedFiles:
    """The files that earlier calls of a batch would change, as they would leave them."""

    def __init__(self, marks: ReadMarks, recorder: "Recorder") -> None:
        self._marks = marks
        self._recorder = recorder
        self._new_marks: dict[str, bytes] = {}
        self._contents: dict[str, bytes] = {}
        self.states: dict[bytes, State | None] = {}

    def add(self, changes: "OverlayChanges", *, is_file_tool: bool) -> None:
        """Adds what one call would change. A session knows the bytes that its file tools write."""
        self.states |= {step.path: step.after for step in changes.steps}
        self._contents |= changes.contents
        for step in changes.steps if is_file_tool else ():
            if step.after is not None and step.after.kind == "file":
                self.set_mark(os.fsdecode(step.path), encode_mark(WholeFileMark(step.after.hash)))

    def get_mark(self, path: str) -> bytes | None:
        return self._new_marks.get(path) or self._marks.get_mark(path)

    def set_mark(self, path: str, mark: bytes) -> None:
        self._new_marks[path] = mark

    def read(self, state: State) -> FileSnapshot:
        """A file in one of the states; CONFLICT if its bytes are not known."""
        data = self._contents.get(state.hash)
        data = self._recorder.content(state.hash) if data is None else data
        if state.kind != "file" or data is None:
            raise ToolError("CONFLICT", "An earlier call of this message makes it too large or not a file.")
        mode = stat.S_IFREG | (0o644 if state.mode is None else state.mode)
        status = os.stat_result((mode, 0, 0, 1, os.geteuid(), os.getegid(), len(data), 0, 0, 0))
        return FileSnapshot(state.hash, len(data), data[:SAMPLE_BYTES], data, status=status)


class SimulatedView(FileView):
    """The files as a call sees them that runs after other calls of its batch. All its paths are exact."""

    def __init__(self, context: Context, files: SimulatedFiles, recorder: "Recorder", doing: str) -> None:
        super().__init__(context, files, recorder, doing)
        self._files = files

    def open_target(self, path: str, keep: int) -> FileTarget:
        target = self._simulate(path)
        return self._adjust_missing(super().open_target(path, keep) if target is None else target)

    def look_to_write(self, path: str) -> FileTarget:
        target = self._simulate(path)
        return self._adjust_missing(super().look_to_write(path) if target is None else target)

    def look_to_remove(self, path: str) -> FileTarget:
        target = self._simulate(path)
        if target is None:
            return super().look_to_remove(path)
        if not target.exists:
            raise self.context.workspace.build_not_found_error(path, "file")
        return target

    def _simulate(self, path: str) -> FileTarget | None:
        """The target as earlier calls would leave it. None if they would not change it."""
        real = os.path.normpath(path)
        exact = os.fsencode(real)
        if exact not in self._files.states:
            return None
        state, mark = self._files.states[exact], self._files.get_mark(real)
        snapshot = self._files.read(state) if state is not None else None
        target = FileTarget(path, real, exact, snapshot, mark=mark)
        self.refuse_stale(target)
        return target

    def _adjust_missing(self, target: FileTarget) -> FileTarget:
        """The target with the folders missing that would be missing by then."""
        names = target.exact.split(b"/")[:-1]
        on_disk = len(names) - len(target.missing)
        for number in range(len(names)):
            folder = b"/".join(names[: number + 1])
            state = self._files.states.get(folder)
            if state is not None and state.kind != "folder":
                raise ToolError("CONFLICT", f"{clip_path(os.fsdecode(folder))} would not be a directory by then.")
            if state is None and (folder in self._files.states or number >= on_disk):
                return msgspec.structs.replace(target, missing=tuple(map(os.fsdecode, names[number:])))
        return msgspec.structs.replace(target, missing=())


# The tool


class Plan(Protocol):
    """What a call would change."""

    @property
    def preview(self) -> str: ...

    @property
    def is_truncated(self) -> bool: ...

    def commit(self, context: Context, marks: ReadMarks, recorder: "Recorder", tool: str) -> Output: ...

    def simulate(self, context: Context) -> "OverlayChanges": ...


class FileTool(Tool, frozen=True, kw_only=True):
    """A tool that changes files by a plan."""

    simulate: Callable[[Context, Any, SimulatedFiles], "OverlayChanges"]
    """What a call would change after other calls of its batch."""


def build_file_tool(
    spec: ToolSpec,
    make_plan: Callable[[FileView, Any], Plan],
    marks: ReadMarks,
    recorder: "Recorder",
    *,
    doing: str,
    touches: Callable[[Any], Touches] = lambda arguments: Touches(writes=(arguments.path,)),
) -> FileTool:
    """The tool whose calls are planned by `make_plan`. `doing` names the work in messages: writing, editing."""

    def run(context: Context, arguments: Any) -> Output:
        with FileView(context, marks, recorder, doing) as view:
            return make_plan(view, arguments).commit(context, marks, recorder, spec.name)

    def preview(context: Context, arguments: Any) -> Preview:
        with FileView(context, marks, recorder, doing) as view:
            plan = make_plan(view, arguments)
        return Preview(kind="diff", text=plan.preview, truncated=plan.is_truncated)

    def simulate(context: Context, arguments: Any, files: SimulatedFiles) -> "OverlayChanges":
        with SimulatedView(context, files, recorder, doing) as view:
            return make_plan(view, arguments).simulate(context)

    return FileTool(spec=spec, run=run, touches=touches, preview=preview, simulate=simulate)
