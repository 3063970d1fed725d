"""Every way a call can fail."""

import errno
import sys
from typing import Literal, get_args

from handrail.protocol.wire import Envelope, Json, Wire

ErrorCode = Literal[
    "INVALID_ARGUMENT",
    "UNKNOWN_TOOL",
    "UNSUPPORTED_VERSION",
    "NOT_FOUND",
    "NOT_A_FILE",
    "NOT_A_DIRECTORY",
    "BINARY_FILE",
    "ACCESS_DENIED",
    "NO_SPACE",
    "IO_ERROR",
    "NO_MATCH",
    "AMBIGUOUS_MATCH",
    "NO_CHANGE",
    "OMITTED_TEXT",
    "STALE_FILE",
    "CONFLICT",
    "OUTSIDE_WORKSPACE",
    "POLICY_DENIED",
    "PERMISSION_REQUIRED",
    "PERMISSION_DENIED",
    "PROCESS_NOT_FOUND",
    "PROCESS_ENDED",
    "TIMEOUT",
    "CANCELLED",
    "INTERRUPTED",
    "LIMIT_EXCEEDED",
    "UNAVAILABLE",
    "SANDBOX_UNAVAILABLE",
    "INTERNAL",
]

REFUSAL_ADVICE = "Do not try another way; say what you need it for."
"""The end of a refusal, for the model."""
MEANING: dict[ErrorCode, str] = {
    "INVALID_ARGUMENT": "An argument is missing, unknown, mistyped or out of range; details lists every problem.",
    "UNKNOWN_TOOL": "This session has no tool of that name; details lists its tools.",
    "UNSUPPORTED_VERSION": "The call asks for another major version of the tool.",
    "NOT_FOUND": "The file, folder or reference does not exist.",
    "NOT_A_FILE": "The path is a directory, device, FIFO or socket.",
    "NOT_A_DIRECTORY": "The path, or a part of it, is not a directory.",
    "BINARY_FILE": "The file is not text.",
    "ACCESS_DENIED": "The operating system refused.",
    "NO_SPACE": "The disk or quota is full; nothing was changed.",
    "IO_ERROR": "The operating system reported another error.",
    "NO_MATCH": "The text to replace is not in the file.",
    "AMBIGUOUS_MATCH": "The text to replace is in the file more than once.",
    "NO_CHANGE": "The call would change nothing.",
    "OMITTED_TEXT": "The new text has a placeholder instead of real lines.",
    "STALE_FILE": "The file's bytes changed since this session read them.",
    "CONFLICT": "Another program changed or holds something that the call needs.",
    "OUTSIDE_WORKSPACE": "The path leads outside the roots.",
    "POLICY_DENIED": "A rule forbids the call.",
    "PERMISSION_REQUIRED": "The user has to approve first; details is the permission request. Never a final result.",
    "PERMISSION_DENIED": "The user denied the request.",
    "PROCESS_NOT_FOUND": "No process session of that id belongs to this session.",
    "PROCESS_ENDED": "The process session has ended.",
    "TIMEOUT": "The time limit was reached; all processes of the call were stopped.",
    "CANCELLED": "The call was cancelled.",
    "INTERRUPTED": "The runtime ended while the call ran; its effects are unknown.",
    "LIMIT_EXCEEDED": "Something is larger than its limit allows.",
    "UNAVAILABLE": "The call needs something that is not installed or not enabled.",
    "SANDBOX_UNAVAILABLE": "This machine has no sandbox, so no command runs.",
    "INTERNAL": "An internal error in handrail or in a custom tool.",
}

CODES: tuple[ErrorCode, ...] = get_args(ErrorCode)
RETRYABLE: frozenset[ErrorCode] = frozenset(
    {"CONFLICT", "STALE_FILE", "TIMEOUT", "NO_SPACE", "IO_ERROR", "UNAVAILABLE"}
)
"""Codes with which the same or nearly the same call may succeed later."""


class ErrorInfo(Envelope, frozen=True):
    """The error of a result."""

    code: ErrorCode
    message: str
    """What happened, the offending value, what to do next: written for the model."""
    details: Json = None
    """What the code promises: every problem, the offered names, the permission request."""
    retryable: bool = False
    """Whether the same call, or nearly the same, may succeed later."""


class Problem(Wire, frozen=True, omit_defaults=False):
    """One thing that is wrong with the arguments."""

    field: str
    problem: str
    value: str | None = None
    use: str | None = None


