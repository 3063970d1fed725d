"""exec: one shell command. So far it is judged and explained; nothing runs it yet, and no session offers it."""

from typing import Annotated

from msgspec import Meta

from handrail.protocol.tool import Arguments, ToolSpec
from handrail.protocol.wire import Wire

_MOST_MILLISECONDS = 600_000


class ExecArguments(Arguments, frozen=True):
    """The arguments of exec."""

    command: Annotated[str, Meta(min_length=1, description="Command for bash; && || ; | and redirections work.")]
    cwd: Annotated[str, Meta(description="Folder to run it in, relative to the workspace.")] = "."
    timeout_ms: Annotated[
        int, Meta(ge=100, le=_MOST_MILLISECONDS, description="Milliseconds after which it is stopped.")
    ] = 120_000
    background: Annotated[bool, Meta(description="Return at once; it goes on as a process session.")] = False
    yield_ms: Annotated[
        Annotated[int, Meta(ge=0, le=_MOST_MILLISECONDS)] | None,
        Meta(description="Wait so many milliseconds, then let it go on as a process session."),
    ] = None


class ExecData(Wire, frozen=True):
    """What the command printed and how it ended."""

    output: str
    """Both streams in their true order, as one pipe gives it."""
    exit_code: int | None
    duration_ms: float
    signal: str | None = None
    meaning: str | None = None
    """What the exit code says: of grep 1, no line matched."""
    stdout: str | None = None
    stderr: str | None = None
    session_id: str | None = None
    """The process session that it went on as."""


EXEC = ToolSpec(
    name="exec",
    title="Run",
    description=(
        "Run one shell command in the workspace. The whole process tree is gone when the call ends, but for "
        "background and yieldMs, which hand it over as a process session."
    ),
    arguments=ExecArguments,
    data=ExecData,
    permissions=("proc.exec",),
    side_effects=("files", "processes"),
    plain_arguments=("cwd",),
)
