"""The first step of every tool that changes a file: where the path leads, what is there, who has seen it."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress

import msgspec

from handrail.edit.lines import line_ranges, worded
from handrail.edit.trimming import common_end, common_start
from handrail.policy.names import protection
from handrail.protocol.error import ToolError
from handrail.tools.contract import Context, Seen
from handrail.tools.edit import LONGEST
from handrail.tools.marks import is_stale, part_of, seen_whole
from handrail.tools.saving import Records
from handrail.workspace.current import Current, current
from handrail.workspace.errors import clipped, tool_error
from handrail.workspace.text import decoded
from handrail.workspace.walk import Landing


class Look(msgspec.Struct, frozen=True):
    """A file that is about to change, as it is now."""

    before: Current | None
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
            where = _changed_lines(self.records, seen_whole(self.mark), self.before)
            message = f"{clipped(self.path)} changed since you read it{where}. Read it again before {self.doing}."
            raise ToolError("STALE_FILE", message)


@contextmanager
def landed(context: Context, path: str) -> Generator[tuple[Landing, str], None, None]:
    """The folder of a file that is about to change, and the path as results name it; system refusals are told."""
    landing, real = context.workspace.land(path)
    with landing:
        try:
            yield landing, real
        except OSError as error:
            raise tool_error(error, path) from None


def look(landing: Landing, real: str, path: str, seen: Seen, records: Records, *, keep: int, doing: str) -> Look:
    """Looks at the file, its bytes kept up to a size. Whether it is stale is asked later: that waits for the hash."""
    _refuse_folder(landing, path, doing)
    if protection(real) == "credential":
        raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {doing} {clipped(path)}.")
    before = None if landing.missing else current(landing.folder, landing.name, keep)
    mark = seen.seen(real)
    part = part_of(landing.folder, landing.name, mark) if before else None
    return Look(before, path, doing, records, mark, part)


def refuse_large(landing: Landing, path: str) -> None:
    """Before it is read: a file can be larger than memory."""
    if not landing.name or landing.missing:
        return
    with suppress(FileNotFoundError):
        if os.stat(landing.name, dir_fd=landing.folder, follow_symlinks=False).st_size > LONGEST:
            raise too_large(path)


def too_large(path: str) -> ToolError:
    """The refusal of a file that would not fit into memory a few times."""
    message = f"{clipped(path)} is larger than 32 MiB, the most that is edited. Use a program such as sed."
    return ToolError("LIMIT_EXCEEDED", message)


def _changed_lines(records: Records, seen: str | None, now: Current | None) -> str:
    """Which lines are other ones now, where what was seen is still known: handrail itself replaced it."""
    then = records.content(seen) if seen is not None else None
    old = decoded(then) if then is not None else None
    new = decoded(now.data) if now is not None and now.data is not None else None
    if old is None or new is None or old.text == new.text:
        return ""
    start = common_start(old.text, new.text)
    end = len(new.text) - common_end(old.text[start:], new.text[start:])
    [(first, last)] = line_ranges(new.text, [(start, end)])
    return f" ({worded(first, last)})"


def _refuse_folder(landing: Landing, path: str, doing: str) -> None:
    if not landing.name or path.rpartition("/")[2] in {"", ".", ".."}:
        raise ToolError("NOT_A_FILE", f"{clipped(path)} names a directory; {doing} takes the name of a file.")
