"""Records that people and models list: processes, notes, skills, todo items."""

from typing import Literal

from handrail.protocol.wire import Time, Wire

ProcessState = Literal["running", "ended", "lost"]
"""`lost`: its keeper was killed, so its exit code is unknown. Nothing of it runs any more."""


class ProcessRecord(Wire, frozen=True):
    """A process session: a command that outlives its call."""

    id: str
    """`p-` and 20 letters and digits. Any unique beginning of it will do."""
    state: ProcessState
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
