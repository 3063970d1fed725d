"""The layout of the state folder, which holds everything that handrail remembers."""

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress

from handrail.protocol.errors import StoreError, UsageError

GRANTED, OPENED = "granted", "opened"
"""Grants and opened folders, in the folder of a session. In the folder of a workspace their names begin with a dot,
because the sessions are there too."""
PRINTED = "printed"
"""Output of running commands: a folder for each process that may have started one."""
_DAY = 86_400
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_WORKSPACE_PATH = ".place"
_KEY_BYTES = 32
_OWN_CALL_ID = re.compile(r"call-([0-9a-f]{1,15})-[0-9a-f]{16}")
_MIN_ID_CHARS = 3
_TIME_DIGITS = 16
"""The digits of an id that are the time it was made. The digits after them tell ids apart."""


class StateFolder:
    """The paths of the state folder. Folders are made when they are first needed, for the owner only."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

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

    def opened(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), f".{OPENED}")

    def home(self, workspace: str) -> str:
        """The folder of a workspace's sessions. It need not exist."""
        return os.path.join(self.path, self._workspace(workspace))

    def granted(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), f".{GRANTED}")

    def servers(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), ".servers")

    def memories(self, workspace: str) -> str:
        return os.path.join(self.home(workspace), ".memories")

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
        return os.path.join("workspaces", hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16])

    def _make_folder(self, relative: str) -> str:
        path = self.path
        for name in relative.split("/"):  # parents too must be private
            path = os.path.join(path, name)
            make_private(path)
        return path

    def make(self) -> None:
        make_private(self.path)


def find_state_folder(session_folder: str) -> StateFolder:
    return StateFolder(os.path.join(session_folder, "..", "..", ".."))


def check_session_id(session_id: str) -> str:
    """Returns a valid session id. UsageError if it is not."""
    if not _SESSION.fullmatch(session_id):
        rule = "letters, digits, dot, dash and underscore, at most 64, beginning with a letter or digit"
        raise UsageError(f"a session id is made of {rule}: {session_id[:80]!r}")
    return session_id


def make_private(path: str) -> None:
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        raise StoreError(
            f"the state folder {path} cannot be made: {error.strerror}. Set HANDRAIL_STATE_DIR."
        ) from error


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


def build_damaged_path(folder: str, name: str = "journal.db") -> str:
    """The path that doctor moves a damaged database to. A session then starts again under its name."""
    return os.path.join(folder, f"{name}.damaged")


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
    return os.fsdecode(path) if hashlib.sha256(path).hexdigest().startswith(os.path.basename(home)) else None


def load_secret_key(state: str, name: str) -> bytes:
    """A random key for signatures. The first call makes it, for its owner only."""
    path = os.path.join(state, f"{name}.key")
    try:
        key = _read_key(path)
        if key is None:
            make_private(state)
            _make_key(path)
            key = _read_key(path)
    except OSError as error:
        raise StoreError(f"the key {path} cannot be used: {error.strerror}") from error
    if key is None or len(key) != _KEY_BYTES:
        raise StoreError(
            f"the key {path} is not {_KEY_BYTES} bytes long. Remove it: what it signed counts no more then."
        )
    return key


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


# Locks of folders. The kernel releases them when the process ends.


def lock_folder(folder: str) -> int:
    """A descriptor that holds the folder's lock. -1 if another process holds it, or the folder is gone."""
    descriptor = -1
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.stat(folder), os.fstat(descriptor)):
            return descriptor
    if descriptor >= 0:
        os.close(descriptor)
    return -1


def is_locked(path: str) -> bool:
    """Whether a live process holds the lock of a file or folder. Several processes may ask at once."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


@contextlib.contextmanager
def make_locked_folder(around: str, prefix: str = "") -> Generator[str]:
    """Makes a new folder that is removed after the `with`. Yields its real path."""
    import tempfile  # noqa: PLC0415  slow to load, and few sessions make folders

    descriptor, folder = -1, ""
    while descriptor < 0:  # another process may remove it as stale before it is locked
        folder = tempfile.mkdtemp(prefix=prefix, dir=around)
        descriptor = lock_folder(folder)
    try:
        yield os.path.realpath(folder)
    finally:
        remove_folder(folder)
        os.close(descriptor)


@contextlib.contextmanager
def make_temporary_folder(prefix: str, around: str | None = None) -> Generator[str]:
    """Does the same after stale folders of this prefix are removed."""
    import tempfile  # noqa: PLC0415  as above

    around = around or tempfile.gettempdir()
    remove_stale_folders(around, lambda: None, prefix)
    with make_locked_folder(around, prefix) as folder:
        yield folder


def remove_stale_folders(around: str, before: Callable[[], object], prefix: str = "") -> None:
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

    def __init__(self, state: str) -> None:
        self._stack = ExitStack()
        around = os.path.join(state, PRINTED)
        make_private(around)
        try:
            self.path = self._stack.enter_context(make_locked_folder(around))
        except OSError as error:
            raise StoreError(f"no folder can be made in {around}: {error.strerror}") from error

    def close(self) -> None:
        """Removes the folder. Can be repeated."""
        self._stack.close()


# Ids. They sort by the time they were made and cannot be guessed.


def make_call_id(seq: int) -> str:
    """An id for a call that starts after an event of the journal. The number replaces an index."""
    return f"call-{seq:x}-{os.urandom(8).hex()}"


def parse_call_position(call_id: str) -> int | None:
    """The number of the event before a call. None if the id was made elsewhere."""
    found = _OWN_CALL_ID.fullmatch(call_id)
    return int(found[1], 16) if found else None


def make_id(kind: str) -> str:
    """An id such as `ask_18…`."""
    return f"{kind}_{time.time_ns():016x}{os.urandom(8).hex()}"


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """The shortest prefix of the own part of every id that no other id has."""
    own = {name: _own_part(name) for name in ids}
    return {name: _shorten(part, [own[other] for other in own if other != name]) for name, part in own.items()}


def shorten_id(name: str, others: Iterable[str]) -> str:
    return _shorten(_own_part(name), [_own_part(other) for other in others if other != name])


def list_matching_ids(spelled: str, ids: Iterable[str]) -> list[str]:
    """The ids that start with a spelling, with or without the parts before their own part."""
    names = list(ids)
    return [spelled] if spelled in names else [name for name in names if spelled and _matches(spelled, name)]


def _matches(spelled: str, name: str) -> bool:
    """The spelling must reach into the own part, since ids share the parts before it."""
    own = _own_part(name)
    forms = (own, name.replace("-", "_", 1).partition("_")[2], name)
    return any(form.startswith(spelled) and len(spelled) > len(form) - len(own) for form in forms)


def _own_part(name: str) -> str:
    """`8f2…` of `ask_18…8f2…`, and `1c9…` of `g-1c9…`, which has no time."""
    kind, line, rest = name.partition("_")
    if line and len(rest) > _TIME_DIGITS:
        return rest[_TIME_DIGITS:]
    return name.partition("-")[2] or rest or kind


def _shorten(part: str, others: list[str]) -> str:
    length = _MIN_ID_CHARS
    while length < len(part) and any(other.startswith(part[:length]) for other in others):
        length += 1
    return part[:length]
