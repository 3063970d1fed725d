"""Standing approvals: grants, opened folders, environments, trust, known tools."""

import fcntl
import hashlib
import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

import msgspec

from handrail.protocol.errors import StoreError
from handrail.protocol.permissions import OpenedFolder, StandingGrant
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.settings.trust import Trust, TrustFile, build_trust_path, read_trust
from handrail.store.state_dir import StateFolder, make_private, write_private

# § [store.small_files] A folder in the state folder with one small file for each thing that is kept: other
# § processes add and remove too.

_UNFINISHED = ".new"
Kind = TypeVar("Kind")


class SmallFiles(Generic[Kind]):
    """The folder is made with the first file. StoreError where it cannot be used; `what` is how that names it."""

    def __init__(self, path: str, kind: type[Kind], what: str) -> None:
        self._path = path
        self._kind = kind
        self._what = what

    def place(self, name: str) -> str:
        """The path of a file."""
        return os.path.join(self._path, name)

    def names(self) -> frozenset[str]:
        """The files that there are."""
        try:
            return frozenset(name for name in os.listdir(self._path) if not name.endswith(_UNFINISHED))
        except FileNotFoundError:
            return frozenset()
        except OSError as error:
            raise self._unusable(error) from error

    def read(self, name: str) -> Kind | None:
        """What a file says; None where it cannot be read: then nothing counts as kept."""
        try:
            with open(os.path.join(self._path, name), "rb") as file:
                return decode_json(file.read(), self._kind)
        except (OSError, *UNREADABLE):
            return None

    def write(self, name: str, kept: Kind) -> None:
        """Writes one, in the place of what had its name."""
        try:
            make_private(self._path)
            write_private(os.path.join(self._path, name), encode(kept), _UNFINISHED)
        except OSError as error:
            raise self._unusable(error) from error

    def mark(self, name: str) -> None:
        """Makes an empty one, which only says that it is there."""
        try:
            os.close(os.open(os.path.join(self._path, name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise self._unusable(error) from error

    def drop(self, name: str) -> bool:
        """Removes one; whether it was there."""
        try:
            os.unlink(os.path.join(self._path, name))
        except FileNotFoundError:
            return False
        except OSError as error:
            raise self._unusable(error) from error
        return True

    def _unusable(self, error: OSError) -> StoreError:
        return StoreError(f"the {self._what} in {self._path} cannot be kept: {error.strerror}")


# § [store.grants] What people said not to be asked about again, kept until it is revoked: one small file for each
# § class of commands.

_REVOKED = ".revoked"
"""How the mark is called that stays of a grant. While it is there the grant is none, whoever writes it again: the yes
that it came from may be carried out anew after a crash."""


class GrantFiles:
    """A folder of them, in the state folder: of one session, or of one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, StandingGrant, "grants")

    def names(self) -> frozenset[str]:
        """What is granted, by ids: a grant never changes, so these change whenever it does."""
        found = self._files.names()
        return frozenset(name for name in found if "." not in name and name + _REVOKED not in found)

    def listed(self) -> list[StandingGrant]:
        """All of them, the oldest first. One that cannot be read was not granted."""
        found = [granted for name in self.names() if (granted := self._files.read(name)) and granted.id == name]
        return sorted(found, key=lambda one: (one.time, one.command))

    def add(self, granted: StandingGrant) -> None:
        """Keeps one, unless it is kept, or was revoked already."""
        if not {granted.id, granted.id + _REVOKED} & self._files.names():
            self._files.write(granted.id, granted)

    def revoke(self, grant_id: str) -> None:
        """Ends one for good."""
        self._files.mark(grant_id + _REVOKED)
        self._files.drop(grant_id)


# § [store.opened] The folders outside the workspace that people opened, kept until they are closed: one small file
# § for each.


class GrantedFolders:
    """A folder of them, in the state folder: of one session, or of one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, OpenedFolder, "opened folders")

    def names(self) -> tuple[str, ...]:
        """What there is, by names that change whenever it changes."""
        return tuple(sorted(self._files.names()))

    def listed(self) -> tuple[OpenedFolder, ...]:
        """All of them, by path. One that cannot be read was not opened."""
        found = [folder for name in self.names() if (folder := self._files.read(name)) and _name(folder) == name]
        return tuple(sorted(found, key=lambda folder: folder.path))

    def add(self, folder: OpenedFolder) -> None:
        """Keeps one; opened for writing, it is no longer only opened for reading."""
        self._files.write(_name(folder), folder)
        if folder.access == "write":
            self._files.drop(_name_of(folder.path, "read"))

    def remove(self, path: str) -> bool:
        """Forgets one; whether it was there."""
        dropped = [self._files.drop(_name_of(path, access)) for access in ("read", "write")]
        return True in dropped


def _name(folder: OpenedFolder) -> str:
    return _name_of(folder.path, folder.access)


def _name_of(path: str, access: str) -> str:
    return f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}-{access}"


# § [store.environments] The variables that commands were to get when somebody was asked about them: whoever answers
# § elsewhere takes these.

_FOLDER = "environments"


def hash_variables(variables: Mapping[str, str]) -> str:
    """What tells these variables from any others."""
    told = "\0".join(f"{name}={variables[name]}" for name in sorted(variables))
    return hashlib.sha256(told.encode("utf-8", "surrogateescape")).hexdigest()


def has_variables(session: str, digest: str) -> bool:
    """Whether those of a digest are kept already."""
    return os.path.exists(os.path.join(session, _FOLDER, digest))


def save_variables(session: str, variables: Mapping[str, str]) -> None:
    """Keeps them in a session's folder, by their digest. Where that cannot be, a yes counts only where they are the
    same anyway."""
    folder = os.path.join(session, _FOLDER)
    path = os.path.join(folder, hash_variables(variables))
    if not os.path.exists(path):
        with suppress(OSError, StoreError, UnicodeEncodeError):
            data = msgspec.json.encode(dict(variables))
            make_private(folder)
            write_private(path, data, _UNFINISHED)


def load_variables(session: str, digest: str) -> dict[str, str] | None:
    """Those of a digest; None where they were not kept, or are others by now."""
    try:
        with open(os.path.join(session, _FOLDER, os.path.basename(digest)), "rb") as file:
            variables = decode_json(file.read(), dict[str, str])
    except (OSError, ValueError):
        return None
    return variables if hash_variables(variables) == digest else None


# § [store.trust] Records which projects a person trusts, each by the exact bytes of what it brings.


def list_trusted_projects(state: StateFolder) -> dict[str, Trust]:
    """All trust that was given, by workspace."""
    return read_trust(state.path)


def give_trust(state: StateFolder, workspace: str, digest: str, servers: str = "") -> Trust:
    """Trusts the project of a workspace as long as its settings file has this SHA-256; what it says of servers, as long
    as .mcp.json has that one."""
    given = Trust(digest, datetime.now(UTC), servers)
    with _alone(state):
        _write(state, {**read_trust(state.path), workspace: given})
    return given


def revoke_trust(state: StateFolder, workspace: str) -> bool:
    """Whether there was any to take back."""
    with _alone(state):
        projects = read_trust(state.path)
        if projects.pop(workspace, None) is None:
            return False
        _write(state, projects)
    return True


@contextmanager
def _alone(state: StateFolder) -> Generator[None]:
    """Two who record at once must not lose each other's word."""
    state.make()
    descriptor = os.open(state.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(state: StateFolder, projects: dict[str, Trust]) -> None:
    path = build_trust_path(state.path)
    try:
        write_private(path, msgspec.json.format(msgspec.json.encode(TrustFile(projects=projects)), indent=1), ".new")
    except OSError as error:
        raise StoreError(f"the record of trust {path} cannot be written: {error.strerror}") from error


# § [store.known_tools] The tools of other servers as this workspace knows them: as a person last said yes to them,
# § or first met them.  One small file a server. Who adds a tool writes what it read with it; where two processes do
# § so at once, one of them may be lost, and a person is asked once more.


class KnownTool(msgspec.Struct, frozen=True):
    """One of them."""

    fingerprint: str
    described: dict[str, Any]
    """What its server said of it."""


class KnownServer(msgspec.Struct, frozen=True):
    """All of one server, by the server's own names."""

    server: str
    tools: dict[str, KnownTool]


class KnownTools:
    """Those of one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, KnownServer, "tools of other servers that were met")

    def place(self, server: str) -> str:
        """The file about a server."""
        return self._files.place(_server_name(server))

    def of(self, server: str) -> dict[str, KnownTool]:
        """What is known of a server; nothing where that cannot be read."""
        kept = self._files.read(_server_name(server))
        return kept.tools if kept is not None and kept.server == server else {}

    def keep(self, server: str, tools: dict[str, KnownTool]) -> bool:
        """Adds tools to what is known, in the place of those of their names; whether that could be written down."""
        try:
            self._files.write(_server_name(server), KnownServer(server=server, tools={**self.of(server), **tools}))
        except StoreError:
            return False
        return True


def _server_name(server: str) -> str:
    return hashlib.sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:16]
