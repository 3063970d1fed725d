"""The layout of the state folder, which holds everything that handrail remembers."""

import contextlib
import os
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, suppress
from typing import Self

from handrail.kernel.files import lock_folder
from handrail.protocol.digest import short_sha256
from handrail.protocol.errors import StoreError, list_frames
from handrail.protocol.records import check_session_id

GRANTED, OPENED = "granted", "opened"
"""Grants and opened folders, in the folder of a session. In the folder of a workspace their names begin with a dot,
because the sessions are there too."""
AT_WORK = ".at-work"
"""Ends the names of files beside a change log, one for each runner that makes changes."""
_PRINTED = "printed"
_DAY = 86_400
_WORKSPACE_PATH = ".place"
_KEY_BYTES = 32


class StateFolder:
    """The paths of the state folder. Folders are made when they are first needed, for the owner only."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    @classmethod
    def find(cls, session_folder: str) -> Self:
        return cls(os.path.join(session_folder, "..", "..", ".."))

    @property
    def audit(self) -> str:
        """The audit chain, one for the whole folder."""
        return os.path.join(self.path, "audit.jsonl")

    def blobs(self) -> str:
        return self._make_folder("blobs")

    def locks(self) -> str:
        return self._make_folder("locks")

    def crashes(self) -> str:
        return self._make_folder("crashes")

    def session(self, workspace: str, session_id: str) -> str:
        return self._make_folder(os.path.join(self._workspace(workspace), check_session_id(session_id)))

    def changes(self, workspace: str) -> str:
        """The folder of a workspace's change log. No session can have its name."""
        return self._make_folder(os.path.join(self._workspace(workspace), ".changes"))

    def opened_folders(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), f".{OPENED}")

    def home(self, workspace: str) -> str:
        """The folder of a workspace's sessions. It need not exist."""
        return os.path.join(self.path, self._workspace(workspace))

    def grants(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), f".{GRANTED}")

    def servers(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), ".servers")

    def memories(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), ".memories")

    def code_index(self, root: str) -> str:
        """The folder of the code index of a root. No session can have its name."""
        return self._make_folder(os.path.join(self._workspace(root), ".code"))

    def sessions(self, workspace: str | None = None) -> list[str]:
        homes = self.homes() if workspace is None else [self.home(workspace)]
        folders = [os.path.join(home, name) for home in homes for name in _list_names(home) if name[0] != "."]
        return [folder for folder in folders if os.path.lexists(os.path.join(folder, "journal.db"))]

    def homes(self) -> list[str]:
        every = os.path.join(self.path, "workspaces")
        return [os.path.join(every, home) for home in _list_names(every)]

    def change_logs(self) -> list[str]:
        folders = [os.path.join(home, ".changes") for home in self.homes()]
        return [folder for folder in folders if os.path.lexists(os.path.join(folder, "changes.db"))]

    @property
    def sweep_marker(self) -> str:
        return os.path.join(self.path, "swept")

    def is_swept(self) -> bool:
        """Whether the last sweep was less than a day ago. The first call starts to count."""
        with suppress(FileNotFoundError):
            return abs(time.time() - os.stat(self.sweep_marker).st_mtime) < _DAY
        with suppress(OSError):  # a full disk: the next call tries again
            os.close(open_private(self.sweep_marker, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
        return True

    def _workspace(self, workspace: str) -> str:
        return os.path.join("workspaces", short_sha256(os.fsencode(workspace)).hexdigest()[:16])

    def _make_folder(self, relative: str) -> str:
        path = self.path
        for name in relative.split("/"):  # parents too must be private
            path = os.path.join(path, name)
            make_private(path)
        return path

    def make(self) -> None:
        make_private(self.path)

    def load_key(self, name: str) -> bytes:
        """A random key for signatures. The first call makes it, for its owner only."""
        path = os.path.join(self.path, f"{name}.key")
        try:
            key = _read_key(path)
            if key is None:
                self.make()
                _make_key(path)
                key = _read_key(path)
        except OSError as error:
            raise StoreError(f"the key {path} cannot be used: {error.strerror}") from error
        if key is None or len(key) != _KEY_BYTES:
            advice = "Remove it. Its signatures are then invalid."
            raise StoreError(f"the key {path} is not {_KEY_BYTES} bytes long", advice=advice)
        return key


def make_private(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        problem = f"the state folder {path} cannot be made: {error.strerror}"
        raise StoreError(problem, advice="Set HANDRAIL_STATE_DIR.") from error


def open_private(path: str, flags: int) -> int:
    """An opener for files that only their owner may read."""
    return os.open(path, flags, 0o600)


def write_private(path: str, data: bytes, unfinished: str) -> None:
    """Writes a small file atomically, for its owner only. Its name ends in `unfinished` until it is complete."""
    temporary = f"{path}.{os.urandom(6).hex()}{unfinished}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def flush_folder(path: str) -> None:
    """Waits until the names in a folder are on the disk."""
    with open_folder(path) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def open_folder(path: str) -> Generator[int]:
    """Opens a folder for fsync or flock."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _list_names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


# The path of a workspace: the name of its folder is only a digest of it.


def save_workspace_path(home: str, workspace: str) -> None:
    """Records the path of a workspace once. If that fails, people have to name the workspace."""
    path = os.path.join(home, _WORKSPACE_PATH)
    if not os.path.exists(path):
        with suppress(OSError):
            write_private(path, os.fsencode(os.path.realpath(workspace)), ".new")


def read_workspace_path(home: str) -> str | None:
    try:
        with open(os.path.join(home, _WORKSPACE_PATH), "rb") as file:
            path = file.read(65536)
    except OSError:
        return None
    return os.fsdecode(path) if short_sha256(path).hexdigest().startswith(os.path.basename(home)) else None


def _read_key(path: str) -> bytes | None:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read(_KEY_BYTES + 1)
    return None


def _make_key(path: str) -> None:
    """Makes the key atomically, unless another process has just made it."""
    temporary = f"{path}.{os.urandom(6).hex()}"
    write_private(temporary, os.urandom(_KEY_BYTES), ".new")
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


@contextlib.contextmanager
def _make_locked_folder(around: str, prefix: str = "") -> Generator[str]:
    """Makes a new folder that is removed after the `with`. Yields its real path."""
    descriptor, folder = -1, ""
    while descriptor < 0:  # another process may remove it as stale before it is locked
        folder = _load_tempfile().mkdtemp(prefix=prefix, dir=around)
        descriptor = lock_folder(folder)
    try:
        yield os.path.realpath(folder)
    finally:
        remove_folder(folder)
        os.close(descriptor)


def _load_tempfile():  # the type is that of the module
    import tempfile  # noqa: PLC0415  slow to load, and few sessions make folders

    return tempfile


@contextlib.contextmanager
def make_temporary_folder(prefix: str, around: str | None = None) -> Generator[str]:
    """Makes a new folder that is removed after the `with`, after stale folders of this prefix."""
    around = around or _load_tempfile().gettempdir()
    _remove_stale_folders(around, lambda: None, prefix)
    with _make_locked_folder(around, prefix) as folder:
        yield folder


def _remove_stale_folders(around: str, before: Callable[[], object], prefix: str = "") -> None:
    """Removes the folders that killed processes left. If there are any, `before` is called first. If this process is
    killed meanwhile, the next call removes the rest."""
    called = False
    for name in os.listdir(around):
        descriptor = lock_folder(os.path.join(around, name)) if name.startswith(prefix) else -1
        if descriptor < 0:
            continue  # its process lives
        try:
            if not called:
                before()
                called = True
            remove_folder(os.path.join(around, name))
        finally:
            os.close(descriptor)


def remove_folder(path: str) -> None:
    """Removes a folder with all its contents, as far as possible."""
    import shutil  # noqa: PLC0415  slow to load, and few sessions remove folders

    shutil.rmtree(path, ignore_errors=True)


class SpillFolder:
    """A folder for the output of running commands, locked by one open session. Closing removes it."""

    @staticmethod
    def remove_stale(state: str, before: Callable[[], object]) -> None:
        """Removes the folders that killed processes left. If there are any, `before` is called first."""
        around = os.path.join(state, _PRINTED)
        if os.path.isdir(around):
            _remove_stale_folders(around, before)

    def __init__(self, state: str) -> None:
        self._stack = ExitStack()
        around = os.path.join(state, _PRINTED)
        make_private(around)
        try:
            self.path = self._stack.enter_context(_make_locked_folder(around))
        except OSError as error:
            raise StoreError(f"no folder can be made in {around}: {error.strerror}") from error

    def close(self) -> None:
        """Removes the folder. Can be repeated."""
        self._stack.close()


# Ids. They sort by the time they were made and cannot be guessed.


def make_id(kind: str) -> str:
    """An id such as `ask_18…`."""
    return f"{kind}_{time.time_ns():016x}{os.urandom(8).hex()}"


def write_report(error: BaseException, folder: str) -> str:
    report = os.path.join(folder, f"{make_id('crash')}.txt")
    # Without the text of the exception: it may quote a file or an argument.
    with open(report, "w", encoding="utf-8", opener=open_private) as out:
        out.write("\n".join([type(error).__name__, *list_frames(error), ""]))
    return report
