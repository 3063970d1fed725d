"""The layout of the state folder."""

import contextlib
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress

from handrail.protocol.errors import StoreError, UsageError

# § [store.folder] The state folder: where everything is that handrail remembers, and nothing that an agent may
# § touch.

GRANTED, OPENED = "granted", "opened"
"""What people granted, and the folders that they opened: in the folder of a session. In that of a workspace, where the
sessions are too, they begin with a dot, as no session does."""
PRINTED = "printed"
"""What commands print while they run: a folder for each process that may have started one."""
_DAY = 86_400
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class StateFolder:
    """The layout of the state folder. Folders are made when first needed, for the owner only."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)

    @property
    def audit(self) -> str:
        """The audit chain, one for the whole folder."""
        return os.path.join(self.path, "audit.jsonl")

    def blobs(self) -> str:
        """Large texts, by their hash."""
        return self._made("blobs")

    def locks(self) -> str:
        """One file for each resource that somebody holds."""
        return self._made("locks")

    def crashes(self) -> str:
        """Reports of our own defects."""
        return self._made("crashes")

    def session(self, workspace: str, session_id: str) -> str:
        """The folder of one session of one workspace."""
        return self._made(os.path.join(self._workspace(workspace), check_session_id(session_id)))

    def changes(self, workspace: str) -> str:
        """The folder of a workspace's change log; no session can have its name."""
        return self._made(os.path.join(self._workspace(workspace), ".changes"))

    def opened(self, workspace: str) -> str:
        """Where the folders are noted that people opened to a workspace; it is made with the first."""
        return os.path.join(self.home(workspace), f".{OPENED}")

    def home(self, workspace: str) -> str:
        """Where the sessions of a workspace are, if it has any."""
        return os.path.join(self.path, self._workspace(workspace))

    def granted(self, workspace: str) -> str:
        """Where it is noted what people granted to a workspace; it is made with the first."""
        return os.path.join(self.home(workspace), f".{GRANTED}")

    def servers(self, workspace: str) -> str:
        """Where it is noted how the tools of other servers were met; it is made with the first."""
        return os.path.join(self.home(workspace), ".servers")

    def memories(self, workspace: str) -> str:
        """Where the notes about a workspace are; it is made with the first."""
        return os.path.join(self.home(workspace), ".memories")

    def sessions(self, workspace: str | None = None) -> list[str]:
        """The folders of all sessions that have a journal, of one workspace or of all."""
        homes = self.homes() if workspace is None else [self.home(workspace)]
        folders = [os.path.join(home, name) for home in homes for name in _names(home) if name[0] != "."]
        return [folder for folder in folders if os.path.lexists(os.path.join(folder, "journal.db"))]

    def homes(self) -> list[str]:
        """The parts of all workspaces."""
        every = os.path.join(self.path, "workspaces")
        return [os.path.join(every, home) for home in _names(every)]

    def change_logs(self) -> list[str]:
        """The folders of all change logs that there are."""
        folders = [os.path.join(home, ".changes") for home in self.homes()]
        return [folder for folder in folders if os.path.lexists(os.path.join(folder, "changes.db"))]

    @property
    def sweep_marker(self) -> str:
        """A file whose time is that of the last sweep."""
        return os.path.join(self.path, "swept")

    def is_swept(self) -> bool:
        """Whether that was less than a day ago; the first sweep, which only begins to count, is this one."""
        with suppress(FileNotFoundError):
            return abs(time.time() - os.stat(self.sweep_marker).st_mtime) < _DAY
        with suppress(OSError):  # a full disk: then the next one begins to count
            os.close(open_private(self.sweep_marker, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))
        return True

    def _workspace(self, workspace: str) -> str:
        return os.path.join("workspaces", hashlib.sha256(os.fsencode(workspace)).hexdigest()[:16])

    def _made(self, relative: str) -> str:
        path = self.path
        for name in relative.split("/"):  # each of them, or those on the way would be open to others
            path = os.path.join(path, name)
            make_private(path)
        return path

    def make(self) -> None:
        """Makes the state folder itself."""
        make_private(self.path)