class ToolError(Exception):
    """A failure for the model to read: what happened, the value, what to do next. It never leaves the runtime."""

    def __init__(self, code: ErrorCode, message: str, *, details: Json = None, warnings: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message
        self.details = details
        self.warnings = warnings

    @property
    def named_details(self) -> dict[str, Json]:
        """The details if they are an object, else none."""
        details: Json = self.details
        return dict(details) if isinstance(details, dict) else {}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def info(self) -> ErrorInfo:
        """The error of a result."""
        retryable = self.code in RETRYABLE
        return ErrorInfo(code=self.code, message=self.message, details=self.details, retryable=retryable)


class HandrailError(Exception):
    """Anything handrail raises at its caller."""

    def __init__(self, *args: object, then: str = "") -> None:
        super().__init__(*args)
        self.then = then
        """The next step for a person, if it is known."""


class UsageError(HandrailError):
    """The library was called wrongly."""


class StoreError(HandrailError):
    """The state folder cannot be read or written. Its text is the problem, followed by advice."""

    def __init__(
        self,
        problem: str,
        brief: str = "handrail's records cannot be used",
        advice: str | None = None,
        *,
        then: str = "",
    ) -> None:
        super().__init__(problem, then=then)
        self.problem = problem
        """One sentence without its full stop."""
        self.advice = advice
        """Sentences for a person. None: the next command, which depends on the cause."""
        self.brief = brief
        """The text for a model: without paths of the state folder."""

    def to_tool_error(self, became: str) -> ToolError:
        """The error of a call that fails for this reason. `became`: what the call did."""
        cause, brief = self.__cause__, self.brief
        code, why = EXHAUSTED.get((isinstance(cause, OSError) and cause.errno) or 0, ("IO_ERROR", ""))
        text = f"{why}, so {brief}" if why else f"{brief[0].upper()}{brief[1:]}"
        return ToolError(code, f"{text}. {became} Only the user can repair this: handrail doctor")

    def describe(self) -> tuple[str, str]:
        """The problem, and the next command."""
        reason, command = (self.advice, "handrail doctor") if self.advice else _find_cause(self.__cause__)
        return f"{self.problem}. {reason}".rstrip(), self.then or command

    def __str__(self) -> str:
        text, command = self.describe()
        return f"{text} Next: {command}" if command else text


EXHAUSTED: dict[int, tuple[ErrorCode, str]] = {
    errno.EMFILE: ("LIMIT_EXCEEDED", "This program has too many files open"),
    errno.ENFILE: ("LIMIT_EXCEEDED", "The machine has too many files open"),
    errno.ENOMEM: ("LIMIT_EXCEEDED", "The machine is out of memory"),
    errno.ENOSPC: ("NO_SPACE", "The disk is full"),
    errno.EDQUOT: ("NO_SPACE", "The disk quota is used up"),
}
"""Errors of a machine that has run out of something. They are no defects of handrail."""


def _find_cause(cause: BaseException | None) -> tuple[str, str]:
    """What the machine has run out of, and the command that shows or mends it."""
    if not isinstance(cause, OSError) or cause.errno not in EXHAUSTED:
        return "", "handrail doctor"
    reason, path = f"{EXHAUSTED[cause.errno][1]}.", cause.filename
    if cause.errno == errno.EMFILE:
        return reason, "ulimit -n 65536"
    if cause.errno not in {errno.ENOSPC, errno.EDQUOT}:
        return reason, ""
    return reason, f"df -h {path.rpartition('/')[0]}" if isinstance(path, str) else "df -h"


def list_frames(error: BaseException) -> list[str]:
    """The stack of an error, the innermost frame last."""
    import traceback  # noqa: PLC0415  costs start-up time, and defects are rare

    frames = traceback.extract_tb(error.__traceback__)
    return [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]


def build_install_command(extra: str) -> str:
    return build_pip_command(f"handrail[{extra}]")


def build_pip_command(*words: str) -> str:
    """The shell command that installs packages into the running environment.

    The `pip` on PATH often belongs to another environment. There, our name could fetch an unrelated package.
    """
    import shlex  # noqa: PLC0415  only a missing package needs the command
    from importlib.util import find_spec  # noqa: PLC0415

    python = sys.executable or "python3"
    pip = [python, "-m", "pip", "install"] if find_spec("pip") else ["uv", "pip", "install", "--python", python]
    return shlex.join([*pip, *words])
