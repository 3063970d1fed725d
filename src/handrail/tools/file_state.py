"""The state of a file before a tool changes it."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import msgspec

from handrail.changes.recorder import RecordedChangeSet
from handrail.edit.lines import (
    LineEnding,
    Replacement,
    count_common_end,
    count_common_start,
    format_line_range,
    list_line_ranges,
    normalize_newlines,
    predict_line_ending,
    restore_newlines,
)
from handrail.edit.sequences import narrow_replacements
from handrail.policy.names import find_protection
from handrail.protocol.changes import State
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import get_json_decoder
from handrail.store.change_log import ChangeSetRecord, Step
from handrail.tools.tool import MAX_TEXT_BYTES, Context, ReadMarks
from handrail.workspace.errors import clip_path, to_tool_error
from handrail.workspace.file_state import FileSnapshot, PathState, hash_range, read_file_snapshot, read_state
from handrail.workspace.resolve import READ_FILE, ResolvedParent
from handrail.workspace.text import (
    Encoding,
    LosslessText,
    decode_lossless,
    decode_text,
    replace_surrogates,
    splice_bytes,
)

# § [tools.records] Where file tools record what they change.


class Records(Protocol):
    """Where a change is written down, before and after it is made."""

    @property
    def durable(self) -> bool:
        """Whether what is reported as done must survive a loss of power."""
        ...

    def content(self, digest: str) -> bytes | None:
        """What was kept under a hash; None when nothing was, or it is large."""
        ...

    def keep(self, before: FileSnapshot, landing: ResolvedParent) -> None:
        """Keeps what a file holds before it is changed."""

    def keep_bytes(self, digest: str, data: bytes) -> None:
        """Keeps bytes that are to be written, or that settling a crash may need."""

    def keep_link(self, landing: ResolvedParent) -> None:
        """Keeps where a link leads."""

    def carry_out(self, temporary: str, steps: tuple[Step, ...]) -> list[Step]:
        """Takes steps whose contents are kept, all of them or none; those that changed something."""
        ...

    def record(
        self, call_id: str, planned: ChangeSetRecord, work: Callable[[], tuple[Step, ...]], diffs: tuple[str, ...] = ()
    ) -> RecordedChangeSet:
        """Does the work between the two records of it."""
        ...


# § [tools.marks] Marks: how a session remembers what it saw of a file, and how it finds out that the bytes are
# § other ones now.


class WholeFileMark(msgspec.Struct, frozen=True, tag="whole"):
    """All bytes were seen."""

    hash: str


class PageMark(msgspec.Struct, frozen=True, tag="part"):
    """One page of a large file was seen."""

    hash: str
    start: int
    length: int


Mark = WholeFileMark | PageMark
_decode = get_json_decoder(Mark).decode
encode_mark = msgspec.json.Encoder().encode


def is_stale(mark: bytes | None, now: FileSnapshot | None, part: str | None) -> bool:
    """Whether the session knew other bytes. Where none are left, none are lost."""
    if mark is None or now is None:
        return False
    seen = _decode(mark)
    return seen.hash != (now.hash if isinstance(seen, WholeFileMark) else part)


def find_whole_hash(mark: bytes | None) -> str | None:
    """The hash of all bytes, where all were seen."""
    seen = _decode(mark) if mark else None
    return seen.hash if isinstance(seen, WholeFileMark) else None


def hash_seen_page(folder: int, name: str, mark: bytes | None) -> str | None:
    """The hash of what is now at the place of the page that was seen, if it was a page."""
    seen = _decode(mark) if mark else None
    if not isinstance(seen, PageMark):
        return None
    descriptor = os.open(name, READ_FILE, dir_fd=folder)
    try:
        return hash_range(descriptor, seen.start, seen.length)
    finally:
        os.close(descriptor)


# § [tools.looking] The first step of every tool that changes a file: where the path leads, what is there, who has
# § seen it.


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


# § [tools.slots] Looks at a path that is about to be written or removed, one of many: nothing is held open
# § afterwards.


class TargetPath(msgspec.Struct, frozen=True):
    """A path, and what is there."""

    path: str
    """As the call named it."""
    real: str
    """As results name it."""
    exact: bytes
    """As the system spells it."""
    found: PathState
    missing: tuple[str, ...] = ()
    """Folders on the way that are not there yet."""
    unread: bool = False
    """Whether there is something that the session never saw."""

    @property
    def is_link(self) -> bool:
        """Whether a link is there."""
        return self.found.state is not None and self.found.state.kind == "link"


class ExistingTarget(TargetPath, frozen=True, kw_only=True):
    """A path where something is."""

    state: State


class TargetResolver(msgspec.Struct, frozen=True):
    """Looks on behalf of a call."""

    context: Context
    seen: ReadMarks
    records: Records
    doing: str

    def to_write(self, path: str) -> TargetPath:
        """A path that is to be written: links are followed, as write and edit do."""
        with open_target(self.context, path) as (landing, real):
            check_file_size(landing, path)
            found = read_file_state(landing, real, path, self.seen, self.records, keep=MAX_TEXT_BYTES, doing=self.doing)
            found.refuse_stale()
            exact = self.context.workspace.build_exact_path(landing)
            there = PathState(found.before.to_state(), found.before) if found.before else PathState(None)
            return TargetPath(path, real, exact, there, landing.missing, found.unread)

    def to_remove(self, path: str) -> ExistingTarget:
        """A path that is to be removed, which is the link itself where it is one; NOT_FOUND when nothing is there."""
        _refuse_no_name(path)
        landing, real = self.context.workspace.resolve_for_removal(path)
        with landing:
            try:
                return self._there(landing, real, path)
            except OSError as error:
                raise to_tool_error(error, path) from None

    def name_of(self, path: str) -> bytes | None:
        """How the system spells a name, which may be that of a link; None where it has no folder."""
        try:
            landing, _ = self.context.workspace.resolve_for_removal(path)
        except ToolError:
            return None
        with landing:
            return self.context.workspace.build_exact_path(landing)

    def _there(self, landing: ResolvedParent, real: str, path: str) -> ExistingTarget:
        if find_protection(real) == "credential":
            raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {self.doing} {clip_path(path)}.")
        _refuse_special(landing)
        found = read_state(landing, MAX_TEXT_BYTES)
        if found.state is None:
            raise self.context.workspace.not_found(path, "file")
        if found.state.kind == "folder":
            message = f"{clip_path(path)} is a directory, and those are not deleted. Delete its files one by one."
            raise ToolError("NOT_A_FILE", message)
        mark = self.seen.get_mark(real)
        if found.current is not None:
            part = hash_seen_page(landing.folder, landing.name, mark)
            FileState(found.current, path, self.doing, self.records, mark, part).refuse_stale()
        exact = self.context.workspace.build_exact_path(landing)
        return ExistingTarget(path, real, exact, found, unread=mark is None, state=found.state)


def _refuse_no_name(path: str) -> None:
    if path.rpartition("/")[2] in {"", ".", ".."} and path:
        message = f"{clip_path(path)} names a directory, and those are not deleted. Give the path of a file."
        raise ToolError("NOT_A_FILE", message)


def _refuse_special(landing: ResolvedParent) -> None:
    """A FIFO, a socket or a device is no file, and could not be brought back."""
    with contextlib.suppress(FileNotFoundError):
        mode = os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False).st_mode
        if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode) or stat.S_ISDIR(mode)):
            raise OSError(errno.ENXIO, os.strerror(errno.ENXIO), landing.name)


# § [tools.text_file] A file as text to be changed: what is replaced in it becomes bytes, and all other bytes stay.

PDF = b"%PDF-"


class FileRewrite(msgspec.Struct, frozen=True):
    """What the bytes of a file become."""

    data: bytes
    encoding: Encoding
    line_ending: LineEnding


class TextFile(msgspec.Struct, frozen=True):
    """A file that is text."""

    file: LosslessText
    text: str
    """With plain newlines; bytes that are no text are lone surrogates."""

    @property
    def readable(self) -> str:
        """The text as `read` shows it, of the same length."""
        return replace_surrogates(self.text) if self.file.damaged else self.text

    def rewritten(self, replacements: Sequence[Replacement], given: str, path: str) -> FileRewrite:
        """The bytes with parts of the text replaced, in order. A file without lines takes the endings of a `given`
        text; where endings are mixed, lines that stay keep theirs."""
        file = self.file
        if file.line_ending == "mixed":
            replacements = list(narrow_replacements(self.text, replacements))
        grown = sum(len(text) - (end - start) for start, end, text in replacements)
        if len(file.text) + grown > MAX_TEXT_BYTES:  # before it is in memory; a character is a byte at least
            raise _too_long(path)
        own = list(restore_newlines(file.text, self.text, file.line_ending, replacements, given))
        try:
            data = splice_bytes(file, own)
        except UnicodeEncodeError as error:
            raise _no_such_character(error, file.encoding, path) from None
        if len(data) > MAX_TEXT_BYTES:
            raise _too_long(path)
        return FileRewrite(data, file.encoding, predict_line_ending(file.text, file.line_ending, own))


def decode_text_file(data: bytes, path: str) -> TextFile:
    """The text of a file; BINARY_FILE when it is none."""
    file = None if data.startswith(PDF) else decode_lossless(data)
    if file is None:
        raise ToolError("BINARY_FILE", f"{path} is not text. Use a program that knows its format.")
    return TextFile(file, normalize_newlines(file.text))


def _no_such_character(error: UnicodeEncodeError, encoding: str, path: str) -> ToolError:
    character = error.object[error.start]
    message = f"The new text has {character!r} (U+{ord(character):04X}), which {encoding} does not have: "
    advice = f"that is the encoding of {path}. Use other characters, or write the whole file, which makes it UTF-8."
    return ToolError("INVALID_ARGUMENT", f"{message}{advice}")


def _too_long(path: str) -> ToolError:
    message = f"{path} would be larger than 32 MiB, the most that is made of a file. Replace less."
    return ToolError("LIMIT_EXCEEDED", message)
