"""Records for lists: processes, notes, skills, todo items, sessions, grants, audit records."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from handrail.protocol.decisions import Decision, Mode
from handrail.protocol.errors import UsageError
from handrail.protocol.events import ToolCallStart, User
from handrail.protocol.permissions import Answer, OpenedFolder, PermissionRequest, StandingGrant
from handrail.protocol.wire import Envelope, Json, Time, Wire

SessionState = Literal["running", "background", "waiting", "unreadable", "idle"]
"""Why a session must not be removed. An idle one may be."""
_SESSION_ID = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
_MIN_ID_CHARS = 3
_TIME_DIGITS = 16
"""The digits of an id that are the time it was made. The digits after them tell ids apart."""
_REASONS = {
    "stopped": "stopped",
    "idle": "ended: it was idle for too long (limits.idle)",
    "session": "ended with its session",
    "memory": "ended: it used more memory than limits.memory",
    "processes": "ended: it had more processes than limits.processes",
    "disk": "ended: it wrote more than limits.preview",
}


class ProcessRecord(Wire, frozen=True):
    """A process session: a command that outlives its call."""

    id: str
    """`p-` and 20 letters and digits. Any unique beginning of it will do."""
    state: Literal["running", "ended", "lost"]
    """`lost`: its keeper was killed, so its exit code is unknown. None of its processes runs."""
    command: str
    cwd: str
    """The folder that it was started in: relative in the workspace, absolute in an extra root."""
    session_id: str
    """The session whose process it is."""
    started: Time
    pid: int | None = None
    """The number of its first process."""
    ended: Time | None = None
    exit_code: int | None = None
    signal: str | None = None
    """The signal that ended it, as far as the exit code tells."""
    reason: str | None = None
    """Why handrail ended it: `stopped`, `idle`, `session`, `memory`, `processes`, `disk`. Null: it ended by itself."""
    ports: tuple[int, ...] = ()
    """TCP ports that it listens on, in its network namespace."""
    size: int = 0
    """Bytes that it has printed."""
    dropped: int = 0
    """The bytes of these that were dropped: between the first 64 KB and the last 64 MB, or cleared."""
    last_line: str = ""
    changed: str | None = None
    """What became of the changes in its overlay, in words. Null: it still runs, or it has no overlay."""

    def describe_state(self) -> str:
        """`running`, `exit 1`, `stopped`."""
        if self.state != "ended":
            return self.state
        return self.reason or self.signal or f"exit {self.exit_code}"

    def describe(self, now: datetime) -> str:
        """`running for 02:14`, `exit code 1`, and what it changed."""
        state = self._describe_long_state(now)
        return f"{state}; {self.changed}" if self.changed else state

    def _describe_long_state(self, now: datetime) -> str:
        if self.state == "running":
            ports = f", listens on port {', '.join(map(str, self.ports))} of its own network" if self.ports else ""
            return f"running for {self.format_run_time(now)}{ports}"
        if self.state == "lost":
            return "gone: its keeper was killed, so its outcome is unknown"
        if self.reason is not None:
            return _REASONS.get(self.reason, f"ended: {self.reason}")
        by = f" ({self.signal})" if self.signal else ""
        return f"exit code {self.exit_code}{by}"

    def describe_dropped(self) -> str:
        return f"{self.dropped:,} bytes in the middle were dropped: the log has the first 64 KB and the last 64 MB"

    def format_run_time(self, now: datetime) -> str:
        """`02:14`, `1:02:14`, `3 d 01:02`."""
        seconds = max(0, int(((self.ended or now) - self.started).total_seconds()))
        minutes, hours, days = seconds // 60 % 60, seconds // 3600 % 24, seconds // 86400
        if days:
            return f"{days} d {hours:02}:{minutes:02}"
        return f"{hours}:{minutes:02}:{seconds % 60:02}" if hours else f"{minutes:02}:{seconds % 60:02}"


class Memory(Wire, frozen=True, omit_defaults=False):
    """A model's note for later sessions of a workspace. It ranks below the user's words: the model may be misled."""

    id: str
    """The id to change or remove it by: `m-7fq2k`."""
    title: str
    content: str
    time: Time
    """When it was last changed."""
    session_id: str


class SkillEntry(Wire, frozen=True, omit_defaults=False):
    """A skill as it is listed. An active skill is listed even if its file is gone."""

    name: str
    description: str
    source: Literal["settings", "user", "project", "gone"]
    """A folder of the settings, a folder of the user, or the workspace. `gone`: its file no longer exists."""
    path: str
    """Its folder, with `~` for the home folder."""
    active: bool
    usable: bool
    problem: str | None
    """Why it cannot be used."""
    by_name_only: bool
    """Whether it is used only if somebody asks for it. Prompts do not mention it."""
    allowed_tools: tuple[str, ...] | None
    """The tools that are allowed while it is active, such as `exec(git:*)`. None: all tools."""
    warnings: tuple[str, ...]


class TodoItem(Wire, frozen=True, omit_defaults=False):
    """An item of the model's todo list."""

    text: str
    status: Literal["pending", "active", "done"]


