"""The first step of every tool that changes a file: where the path leads, what is there, who has seen it."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

import msgspec

from handrail.edit.lines import count_common_end, count_common_start, format_line_range, list_line_ranges
from handrail.policy.names import find_protection
from handrail.protocol.errors import ToolError
from handrail.tools.contract import MAX_TEXT_BYTES, Context, ReadMarks
from handrail.tools.marks import find_whole_hash, hash_seen_page, is_stale
from handrail.tools.records import Records
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.file_state import FileSnapshot, read_file_snapshot
from handrail.workspace.resolve import ResolvedParent
from handrail.workspace.text import decode_text


class FileState(msgspec.Struct, frozen=True):
    """A file that is about to change, as it is now."""

    before: FileSnapshot | None
    """None where there is none yet."""
    path: str
    doing: str
    records: Records
    mark: bytes | None
    """What the session has seen of it."""
    part: str | None
    """The hash of what is now where a page was seen."""

    @property
    def seen(self) -> bool:
        """Whether the session has read or written it."""
        return self.mark is not None

    @property
    def unread(self) -> bool:
        """Whether there is something that the session never saw."""
        return self.before is not None and not self.seen

    def refuse_stale(self) -> None:
        """STALE_FILE when the session knew other bytes."""
        if is_stale(self.mark, self.before, self.part):
            where = _changed_lines(self.records, find_whole_hash(self.mark), self.before)
            message = f"{clip_path(self.path)} changed since you read it{where}. Read it again before {self.doing}."
            raise ToolError("STALE_FILE", message)


@contextmanager
def open_target(context: Context, path: str) -> Generator[tuple[ResolvedParent, str], None, None]:
    """The folder of a file that is about to change, and the path as results name it; system refusals are told."""
    landing, real = context.workspace.resolve_for_write(path)
    with landing:
        try:
            yield landing, real
        except OSError as error:
            raise to_tool_error(error, path) from None


def read_file_state(
    landing: ResolvedParent, real: str, path: str, seen: ReadMarks, records: Records, *, keep: int, doing: str
) -> FileState:
    """Looks at the file, its bytes kept up to a size. Whether it is stale is asked later: that waits for the hash."""
    _refuse_folder(landing, path, doing)
    if find_protection(real) == "credential":
        raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {doing} {clip_path(path)}.")
    before = None if landing.missing else read_file_snapshot(landing.folder, landing.name, keep)
    mark = seen.get_mark(real)
    part = hash_seen_page(landing.folder, landing.name, mark) if before else None
    return FileState(before, path, doing, records, mark, part)


def check_file_size(landing: ResolvedParent, path: str) -> None:
    """Before it is read: a file can be larger than memory."""
    if not landing.name or landing.missing:
        return
    with suppress(FileNotFoundError):
        if os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False).st_size > MAX_TEXT_BYTES:
            raise build_too_large_error(path)


def build_too_large_error(path: str) -> ToolError:
    """The refusal of a file that would not fit into memory a few times."""
    message = f"{clip_path(path)} is larger than 32 MiB, the most that is edited. Use a program such as sed."
    return ToolError("LIMIT_EXCEEDED", message)


def _changed_lines(records: Records, seen: str | None, now: FileSnapshot | None) -> str:
    """Which lines are other ones now, where what was seen is still known: handrail itself replaced it."""
    then = records.content(seen) if seen is not None else None
    old = decode_text(then) if then is not None else None
    new = decode_text(now.data) if now is not None and now.data is not None else None
    if old is None or new is None or old.text == new.text:
        return ""
    start = count_common_start(old.text, new.text)
    end = len(new.text) - count_common_end(old.text[start:], new.text[start:])
    [(first, last)] = list_line_ranges(new.text, [(start, end)])
    return f" ({format_line_range(first, last)})"


def _refuse_folder(landing: ResolvedParent, path: str, doing: str) -> None:
    if not landing.name or path.rpartition("/")[2] in {"", ".", ".."}:
        raise ToolError("NOT_A_FILE", f"{clip_path(path)} names a directory; {doing} takes the name of a file.")