def resolve_state_folder(session_folder: str) -> StateFolder:
    """The state folder that a session's folder is in."""
    return StateFolder(os.path.join(session_folder, "..", "..", ".."))


def check_session_id(session_id: str) -> str:
    """The name of a session's folder; UsageError where an id can be none."""
    if not _SESSION.fullmatch(session_id):
        rule = "letters, digits, dot, dash and underscore, at most 64, beginning with a letter or digit"
        raise UsageError(f"a session id is made of {rule}: {session_id[:80]!r}")
    return session_id


def make_private(path: str) -> None:
    """Makes a folder that only its owner may enter, or makes it so."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        if os.stat(path).st_mode & 0o077:
            os.chmod(path, 0o700)
    except OSError as error:
        raise StoreError(
            f"the state folder {path} cannot be made: {error.strerror}. Set HANDRAIL_STATE_DIR."
        ) from error


def open_private(path: str, flags: int) -> int:
    """An opener: what it makes is for its owner only."""
    return os.open(path, flags, 0o600)


def write_private(path: str, data: bytes, unfinished: str) -> None:
    """Writes a small file whole or not at all, for its owner only; `unfinished` is how its name ends until then."""
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
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def build_damaged_path(folder: str, name: str = "journal.db") -> str:
    """Where doctor's command moves a damaged database of a folder. A session then begins anew under its name."""
    return os.path.join(folder, f"{name}.damaged")


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []


# § [store.places] Which folder a workspace's part of the state folder belongs to: its name is only a digest of it.

_NAME = ".place"


def save_workspace_path(home: str, workspace: str) -> None:
    """Notes it, once. Where it cannot be noted, people have to name the workspace themselves."""
    path = os.path.join(home, _NAME)
    if not os.path.exists(path):
        with suppress(OSError):
            write_private(path, os.fsencode(os.path.realpath(workspace)), ".new")


def read_workspace_path(home: str) -> str | None:
    """The folder; None where nobody noted it, or what is noted is another one."""
    try:
        with open(os.path.join(home, _NAME), "rb") as file:
            noted = file.read(65536)
    except OSError:
        return None
    return os.fsdecode(noted) if hashlib.sha256(noted).hexdigest().startswith(os.path.basename(home)) else None


# § [store.secret_key] A random key of the state folder's own: what is signed with it was signed by somebody who can
# § read the folder.

_KEY_BYTES = 32


def load_secret_key(state: str, name: str) -> bytes:
    """The key of this name; it is made when it is first asked for, by whoever is first, and for its owner only."""
    path = os.path.join(state, f"{name}.key")
    try:
        found = _read(path)
        if found is None:
            make_private(state)
            _make(path)
            found = _read(path)
    except OSError as error:
        raise StoreError(f"the key {path} cannot be used: {error.strerror}") from error
    if found is None or len(found) != _KEY_BYTES:
        raise StoreError(
            f"the key {path} is not {_KEY_BYTES} bytes long. Remove it: what it signed counts no more then."
        )
    return found


def _read(path: str) -> bytes | None:
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return file.read(_KEY_BYTES + 1)
    return None


def _make(path: str) -> None:
    """Whole or not at all, and never in the place of one that somebody else has just made."""
    temporary = f"{path}.{os.urandom(6).hex()}.new"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        os.unlink(temporary)


# § [store.locked_folder] Folders that belong to a process as long as it lives: the kernel releases the lock when
# § the process ends.