class AuditRecord(Envelope, frozen=True):
    """The audit record of a call. It has no file contents and no complete arguments."""

    time: datetime
    session_id: str
    trace_id: str
    tool_call_id: str
    name: str
    version: str
    args: Json
    decision: str
    rule: str
    ok: bool
    error_code: str | None
    summary: str
    duration_ms: float
    files_changed: tuple[str, ...]
    commands_run: tuple[str, ...]
    limits: tuple[str, ...]
    tool_name: str | msgspec.UnsetType = msgspec.UNSET
    """The name that another server gives its tool."""
    server_name: str | msgspec.UnsetType = msgspec.UNSET
    command: str | msgspec.UnsetType = msgspec.UNSET
    """Programs, subcommands and option names of a command, whether it ran or not."""
    answered_by: str | msgspec.UnsetType = msgspec.UNSET
    """`preview` or `grant` if that approved the call instead of a person."""

    @property
    def label(self) -> str:
        return f"{self.tool_name} ({self.server_name})" if self.server_name else self.name


class SessionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    id: str
    events: int
    last: datetime | None
    problem: str | None = None
    """Why its journal cannot be read."""


class SessionUsage(msgspec.Struct, frozen=True):
    """A session with its size and its state."""

    folder: str
    workspace: str | None
    """None if it is not recorded."""
    state: SessionState
    bytes: int
    last: datetime
    """The time of the last write to its journal."""

    @property
    def id(self) -> str:
        return self.folder.rpartition("/")[2]


class StoredGrant(msgspec.Struct, frozen=True):
    """A grant or an opened folder, with the part of the state folder it is in."""

    granted: StandingGrant | OpenedFolder
    home: str
    workspace: str | None
    """The workspace it counts in, if it is known."""

    @property
    def id(self) -> str:
        """The id that revokes it. That of an opened folder is made from its path and scope."""
        granted = self.granted
        if not isinstance(granted, OpenedFolder):
            return granted.id
        import hashlib  # noqa: PLC0415  few open folders

        key = f"{self.home} {granted.scope} {granted.session_id} {granted.path} {granted.access}"
        return f"f-{hashlib.sha256(key.encode(errors='surrogateescape')).hexdigest()[:12]}"


class CallStory(msgspec.Struct, frozen=True, kw_only=True):
    """A call, the prompt before it, and the approval it got. None for parts that the journal does not have."""

    start: ToolCallStart
    decision: Decision | None = None
    mode: Mode | None = None
    asked: PermissionRequest | None = None
    answer: Answer | None = None
    answered: datetime | None = None
    prompt: User | None = None


# Ids, and the short forms that people type


def check_session_id(session_id: str) -> str:
    """Returns a valid session id. UsageError if it is not."""
    if not re.fullmatch(_SESSION_ID, session_id):
        rule = "letters, digits, dot, dash and underscore, at most 64, beginning with a letter or digit"
        raise UsageError(f"a session id is made of {rule}: {session_id[:80]!r}")
    return session_id


def shorten_ids(ids: Iterable[str]) -> dict[str, str]:
    """The shortest prefix of the own part of every id that no other id has."""
    own = {name: _own_part(name) for name in ids}
    return {name: _shorten(part, [own[other] for other in own if other != name]) for name, part in own.items()}


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


def format_age(age: timedelta) -> str:
    """An age in its largest unit: `7 s`, `5 min`, `2 h`, `3 d`. A negative age is `0 s`."""
    seconds = max(0, int(age.total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
