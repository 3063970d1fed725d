"""Requests to a person: permission requests, questions, their answers."""

from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from handrail.protocol.changes import Preview
from handrail.protocol.decisions import DecisionPart, Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.novelty import Novelty
from handrail.protocol.text import render_value
from handrail.protocol.wire import Time, Wire, escape_surrogates

Permission = Literal["fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write"]
PERMISSIONS: tuple[Permission, ...] = ("fs.read", "fs.write", "fs.delete", "proc.exec", "net.connect", "git.write")
_PermissionType = Literal["read", "write", "command", "all"]
AnswerKind = Literal["once", "session", "workspace", "edits", "output", "deny"]
Scope = Literal["session", "workspace"]
_MAX_REPLY_CHARS = 20_000

_COARSE: dict[Permission, _PermissionType] = {
    "proc.exec": "command",
    "fs.write": "write",
    "fs.delete": "write",
    "git.write": "write",
    "fs.read": "read",
    "net.connect": "all",
}


def classify_permissions(permissions: Iterable[Permission]) -> _PermissionType:
    """The coarse kind for events. Several kinds, or none, are `all`. Reading and writing is writing."""
    kinds: set[_PermissionType] = {_COARSE[permission] for permission in permissions}
    if "write" in kinds:
        kinds.discard("read")
    return kinds.pop() if len(kinds) == 1 else "all"


class FileBinding(Wire, frozen=True, omit_defaults=False):
    """The version of a file that an approval is bound to."""

    path: str
    """As the call names it."""
    real: str | None
    """Its target."""
    hash: str | None
    """Hash of the content. Null: there was no file."""


class PermissionRequest(Wire, frozen=True):
    """A request for approval, with everything needed to answer it and to resume."""

    id: str
    """The id for the answer."""
    tool_call_id: str
    tool_name: str
    """The name of the tool on its server."""
    server_name: str
    """The server of the tool: `handrail`, or the name of another server."""
    permission_type: _PermissionType
    description: str
    """The call in a few words."""
    rule: str
    reason: str
    permissions: tuple[Permission, ...]
    """The permissions that the call needs, also those that policy derives from a command."""
    answers: tuple[AnswerKind, ...]
    session_id: str
    batch_id: str
    """The batch. It resumes when all its requests are answered."""
    paths: tuple[str, ...] = ()
    """The paths of the call, as it named them."""
    command: str | None = None
    cwd: str | None = None
    """The real working directory of the command. The approval counts for no other."""
    tier: int | None = None
    """The sandbox of the command. The approval does not count for a weaker one."""
    background: bool = False
    """Whether the command runs in the background, on the real tree, without undo."""
    process: str | None = None
    """The process session that the call writes to. The approval counts for no other."""
    environment: str | None = None
    """A digest of the command's environment. The approval counts for no other."""
    hosts: tuple[str, ...] = ()
    """The hosts that an approval opens for this call: `example.org:443`."""
    parts: tuple[DecisionPart, ...] = ()
    """The simple commands with their decisions, and the changes that need approval by themselves. Empty: there is only
    one part."""
    grants: tuple[str, ...] = ()
    """What the answers `session` and `workspace` grant: classes of commands, `ruff format`, `git in this repository`,
    or a tool of another server."""
    preview: Preview | None = None
    edited: bool = False
    """Whether the user edited the command."""
    revision: int = 0
    """How often it was retried or edited. An approval counts for one revision only."""
    bound_files: tuple[FileBinding, ...] = msgspec.field(default=(), name="basedOn")
    """The versions of files that the preview saw. The approval counts for no others."""
    kind: Literal["external_directory"] | None = None
    """`external_directory`: an approval opens a folder outside the workspace."""
    pattern: tuple[str, ...] = ()
    """The folder that an approval opens, and its content: `/data`, `/data/*`."""
    access: Literal["read", "write"] | None = None
    tool_call_name: str | None = None
    """The name in the call, if it is not `toolName`: `mcp__github__create_issue`."""
    fingerprint: str | None = None
    """A digest of another server's description of its tool. The approval counts for no other."""
    purpose: str | None = None
    """The model's reason for the call, in its own words."""
    unusual: Novelty | None = None
    """How it differs from earlier calls in the workspace. Null: in nothing, or there were too few."""

    @property
    def called(self) -> str:
        """The name of the tool in calls."""
        return self.tool_call_name or self.tool_name

    @property
    def s4_kind(self) -> str:
        """The kind in the words of other systems: `external_directory`, `bash`, `edit`, `read`, or the tool's name."""
        if self.kind is not None:
            return self.kind
        if "proc.exec" in self.permissions:
            return "bash"
        return {"write": "edit", "read": "read"}.get(classify_permissions(self.permissions), self.called)

    @property
    def preview_id(self) -> str | None:
        """The stored preview of its command. None: there is none."""
        return self.preview.id if self.preview is not None else None

    @property
    def base_previews(self) -> tuple[str, ...]:
        """The earlier previews and calls of its batch that its preview builds on."""
        return self.preview.tried.on if self.preview is not None and self.preview.tried is not None else ()


class OpenedFolder(Wire, frozen=True, omit_defaults=False):
    """A folder outside the workspace that the user opened."""

    path: str
    access: Literal["read", "write"]
    scope: Scope
    """For the session, or for every session of the workspace until it is closed."""
    session_id: str
    time: Time
    named: str | None = None
    """The path in the call, if it leads here by a link."""


