"""What is wrong with a server, in words: short, with evidence, and without what nobody asked to read."""

from typing import TYPE_CHECKING

from handrail.protocol.text import escape_unprintable, truncate

if TYPE_CHECKING:
    from handrail.mcp.client.ends import CloseReason
    from handrail.mcp.client.secrets import Secrets
    from handrail.runtime.foreign.server_process import ServerProgram

_MAX_LINE_CHARS = 300
_MAX_PASSING_LINE_CHARS = 500
_LAST_LINES = 3


def render_short_line(text: str, longest: int = _MAX_LINE_CHARS) -> str:
    """The text on one line, with unprintable characters escaped, truncated."""
    return truncate(escape_unprintable(" ".join(text.split())[: longest + 1]), longest)


def render_progress_text(text: str, secrets: "Secrets") -> str:
    """What a server tells of how it goes on, for live views."""
    return render_short_line(secrets.redact(text), _MAX_PASSING_LINE_CHARS)


def describe_failure(error: BaseException, secrets: "Secrets") -> str:
    """What went wrong, by what was raised; of several at once, the first."""
    error = _first(error)
    name, said = type(error).__name__, render_short_line(secrets.redact(str(error)))
    if name == "ValidationError":
        return "it answers what the protocol does not know"
    if name in {"ConnectError", "ConnectTimeout"}:
        return f"it cannot be reached ({said or name})"
    return f"it failed ({said or name})"


def is_closed(error: BaseException) -> bool:
    """Whether it only says that the connection is over, and not why."""
    return str(_first(error)) == "Connection closed"


def describe_close_reason(end: "CloseReason", program: "ServerProgram | None", secrets: "Secrets") -> str:
    """Why a connection is over: how its program ended, where it did, and the last of what that said."""
    how = program.how_it_ended if program is not None else None
    reason = (end.reason if end.sure else None) or how or end.reason or "it ended"
    said = "; ".join(program.stderr_tail.splitlines()[-_LAST_LINES:]) if program is not None else ""
    return f"{reason}: {render_short_line(secrets.redact(said))}" if said else reason


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        held: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        error = held[0]
    return error
