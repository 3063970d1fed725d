"""Standing approvals of people, in small files of the state folder that last until they are revoked."""

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

import msgspec

from handrail.protocol.digest import short_sha256
from handrail.protocol.errors import StoreError
from handrail.protocol.permissions import OpenedFolder, StandingGrant
from handrail.protocol.wire import UNREADABLE, decode_json, encode
from handrail.store.state_dir import make_private, open_private, write_private

_UNFINISHED = ".new"
_REVOKED = ".revoked"
"""Ends the name of the mark that stays of a revoked grant. It wins over the grant, which may be written again: a crash
can repeat the answer that gave it."""
Kind = TypeVar("Kind")


class SmallFiles(Generic[Kind]):
    """A folder of small files, one for each item. Other processes add and remove files too.

    The folder is made with the first file. StoreError if it cannot be used; `title` names it in the message.
    """

    def __init__(self, path: str, kind: type[Kind], title: str) -> None:
        self._path = path
        self._kind = kind
        self._title = title

    def path_of(self, name: str) -> str:
        return os.path.join(self._path, name)

    def names(self) -> frozenset[str]:
        with self._report_errors(), suppress(FileNotFoundError):
            return frozenset(name for name in os.listdir(self._path) if not name.endswith(_UNFINISHED))
        return frozenset()

    def read(self, name: str) -> Kind | None:
        """The content of a file. None if it cannot be read."""
        try:
            with open(self.path_of(name), "rb") as file:
                return decode_json(file.read(), self._kind)
        except (OSError, *UNREADABLE):
            return None

    def read_all(self, name_of: Callable[[Kind], str]) -> list[Kind]:
        """The contents of all files that can be read and have the right name."""
        contents = ((name, self.read(name)) for name in self.names())
        return [content for name, content in contents if content is not None and name_of(content) == name]

    def write(self, name: str, content: Kind) -> None:
        with self._report_errors():
            make_private(self._path)
            write_private(self.path_of(name), encode(content), _UNFINISHED)

    def mark(self, name: str) -> None:
        with self._report_errors():
            os.close(open_private(self.path_of(name), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC))

    def drop(self, name: str) -> bool:
        """Removes a file. Returns whether it was there."""
        with self._report_errors(), suppress(FileNotFoundError):
            os.unlink(self.path_of(name))
            return True
        return False

    @contextmanager
    def _report_errors(self) -> Generator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"the {self._title} in {self._path} cannot be stored: {error.strerror}") from error


class GrantFiles:
    """The grants of one session or of one workspace, one file for each class of commands."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, StandingGrant, "grants")

    def names(self) -> frozenset[str]:
        """The ids of all grants. They change whenever the grants do, because a grant never changes."""
        names = self._files.names()
        return frozenset(name for name in names if "." not in name and name + _REVOKED not in names)

    def list_grants(self) -> list[StandingGrant]:
        valid = self.names()
        grants = [grant for grant in self._files.read_all(lambda grant: grant.id) if grant.id in valid]
        return sorted(grants, key=lambda grant: (grant.time, grant.command))

    def add(self, granted: StandingGrant) -> None:
        """Adds a grant, unless it is there or was revoked."""
        if not {granted.id, granted.id + _REVOKED} & self._files.names():
            self._files.write(granted.id, granted)

    def revoke(self, grant_id: str) -> None:
        self._files.mark(grant_id + _REVOKED)
        self._files.drop(grant_id)


class GrantedFolders:
    """The folders outside the workspace that people opened, to one session or to one workspace."""

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, OpenedFolder, "opened folders")

    def names(self) -> tuple[str, ...]:
        """Names that change whenever the opened folders do."""
        return tuple(sorted(self._files.names()))

    def list_folders(self) -> tuple[OpenedFolder, ...]:
        folders = self._files.read_all(lambda folder: _name_folder(folder.path, folder.access))
        return tuple(sorted(folders, key=lambda folder: folder.path))

    def add(self, folder: OpenedFolder) -> None:
        """Adds a folder. Write access replaces read access."""
        self._files.write(_name_folder(folder.path, folder.access), folder)
        if folder.access == "write":
            self._files.drop(_name_folder(folder.path, "read"))

    def remove(self, path: str) -> bool:
        dropped = [self._files.drop(_name_folder(path, access)) for access in ("read", "write")]
        return True in dropped


def _name_folder(path: str, access: str) -> str:
    return f"{short_sha256(os.fsencode(path)).hexdigest()[:32]}-{access}"


# Environment variables of commands that wait for approval. An approval from another shell uses them.


def hash_variables(variables: Mapping[str, str]) -> str:
    text = "\0".join(f"{name}={variables[name]}" for name in sorted(variables))
    return short_sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def has_variables(session: str, digest: str) -> bool:
    return os.path.exists(_open_variable_files(session).path_of(digest))


def save_variables(session: str, variables: Mapping[str, str]) -> None:
    """Saves variables in a session folder. If that fails, an answer counts only if the variables are the same there."""
    digest = hash_variables(variables)
    if not has_variables(session, digest):
        with suppress(StoreError, UnicodeEncodeError):
            _open_variable_files(session).write(digest, dict(variables))


def load_variables(session: str, digest: str) -> dict[str, str] | None:
    """The variables of a digest. None if they were not saved, or were changed."""
    variables = _open_variable_files(session).read(os.path.basename(digest))
    return variables if variables is not None and hash_variables(variables) == digest else None


def _open_variable_files(session: str) -> SmallFiles[dict[str, str]]:
    return SmallFiles(os.path.join(session, "environments"), dict[str, str], "environment variables")


# Tools of other servers, as a person last approved or first met them


class KnownTool(msgspec.Struct, frozen=True):
    fingerprint: str
    described: dict[str, Any]
    """The description that its server gave."""


class _KnownServer(msgspec.Struct, frozen=True):
    """The tools of one server, by the server's own names."""

    server: str
    tools: dict[str, KnownTool]


class KnownTools:
    """The known tools of one workspace, one file for each server.

    If two processes add tools at once, one addition may be lost. Then a person is asked once more.
    """

    def __init__(self, path: str) -> None:
        self._files = SmallFiles(path, _KnownServer, "known tools of other servers")

    def path_of(self, server: str) -> str:
        return self._files.path_of(_name_server(server))

    def list_tools(self, server: str) -> dict[str, KnownTool]:
        """The known tools of a server. Empty if they cannot be read."""
        record = self._files.read(_name_server(server))
        return record.tools if record is not None and record.server == server else {}

    def keep(self, server: str, tools: dict[str, KnownTool]) -> bool:
        """Adds or replaces tools. Returns whether they could be written."""
        record = _KnownServer(server=server, tools={**self.list_tools(server), **tools})
        try:
            self._files.write(_name_server(server), record)
        except StoreError:
            return False
        return True


def _name_server(server: str) -> str:
    return short_sha256(server.encode("utf-8", "surrogatepass")).hexdigest()[:16]
