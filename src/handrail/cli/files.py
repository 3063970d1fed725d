"""The files that the command line reads or writes for a person."""

import os
import stat
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from shlex import quote
from typing import NamedTuple, TextIO

from handrail.cli.exits import INFRASTRUCTURE, CommandFailed

_MAX_FILE_BYTES = 4 * 1024 * 1024
_ASIDE = "Nothing was written."
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class OutFolder:
    """The folder of --out: made if it is missing, readable only by its owner. Files are overwritten.

    Its content may come from a project, so no link in it is followed, nor one that leads out of the current folder.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._begun: set[str] = set()

    def write(self, name: str, data: bytes) -> None:
        self._begun.discard(name)
        self.add(name, (data,))

    def add(self, name: str, chunks: Iterable[bytes]) -> None:
        """Appends to a file that this object wrote before. Overwrites any other file."""
        path = os.path.join(self.path, name)
        try:
            if _leads_out(self.path, "."):
                raise OSError(0, "a link leads out of this folder")
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            with open(self._opened(name), "wb") as file:
                file.writelines(chunks)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise CommandFailed(f"{path} cannot be written: {reason}. Name another folder with --out.") from None
        self._begun.add(name)

    def _opened(self, name: str) -> int:
        """Opens a file without following links. Events hold whole arguments, so a copy is as private as the journal."""
        more = os.O_APPEND if name in self._begun else os.O_TRUNC
        folder = os.open(self.path, _FOLDER)
        try:
            *inner, last = name.split("/")
            for part in inner:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=folder)
                folder, outer = os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder), folder
                os.close(outer)
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            return os.open(last, flags | more, 0o600, dir_fd=folder)
        finally:
            os.close(folder)


def read_input_file(path: str) -> bytes:
    """Reads a file that a person named on the command line."""
    try:
        # O_NONBLOCK: does not wait for the writer of a pipe.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("it is not a regular file")
            return file.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise CommandFailed(f"{path} cannot be read: {reason}. Nothing was run.") from None


class OutFile:
    """The file of `-o`. Its folder is opened before the model runs, so that no link of the model redirects it."""

    def __init__(self, path: str, workspace: str) -> None:
        """CommandFailed if it cannot be written, or if a link leads it out of the workspace."""
        self._path = path
        folder, self._name = os.path.split(path)
        if not self._name or os.path.isdir(path) or not os.path.isdir(folder or "."):
            raise _refused(path, "names no file, or its folder does not exist")
        if _leads_out(folder or ".", workspace):
            raise _refused(path, "is outside the workspace, because a link leads there")
        self._device = self._opened_device()
        if self._device is None and not os.access(folder or ".", os.W_OK):
            raise _refused(path, "cannot be written: you may not write to its folder")
        self._folder = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def write(self, data: bytes) -> None:
        """Writes the file whole or not at all. A device such as /dev/stdout gets the data directly."""
        try:
            if self._device is not None:
                _write_all(self._device, data)
            else:
                self._replace(data)
        except OSError as error:
            raise CommandFailed(f"-o {self._path!r} cannot be written: {error.strerror}", INFRASTRUCTURE) from None

    def _opened_device(self) -> int | None:
        """Opens a device or a pipe. None for a regular file, and if there is nothing."""
        try:
            status = os.stat(self._path)
            if stat.S_ISREG(status.st_mode):
                if os.path.islink(self._path):
                    raise _refused(self._path, "is a link; name the file itself")
                return None
            # O_NONBLOCK: does not wait for the reader of a pipe.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            os.set_blocking(descriptor, True)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _refused(self._path, f"cannot be written: {error.strerror}") from None
        return descriptor

    def _replace(self, data: bytes) -> None:
        temporary = f".{os.urandom(6).hex()}.unfinished"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with open(os.open(temporary, flags, 0o666, dir_fd=self._folder), "wb") as file:
                file.write(data)
            os.replace(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except OSError:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=self._folder)
            raise


@contextmanager
def open_null() -> Generator[int]:
    """Opens /dev/null for reading and writing."""
    descriptor = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def silence(stream: TextIO) -> None:
    """Redirects a stream without readers to /dev/null, so that Python can flush its buffer."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def _leads_out(folder: str, workspace: str) -> bool:
    """Whether a link leads a folder of the workspace out of it."""
    root = os.path.abspath(workspace)
    return _is_in(os.path.abspath(folder), root) and not _is_in(os.path.realpath(folder), os.path.realpath(root))


