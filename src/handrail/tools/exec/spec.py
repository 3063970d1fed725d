"""The spec of exec with its arguments."""

from typing import Annotated

from msgspec import Meta

from handrail.protocol.tool_spec import Arguments, ToolSpec
from handrail.protocol.wire import Wire

MAX_TIMEOUT_MS = 600_000


class ExecArguments(Arguments, frozen=True):
    """The arguments of exec."""

    command: Annotated[str, Meta(min_length=1, description="Command for bash; && || ; | and redirections work.")]
    cwd: Annotated[str, Meta(description="Folder to run it in, relative to the workspace.")] = "."
    timeout_ms: Annotated[
        Annotated[int, Meta(ge=100, le=MAX_TIMEOUT_MS)] | None,
        Meta(description="Time limit in milliseconds; default 120000.", extra={"default": 120_000}),
    ] = None
    background: Annotated[
        bool,
        Meta(description="Return at once; it continues as a process session; other commands cannot reach its ports."),
    ] = False
    yield_ms: Annotated[
        Annotated[int, Meta(ge=0, le=MAX_TIMEOUT_MS)] | None,
        Meta(description="Wait this many milliseconds, then let it continue as a process session."),
    ] = None


class ExecData(Wire, frozen=True):
    """What the command printed and how it ended."""

    output: str
    """stdout and stderr, interleaved. Long output is cut in the middle."""
    exit_code: int | None
    """As the shell tells it; null for a command that was stopped."""
    duration_ms: float
    signal: str | None = None
    """The signal that ended it, as far as the exit code tells."""
    meaning: str | None = None
    """What the exit code says: of grep 1, no line matched."""
    stdout: str | None = None
    stderr: str | None = None
    """Apart, where the streams were taken in apart."""
    session_id: str | None = None
    """The process session that it went on as."""


EXEC = ToolSpec(
    name="exec",
    title="Run",
    description=(
        "Run one shell command in the workspace, in a sandbox. No network unless the user approved specific hosts. "
        "stdout and stderr are interleaved; long output is cut in the middle. The whole process tree ends with the "
        "call, unless background or yieldMs keep it running as a process session: manage that with process."
    ),
    arguments=ExecArguments,
    data=ExecData,
    permissions=("proc.exec",),
    side_effects=("files", "processes"),
    plain_arguments=("cwd",),
    layer="base",
    stage="run",
    intent="run a command: tests, build, git, scripts",
    not_for=(("reading files", "read"), ("searching them", "grep"), ("changing them", "edit")),
)
