"""The first step of every tool that changes a file: where the path leads, what is there, who has seen it."""

from collections.abc import Generator
from contextlib import contextmanager

import msgspec

from handrail.policy.names import protection
from handrail.protocol.error import ToolError
from handrail.tools.contract import Context, Seen
from handrail.tools.marks import part_of, staleness
from handrail.workspace.current import Current, current
from handrail.workspace.errors import clipped, tool_error
from handrail.workspace.walk import Landing


class Look(msgspec.Struct, frozen=True):
    """A file that is about to change, as it is now."""

    before: Current | None
    """None where there is none yet."""
    seen: bool
    """Whether the session has read or written it."""

    @property
    def unread(self) -> bool:
        """Whether there is something that the session never saw."""
        return self.before is not None and not self.seen


@contextmanager
def landed(context: Context, path: str) -> Generator[tuple[Landing, str], None, None]:
    """The folder of a file that is about to change, and the path as results name it; system refusals are told."""
    landing, real = context.workspace.land(path)
    with landing:
        try:
            yield landing, real
        except OSError as error:
            raise tool_error(error, path) from None


def look(landing: Landing, real: str, path: str, seen: Seen, *, keep: int, doing: str) -> Look:
    """Looks at the file, its bytes kept up to a size; STALE_FILE when the session knew other bytes."""
    _refuse_folder(landing, path, doing)
    if protection(real) == "credential":
        raise ToolError("POLICY_DENIED", f"Rule fs.secret forbids {doing} {clipped(path)}.")
    before = None if landing.missing else current(landing.folder, landing.name, keep)
    mark = seen.seen(real)
    part = part_of(landing.folder, landing.name, mark) if before else None
    staleness(path, mark, before, part, doing)
    return Look(before, mark is not None)


def _refuse_folder(landing: Landing, path: str, doing: str) -> None:
    if not landing.name or path.rpartition("/")[2] in {"", ".", ".."}:
        raise ToolError("NOT_A_FILE", f"{clipped(path)} names a directory; {doing} takes the name of a file.")