def lock_folder(folder: str) -> int:
    """A descriptor that holds the folder's lock; -1 where another one does, or the folder is gone."""
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
    """Whether a live process holds the lock of a file or folder. Several processes may ask at the same moment."""
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
    """A new folder, its real path, for the time of the `with`."""
    import shutil  # noqa: PLC0415  every session asks for locks, and few make folders
    import tempfile  # noqa: PLC0415

    descriptor, folder = -1, ""
    while descriptor < 0:  # somebody may take it for left before it is locked
        folder = tempfile.mkdtemp(prefix=prefix, dir=around)
        descriptor = lock_folder(folder)
    try:
        yield os.path.realpath(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextlib.contextmanager
def make_temporary_folder(prefix: str, around: str | None = None) -> Generator[str]:
    """The same for a purpose of ours, after what killed processes left of it is removed."""
    import tempfile  # noqa: PLC0415

    around = around or tempfile.gettempdir()
    remove_stale_folders(around, lambda: None, prefix)
    with make_locked_folder(around, prefix) as folder:
        yield folder


def remove_stale_folders(around: str, before: Callable[[], object], prefix: str = "") -> None:
    """Removes the folders that killed processes left. If there are any, `before` is called first. If this process is
    killed meanwhile, the next call removes the rest."""
    import shutil  # noqa: PLC0415

    called = False
    for name in os.listdir(around):
        descriptor = lock_folder(os.path.join(around, name)) if name.startswith(prefix) else -1
        if descriptor < 0:
            continue  # its process lives
        try:
            if not called:
                before()
                called = True
            shutil.rmtree(os.path.join(around, name), ignore_errors=True)
        finally:
            os.close(descriptor)


# § [store.printed] Where what commands print is put while they run: a folder for each session at work, locked as
# § long as it is.


class SpillFolder:
    """A new folder of one session; what is in it when it is closed is removed with it."""

    def __init__(self, state: str) -> None:
        self._stack = ExitStack()
        around = os.path.join(state, PRINTED)
        make_private(around)
        try:
            self.path = self._stack.enter_context(make_locked_folder(around))
        except OSError as error:
            raise StoreError(f"no folder can be made in {around}: {error.strerror}") from error

    def close(self) -> None:
        """Removes the folder; can be repeated."""
        self._stack.close()


# § [store.identity] New ids: they sort by the time they were made and cannot be guessed.

_OWN = re.compile(r"call-([0-9a-f]{1,15})-[0-9a-f]{16}")


def make_call_id(seq: int) -> str:
    """An id for a call that comes in when the journal is at a number: it lies behind it, and needs no index."""
    return f"call-{seq:x}-{os.urandom(8).hex()}"


def parse_call_position(call_id: str) -> int | None:
    """The number that a call of our own making lies behind; None when the id was made elsewhere."""
    found = _OWN.fullmatch(call_id)
    return int(found[1], 16) if found else None


def make_id(kind: str) -> str:
    """An id such as `ask_18…`."""
    return f"{kind}_{time.time_ns():016x}{os.urandom(8).hex()}"


# § [store.short_ids] Ids as people read and type them: as short as tells them apart.

_MIN_ID_CHARS = 3
_TIME_DIGITS = 16
"""How many digits of an id of ours are the time it was made; it is what comes behind them that tells ids apart."""


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """For every id the shortest beginning of its own part that no other has."""
    own = {one: _own_part(one) for one in ids}
    return {one: _shortest(part, [other for name, other in own.items() if name != one]) for one, part in own.items()}


def shorten_id(one: str, others: Iterable[str]) -> str:
    """The same for one id among others: of many, all of them would take long."""
    return _shortest(_own_part(one), [_own_part(other) for other in others if other != one])


def list_matching_ids(spelled: str, ids: Iterable[str]) -> list[str]:
    """The ids that somebody may mean: by a beginning of their own part, with or without what comes before it."""
    names = list(ids)
    return [spelled] if spelled in names else [one for one in names if spelled and _may_mean(spelled, one)]


def _may_mean(spelled: str, one: str) -> bool:
    own = _own_part(one)
    without_kind = one.replace("-", "_", 1).partition("_")[2]
    # What ids have in common says nothing: only who spells something of its own part means one.
    return any(whole.startswith(spelled) and len(spelled) > len(whole) - len(own) for whole in (own, without_kind, one))


def _own_part(one: str) -> str:
    """`8f2…` of `ask_18…8f2…`; without digits for the time, what comes behind the kind: `1c9…` of `g-1c9…`."""
    kind, line, rest = one.partition("_")
    if line and len(rest) > _TIME_DIGITS:
        return rest[_TIME_DIGITS:]
    return one.partition("-")[2] or rest or kind


def _shortest(part: str, others: list[str]) -> str:
    length = _MIN_ID_CHARS
    while length < len(part) and any(other.startswith(part[:length]) for other in others):
        length += 1
    return part[:length]
