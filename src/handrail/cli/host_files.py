"""The settings files of other programs, as `mcp --config` reads and writes them: whole or not at all."""

import os
import stat
from contextlib import suppress
from shlex import quote

import msgspec

from handrail.cli.exits import INFRASTRUCTURE, CommandFailed
from handrail.mcp.hosts.config_file import HostFile

_MAX_FILE_BYTES = 4 * 1024 * 1024
_ASIDE = "Nothing was written."


class HostFileState(msgspec.Struct, frozen=True, kw_only=True):
    """A file of a host, as it is now."""

    path: str
    """Where it is, past all links."""
    shown: str
    """What it is called: beneath the workspace, or by its whole path."""
    content: bytes | None = None
    """None where it is not there yet."""

    @property
    def text(self) -> str | None:
        """As text; Stop where it is none."""
        try:
            return None if self.content is None else self.content.decode()
        except UnicodeDecodeError:
            raise CommandFailed(f"{self.shown} is not UTF-8. {_ASIDE} Correct the file, then try again.") from None


def find_file(file: HostFile, workspace: str) -> HostFileState:
    """The file as it is now; Stop where something is in its place. No link is followed out of the workspace."""
    shown = next((path for path in file.paths if os.path.lexists(os.path.join(workspace, path))), file.paths[0])
    path = os.path.realpath(os.path.join(workspace, shown))
    if not file.is_user_file and os.path.commonpath((path, workspace)) != workspace:
        raise CommandFailed(
            f"{shown} is a link that leads out of the workspace, to {path}. {_ASIDE} Make it a file of its own."
        )
    try:
        return HostFileState(path=path, shown=shown, content=_content(path, shown))
    except (OSError, ValueError) as error:
        raise CommandFailed(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}. {_ASIDE} See to it, then try again."
        ) from None


def check_writable(found: HostFileState) -> None:
    """Stop where it is certain that it could not be written."""
    folder = os.path.dirname(found.path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise CommandFailed(f"{found.shown} cannot be written: {folder} is no folder. {_ASIDE}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandFailed(f"{found.shown} cannot be written: the folder {folder} is not yours to write. {_ASIDE}")
    if found.content is not None and not os.stat(found.path).st_mode & 0o222:
        raise CommandFailed(
            f"{found.shown} is write-protected. {_ASIDE} To let it be written: chmod u+w {quote(found.path)}"
        )
    if found.content is not None and os.geteuid() not in {0, os.stat(found.path).st_uid}:
        raise CommandFailed(
            f"{found.shown} belongs to another user. {_ASIDE} Ask them, or paste what is shown there yourself."
        )


def write_file(found: HostFileState, text: str) -> None:
    """Puts the new text in the file's place in one step, unless somebody changed it since it was read."""
    folder = os.path.dirname(found.path)
    temporary = os.path.join(folder, f".{os.urandom(6).hex()}.unfinished")
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            _write_like(found, temporary, text.encode())
            if _content(found.path, found.shown) != found.content:
                raise CommandFailed(
                    f"{found.shown} was changed meanwhile. It was not written; try again.", INFRASTRUCTURE
                )
            os.replace(temporary, found.path)
        finally:
            with suppress(OSError):
                os.unlink(temporary)
    except OSError as error:
        raise CommandFailed(
            f"{found.shown} cannot be written: {error.strerror}. It is as it was.", INFRASTRUCTURE
        ) from None


def _content(path: str, shown: str) -> bytes | None:
    try:
        # Without O_NONBLOCK a FIFO would hang here until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise CommandFailed(f"{shown} is not a regular file. {_ASIDE}")
        content = stream.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise CommandFailed(f"{shown} is larger than 4 MiB, which no settings file is. {_ASIDE}")
    return content


def _write_like(found: HostFileState, temporary: str, data: bytes) -> None:
    """Writes a file with the mode and, where we may, the owner of the one that is there."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(temporary, flags, 0o666), "wb") as file:
        if found.content is not None:
            status = os.stat(found.path)
            if os.geteuid() == 0:
                os.fchown(file.fileno(), status.st_uid, status.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