def _is_in(path: str, root: str) -> bool:
    return os.path.commonpath((path, root)) == root


def _write_all(descriptor: int, data: bytes) -> None:
    with open(os.dup(descriptor), "wb", buffering=0) as file:
        while data:
            data = data[file.write(data) or 0 :]


def _refused(path: str, why: str) -> CommandFailed:
    return CommandFailed(f"-o {path!r} {why}. Nothing was run.")


class HostFileError(CommandFailed):
    """A settings file of another program that cannot be read."""

    def __init__(self, problem: str, advice: str = "") -> None:
        super().__init__(" ".join(filter(None, (problem, _ASIDE, advice))))
        self.problem = f"{problem} {advice}".rstrip()
        """The message without the effect on a write."""


# Settings files of MCP clients


class HostFileState(NamedTuple):
    """A settings file of a client."""

    path: str
    """The real path."""
    shown: str
    """The path for people: relative in the workspace, or absolute."""
    content: bytes | None = None
    """None if there is no file yet."""

    @property
    def text(self) -> str | None:
        try:
            return None if self.content is None else self.content.decode()
        except UnicodeDecodeError:
            raise HostFileError(f"{self.shown} is not UTF-8.", "Correct the file, then try again.") from None


def find_file(paths: Sequence[str], workspace: str, *, is_user_file: bool) -> HostFileState:
    """Reads the first of the paths that exists. CommandFailed if a link leads it out of the workspace."""
    shown = next((path for path in paths if os.path.lexists(os.path.join(workspace, path))), paths[0])
    path = os.path.realpath(os.path.join(workspace, shown))
    if not is_user_file and os.path.commonpath((path, workspace)) != workspace:
        raise HostFileError(
            f"{shown} is a link that leads out of the workspace, to {path}.", "Make it a file of its own."
        )
    try:
        return HostFileState(path=path, shown=shown, content=_read_content(path, shown))
    except (OSError, ValueError) as error:
        raise HostFileError(
            f"{shown} cannot be read: {getattr(error, 'strerror', None) or error}.", "Check it, then try again."
        ) from None


def check_writable(found: HostFileState) -> None:
    """CommandFailed if the file can certainly not be written."""
    folder = os.path.dirname(found.path)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        raise CommandFailed(f"{found.shown} cannot be written: {folder} is not a folder. {_ASIDE}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise CommandFailed(f"{found.shown} cannot be written: you may not write to {folder}. {_ASIDE}")
    if found.content is not None and not os.stat(found.path).st_mode & 0o222:
        raise CommandFailed(f"{found.shown} is write-protected. {_ASIDE}", then=f"chmod u+w {quote(found.path)}")
    if found.content is not None and os.geteuid() not in {0, os.stat(found.path).st_uid}:
        raise CommandFailed(f"{found.shown} belongs to another user. {_ASIDE} Ask them, or paste the text yourself.")


def write_file(found: HostFileState, text: str) -> None:
    """Replaces the file in one step. CommandFailed if another program changed it since it was read."""
    folder = os.path.dirname(found.path)
    temporary = os.path.join(folder, f".{os.urandom(6).hex()}.unfinished")
    try:
        os.makedirs(folder, exist_ok=True)
        try:
            _write_like(found, temporary, text.encode())
            if _read_content(found.path, found.shown) != found.content:
                raise CommandFailed(
                    f"{found.shown} changed while it was read. It was not written. Try again.", INFRASTRUCTURE
                )
            os.replace(temporary, found.path)
        finally:
            with suppress(OSError):
                os.unlink(temporary)
    except OSError as error:
        raise CommandFailed(
            f"{found.shown} cannot be written: {error.strerror}. It is unchanged.", INFRASTRUCTURE
        ) from None


def _read_content(path: str, shown: str) -> bytes | None:
    try:
        # Without O_NONBLOCK, opening a FIFO waits for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as stream:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise HostFileError(f"{shown} is not a regular file.")
        content = stream.read(_MAX_FILE_BYTES + 1)
    if len(content) > _MAX_FILE_BYTES:
        raise HostFileError(f"{shown} is larger than 4 MiB, which is too large for a settings file.")
    return content


def _write_like(found: HostFileState, temporary: str, data: bytes) -> None:
    """Writes a file with the mode of the present one, and as root also with its owner."""
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
