"""Records which projects a person trusts, each by the exact bytes of what it brings."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from handrail.protocol.error import StoreError
from handrail.settings.trust import Trust, TrustFile, build_trust_path, read_trust
from handrail.store.folder import StateFolder, write_private


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
