"""Small records: processes, memories, skills, todo items."""

from typing import Literal

from handrail.protocol.wire import Time, Wire

ProcessState = Literal["running", "ended", "lost"]
"""`lost`: what kept it was killed, so nobody knows how it ended; nothing of it runs any more."""


class ProcessRecord(Wire, frozen=True):
    """What is known of one."""

    id: str
    """`p-` and 20 letters and digits; any beginning of it that no other one has will do."""
    state: ProcessState
    command: str
    cwd: str
    """The folder that it was started in, as results name folders."""
    session_id: str
    """The session whose process it is."""
    started: Time
    pid: int | None = None
    """Of its first process, as the machine counts."""
    ended: Time | None = None
    exit_code: int | None = None
    signal: str | None = None
    """The signal that ended it, as far as the exit code tells."""
    reason: str | None = None
    """Why it ended, where it did not do so by itself: `stopped`, `idle`, `session`, `memory`, `processes`, `disk`."""
    ports: tuple[int, ...] = ()
    """TCP ports that it listens on, in its own network."""
    size: int = 0
    """Bytes that it has printed."""
    dropped: int = 0
    """Of these, how many are not kept: between the first 64 KB and the last 64 MB, or cleared."""
    last_line: str = ""
    changed: str | None = None
    """What became of what it changed in its overlay, in words, once it has ended; null where it works on the real tree,
    or runs."""


class Memory(Wire, frozen=True, omit_defaults=False):
    """One note. A model wrote it, perhaps misled by what it read: it is never of higher rank than a person's words."""

    id: str
    """What changes and removes it: `m-7fq2k`."""
    title: str
    content: str
    time: Time
    """When it was last changed."""
    session_id: str
    """The session that wrote it."""


class SkillEntry(Wire, frozen=True, omit_defaults=False):
    """One skill that was found, or that is active although it is gone."""

    name: str
    description: str
    source: Literal["settings", "user", "project", "gone"]
    """A folder that the settings name, the person's own places, the workspace; gone: its file is not there any more."""
    path: str
    """Its folder, as a person writes it."""
    active: bool
    usable: bool
    problem: str | None
    """Why it cannot be used, in words."""
    by_name_only: bool
    """Whether its author wants it to be used only where somebody asks for it: prompts do not tell of it."""
    allowed_tools: tuple[str, ...] | None
    """The tools that it leaves while it is active, in our names, `exec(git:*)`; None where it leaves all."""
    warnings: tuple[str, ...]


class TodoItem(Wire, frozen=True, omit_defaults=False):
    """One thing to do."""

    text: str
    status: Literal["pending", "active", "done"]