class StandingGrant(Wire, frozen=True, omit_defaults=False):
    """A standing approval: a class of commands, plain edits, or a tool of another server."""

    EDITS: ClassVar[str] = "plain edits"
    """Modified and new files. No program has this name."""
    LOCAL_GIT: ClassVar[str] = "git in this repository"
    """Git sub-commands that change only git's own files and tracked files."""

    id: str
    """The id to revoke it by."""
    command: str
    """The class, `ruff format`, or the tool, `mcp__github__create_issue`, without wildcards. `plain edits` and
    `git in this repository` stand for themselves."""
    scope: Scope
    """For the session, or for every session of the workspace until it is revoked."""
    session_id: str
    time: Time


class Answer(Wire, frozen=True):
    """The answer of the user."""

    kind: AnswerKind
    """`session`, `workspace`: similar calls too. `edits`: plain edits too, in this session. `output`: keep the output,
    discard the changes."""
    reason: str | None = None
    """Why not. The model reads it."""
    revision: int | None = None
    """The revision of the request. Absent: the first one. A denial counts for all revisions."""
    by: Literal["preview", "grant", "expiry"] | None = None
    """`preview`: the preview changed nothing, or only caches. `grant`: the grant for plain edits covers the preview.
    `expiry`: the request expired. Absent: a person answered."""
    grants: tuple[str, ...] = ()
    """What `session` and `workspace` grant, of the request's `grants`. Absent: all of them."""

    @property
    def approves(self) -> bool:
        """Whether it runs the call, or commits its preview."""
        return self.kind in {"once", "session", "workspace", "edits"}


class Question(Wire, frozen=True):
    """A question of the model to the user. Its call has no result until the reply."""

    tool_call_id: str
    """The id for the reply."""
    question: str
    options: tuple[str, ...] = ()
    multiple: bool = False
    custom: bool = False
    """The user may reply in their own words."""

    def normalize_reply(self, said: "Reply | str") -> "Reply":
        """The reply with its options in order and its text stripped. UsageError says which replies are possible."""
        given = said if isinstance(said, Reply) else _parse_reply(self, said)
        text = escape_surrogates(given.text).strip() if given.text else ""
        possible = _describe_possible_replies(self)
        unknown = [one for one in given.chosen if one not in self.options]
        if unknown:
            raise UsageError(f"{render_value(unknown[0])} is not an option of the question. {possible}")
        if text and not self.custom:
            raise UsageError(f"the question accepts only its options: {render_value(text)}. {possible}")
        chosen = tuple(option for option in self.options if option in given.chosen)
        if len(chosen) > 1 and not self.multiple:
            raise UsageError(f"only one option may be chosen, not {len(chosen)}. {possible}")
        if not chosen and not text:
            raise UsageError(f"the reply is empty. {possible}")
        if len(text) > _MAX_REPLY_CHARS:
            raise UsageError(f"a reply has at most {_MAX_REPLY_CHARS:,} characters; this one has {len(text):,}")
        return Reply(chosen=chosen, text=text or None)


class Reply(Wire, frozen=True):
    """The reply of the user: options, their own words, or both."""

    chosen: tuple[str, ...] = ()
    text: str | None = None


class ApproverReply(msgspec.Struct, frozen=True):
    """The reply of a person, or of their program, to what they were asked. It is not part of the wire format."""

    subject: PermissionRequest | Question
    """The request or question that was shown last: a request may have been retried meanwhile."""
    answer: Answer | Reply | None = None
    """None: left for later, or answered elsewhere. A question that gets the answer `deny` is put aside."""


class InboxRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request without an answer, or one whose call was not run after the answer."""

    request: PermissionRequest
    folder: str
    """The folder of its session."""
    workspace: str | None
    """The path of its workspace, if it is known."""
    time: Time
    """When the call came."""
    mode: Mode | None
    tools: tuple[str, ...]
    """The tools of all calls of its batch."""
    environment: str | None = None
    """The digest of the environment variables for the commands of its batch."""
    answer: Answer | None = None
    """The answer, if the call only waits to run, because its runner was killed."""

    @property
    def state(self) -> Literal["waiting", "ready"]:
        """Whether it waits for an answer, or only to run."""
        return "waiting" if self.answer is None else "ready"


class InboxQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question of the model without a reply."""

    question: Question
    folder: str
    """The folder of its session."""
    workspace: str | None
    """The path of its workspace, if it is known."""
    time: Time

    @property
    def session_id(self) -> str:
        return self.folder.rpartition("/")[2]


def _describe_possible_replies(question: Question) -> str:
    options = ", ".join(render_value(option) for option in question.options)
    many = "one or more of" if question.multiple else "one of"
    own = "your own words" if question.custom else ""
    return f"Reply with {' or '.join(filter(None, (f'{many} {options}' if options else '', own)))}."


def _parse_reply(question: Question, said: str) -> Reply:
    """The option that a text spells, in any case if that is unambiguous. Otherwise it is a reply in own words."""
    spelled = said.strip()
    alike = [one for one in question.options if one.strip().casefold() == spelled.casefold()]
    exact = [one for one in alike if one.strip() == spelled]
    found = exact or (alike if len(alike) == 1 else [])
    if found:
        return Reply(chosen=tuple(found))
    if question.multiple and (several := _parse_several(question, spelled)):
        return Reply(chosen=several)
    return Reply(text=said)


def _parse_several(question: Question, spelled: str) -> tuple[str, ...]:
    """Options separated by commas or newlines. Empty if a part is not an option."""
    names = {option.strip().casefold(): option for option in question.options}
    for mark in ("\n", ","):
        parts = [part.strip().casefold() for part in spelled.split(mark) if part.strip()]
        if parts and all(part in names for part in parts):
            return tuple(names[part] for part in parts)
    return ()
