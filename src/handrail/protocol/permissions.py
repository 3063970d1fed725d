"""Permission requests, questions and their answers."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from handrail.protocol.changes import Change
from handrail.protocol.decisions import DecisionPart
from handrail.protocol.wire import Time, Wire

Permission = Literal["fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write"]
PERMISSIONS: tuple[Permission, ...] = ("fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write")
PermissionType = Literal["read", "write", "command", "all"]
AnswerKind = Literal["once", "session", "workspace", "output", "deny"]
RequestKind = Literal["external_directory"]
Scope = Literal["session", "workspace"]
ANSWERS: tuple[AnswerKind, ...] = ("once", "session", "workspace", "output", "deny")

_COARSE: dict[Permission, PermissionType] = {
    "proc.exec": "command",
    "fs.write": "write",
    "fs.delete": "write",
    "git.write": "write",
    "fs.read": "read",
    "net.connect": "all",
}


def classify_permissions(permissions: Iterable[Permission]) -> PermissionType:
    """The coarse kind that events carry; several kinds, or none known, are `all`. Reading beside writing is writing."""
    kinds: set[PermissionType] = {_COARSE[permission] for permission in permissions}
    if "write" in kinds:
        kinds.discard("read")
    return kinds.pop() if len(kinds) == 1 else "all"


def get_s4_kind(request: "PermissionRequest") -> str:
    """The other name of a request: a folder outside the roots, `bash`, `edit` or `read`; else the name that the call
    has. Another server may call its tool `bash`, too."""
    if request.kind is not None:
        return request.kind
    if "proc.exec" in request.permissions:
        return "bash"
    kind = classify_permissions(request.permissions)
    return {"write": "edit", "read": "read"}.get(kind, request.called)


class PreviewRun(Wire, frozen=True):
    """How a command went that was tried in a throw-away copy of the workspace: nothing of it is committed yet."""

    sealed: str
    """Where the whole of it waits for the answer: what it printed, and what every file would become."""
    exit_code: int | None
    """As the shell tells it; null where it was stopped."""
    duration_ms: float
    ending: str = "exit"
    """`exit`, or why it was stopped: `timeout`, `memory`, `processes`, `cancelled`."""
    changes: tuple[Change, ...] = ()
    """What it would change, the most harmful first; of very many the first ones."""
    files: int = 0
    """How many files it would change, in all."""
    deleted: int = 0
    """How many of them it would delete."""
    added: int = 0
    """Lines."""
    removed: int = 0
    """Lines."""
    lines: int = 0
    """Of what it printed."""
    last_line: str = ""
    blocked: tuple[str, ...] = ()
    """What it tried to reach, each in words: the network is off in the copy."""
    unkept: tuple[str, ...] = ()
    """What of it cannot be committed, each in words: a socket, a pipe."""
    on: tuple[str, ...] = ()
    """What of its batch it was tried on top of: previews of earlier commands, and calls of file tools. It is
    committed only if all of that was."""


ONLY_LOOKS = "it only looks, so that a yes changes nothing"
"""Why what is proven to change nothing is not tried, where a rule asks about it."""


class Preview(Wire, frozen=True):
    """What would change, shown before the answer."""

    kind: Literal["diff", "run", "input", "none"]
    """`diff`: what a file would become; `run`: what the command did in a copy; `input`: what a program is sent; `none`:
    the command was not tried, and `text` says why."""
    text: str
    """Of a preview, the differences that it would make."""
    truncated: bool = False
    """Whether `text` is only the beginning."""
    output: str = ""
    """What the preview printed, in what a view has room for."""
    tried: PreviewRun | None = None
    time: Time | None = None
    """When it was made. The files may have changed since."""


class FileBinding(Wire, frozen=True, omit_defaults=False):
    """A file as it was when the question was put: a yes counts only while it is still so."""

    path: str
    """As the call names it."""
    real: str | None
    """Where it led."""
    hash: str | None
    """Hash of the bytes; null where there was no file."""


class PermissionRequest(Wire, frozen=True):
    """One question to a person, with all that is needed to answer and to resume."""

    id: str
    """What the answer names."""
    tool_call_id: str
    tool_name: str
    """What whoever offers the tool calls it."""
    server_name: str
    """Who offers the tool: `handrail`, or the name of another server."""
    permission_type: PermissionType
    """The coarse kind, for views that show no more."""
    description: str
    """The call in a few words."""
    rule: str
    """The rule that asks."""
    reason: str
    """Why it asks, in words."""
    permissions: tuple[Permission, ...]
    """What the call needs: of a command also what policy reads in it."""
    answers: tuple[AnswerKind, ...]
    """The answers that are possible here."""
    session_id: str
    batch_id: str
    """The batch that goes on when all its requests are answered."""
    paths: tuple[str, ...] = ()
    """The files it is about, as the call named them."""
    command: str | None = None
    """The whole command, where it is one."""
    cwd: str | None = None
    """The folder that the command would run in, past all links; a yes to another one is no yes."""
    tier: int | None = None
    """The sandbox that the command would run in; a yes does not count for a weaker one."""
    background: bool = False
    """Whether the command goes on after its call, on the real tree: undo does not cover it."""
    process: str | None = None
    """The process session that the call writes to; a yes to another one is no yes."""
    environment: str | None = None
    """A digest of the variables that the command would get; a yes to other ones is no yes."""
    hosts: tuple[str, ...] = ()
    """The hosts that a yes opens to the command, for this call: `example.org:443`."""
    parts: tuple[DecisionPart, ...] = ()
    """The simple commands of it, each with what policy says of it, and what of its result asks by itself; empty where
    there is only one."""
    grants: tuple[str, ...] = ()
    """What `session` and `workspace` stop the asking for: classes of commands, `ruff format`, or a tool of another
    server by its name here."""
    preview: Preview | None = None
    edited: bool = False
    """Whether a person changed the command: it is not the one that was called."""
    revision: int = 0
    """How often it was tried again, or changed, since it was first put. A yes counts only for what it was given to."""
    bound_files: tuple[FileBinding, ...] = msgspec.field(default=(), name="basedOn")
    """The files as the preview saw them; a yes to other bytes is no yes."""
    kind: RequestKind | None = None
    """`external_directory`: a yes opens a folder outside the workspace."""
    pattern: tuple[str, ...] = ()
    """The folder that a yes opens, and what is in it: `/data`, `/data/*`."""
    access: Literal["read", "write"] | None = None
    """What it is opened for."""
    tool_call_name: str | None = None
    """What the call named, where that is not `toolName`: `mcp__github__create_issue`."""
    fingerprint: str | None = None
    """A digest of what another server says of its tool; a yes to another one is no yes."""

    @property
    def called(self) -> str:
        """The name that a call of the tool has."""
        return self.tool_call_name or self.tool_name


class OpenedFolder(Wire, frozen=True, omit_defaults=False):
    """A folder outside the workspace that a person opened."""

    path: str
    access: Literal["read", "write"]
    scope: Scope
    """How long: for the session, or for every session of the workspace until it is closed."""
    session_id: str
    """The session in which it was opened."""
    time: Time
    named: str | None = None
    """As a call named it, where a link leads there."""


class StandingGrant(Wire, frozen=True, omit_defaults=False):
    """What a person said not to be asked about again: a class of commands, or a tool of another server."""

    id: str
    """What revokes it."""
    command: str
    """The class: `git commit`; or the tool: `mcp__github__create_issue`. Nothing in it is a wildcard."""
    scope: Scope
    """How long: for the session, or for every session of the workspace until it is revoked."""
    session_id: str
    """The session in which it was granted."""
    time: Time


class Answer(Wire, frozen=True):
    """What the person said."""

    kind: AnswerKind
    """`session` and `workspace`: also calls like it; `output`: what it printed, not what it changed."""
    reason: str | None = None
    """Why not; the model reads it."""
    revision: int | None = None
    """The revision of the request that it is to; not given, the first one. A no is to all of them."""


class Question(Wire, frozen=True):
    """What the model wants to know."""

    tool_call_id: str
    """What the reply names."""
    question: str
    options: tuple[str, ...] = ()
    """Replies to choose from."""
    multiple: bool = False
    """Several may be chosen."""
    custom: bool = False
    """A reply in the person's own words is welcome."""


class Reply(Wire, frozen=True):
    """What the person said to it: options, own words, or both."""

    chosen: tuple[str, ...] = ()
    text: str | None = None
