"""The state folder: where everything is that handrail remembers, and nothing that an agent may touch."""

import hashlib
import os
import re
import time
from contextlib import suppress

from handrail.protocol.error import StoreError, UsageError

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


def build_damaged_path(folder: str, name: str = "journal.db") -> str:
    """Where doctor's command moves a damaged database of a folder. A session then begins anew under its name."""
    return os.path.join(folder, f"{name}.damaged")


def _names(path: str) -> list[str]:
    try:
        return sorted(os.listdir(path))
    except FileNotFoundError:
        return []
