"""Permissions, the request put to a person, and the answers a person can give."""

from collections.abc import Iterable
from typing import Literal

from handrail.protocol.wire import Wire

Permission = Literal["fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write"]
PermissionType = Literal["read", "write", "command", "all"]
AnswerKind = Literal["once", "session", "workspace", "output", "deny"]
ANSWERS: tuple[AnswerKind, ...] = ("once", "session", "workspace", "output", "deny")

_COARSE: dict[Permission, PermissionType] = {
    "proc.exec": "command",
    "fs.write": "write",
    "fs.delete": "write",
    "git.write": "write",
    "fs.read": "read",
    "net.connect": "all",
}


def permission_type(permissions: Iterable[Permission]) -> PermissionType:
    """The coarse kind that events carry; several kinds, or none known, are `all`."""
    kinds: set[PermissionType] = {_COARSE[permission] for permission in permissions}
    return kinds.pop() if len(kinds) == 1 else "all"


class Preview(Wire, frozen=True):
    """What would change, shown before the answer."""

    kind: Literal["diff", "run"]
    text: str
    truncated: bool = False


class Basis(Wire, frozen=True, omit_defaults=False):
    """A file as it was when the question was put: a yes counts only while it is still so."""

    path: str
    hash: str | None


class PermissionRequest(Wire, frozen=True):
    """One question to a person, with all that is needed to answer and to resume."""

    id: str
    tool_call_id: str
    tool_name: str
    server_name: str
    permission_type: PermissionType
    description: str
    rule: str
    reason: str
    permissions: tuple[Permission, ...]
    answers: tuple[AnswerKind, ...]
    session_id: str
    batch_id: str
    paths: tuple[str, ...] = ()
    command: str | None = None
    preview: Preview | None = None
    based_on: tuple[Basis, ...] = ()


class Answer(Wire, frozen=True):
    """What the person said."""

    kind: AnswerKind
    reason: str | None = None
