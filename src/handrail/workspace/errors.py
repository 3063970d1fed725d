"""Maps operating-system errors to error codes."""

import errno
import itertools
import os

from handrail.protocol.errors import EXHAUSTED, ErrorCode, ToolError
from handrail.workspace.roots import clip_path

_CODES: dict[int, tuple[ErrorCode, str]] = {
    errno.ENOENT: ("NOT_FOUND", "{path} does not exist."),
    errno.ENOTDIR: ("NOT_A_DIRECTORY", "{path}, or a part of it, is a file and not a directory; use read for a file."),
    errno.EISDIR: ("NOT_A_FILE", "{path} is a directory; use ls to list it."),
    errno.ENXIO: ("NOT_A_FILE", "{path} is a FIFO or socket, not a regular file."),
    errno.ENODEV: ("NOT_A_FILE", "{path} is a device, not a regular file."),
    errno.EACCES: ("ACCESS_DENIED", "The operating system refuses access to {path}."),
    errno.EPERM: ("ACCESS_DENIED", "The operating system refuses this on {path}."),
    errno.EROFS: ("ACCESS_DENIED", "{path} is on a read-only file system."),
    **{
        number: (code, f"{why}; {{path}} is unchanged.")
        for number, (code, why) in EXHAUSTED.items()
        if code == "NO_SPACE"
    },
    errno.EFBIG: ("NO_SPACE", "{path} would be larger than the file system allows; it is unchanged."),
    errno.ENAMETOOLONG: ("INVALID_ARGUMENT", "The path is too long for the file system."),
    errno.ELOOP: ("IO_ERROR", "{path} has too many links, or links in a circle."),
    errno.EXDEV: ("OUTSIDE_WORKSPACE", "{path} is outside the workspace. Ask the user if you need it."),
}
_MAX_SEEN_NAMES = 2_000


def to_tool_error(error: OSError, path: str) -> ToolError:
    """The error that a model reads for an error of the operating system."""
    number = error.errno or 0
    known = _CODES.get(number)
    if known is None:
        name = errno.errorcode.get(number, "unknown error")
        return ToolError("IO_ERROR", f"{clip_path(path)} could not be used: {name} ({os.strerror(number)}).")
    code, message = known
    return ToolError(code, message.format(path=clip_path(path)))


def build_conflict_error(path: str) -> ToolError:
    message = f"{clip_path(path)} changed while it was being written. Nothing was written. Read it, then call again."
    return ToolError("CONFLICT", message)


def list_similar_names(name: str, folder: int) -> list[str]:
    """Up to three names in an open folder that resemble a missing one."""
    from difflib import get_close_matches  # noqa: PLC0415  slow to import, and rarely needed

    with os.scandir(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, _MAX_SEEN_NAMES) if entry.name.isprintable()]
    same = [other for other in names if other.casefold() == name.casefold()]
    close = get_close_matches(name[:255], names, n=3, cutoff=0.6)
    return list(dict.fromkeys(same + close))[:3]
