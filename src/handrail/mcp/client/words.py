"""What is wrong with a server, in words: short, with evidence, and without what nobody asked to read."""

from typing import TYPE_CHECKING

from handrail.settings.errors import plain

if TYPE_CHECKING:
    from handrail.mcp.client.ends import End
    from handrail.mcp.client.secrets import Secrets
    from handrail.runtime.server_programs import ServerProgram

_LONGEST = 300
_LONGEST_IN_PASSING = 500
_LAST_LINES = 3


def clipped(text: str, longest: int = _LONGEST) -> str:
    """The text on one line, with what a terminal could be misled by written out, and cut."""
    line = plain(" ".join(text.split())[: longest + 1])  # to write out what is cut anyway could take long
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def told_in_passing(text: str, secrets: "Secrets") -> str:
    """What a server tells of how it goes on, for live views."""
    return clipped(secrets.hidden(text), _LONGEST_IN_PASSING)


def wrong_words(error: BaseException, secrets: "Secrets") -> str:
    """What went wrong, by what was raised; of several at once, the first."""
    error = _first(error)
    name, said = type(error).__name__, clipped(secrets.hidden(str(error)))
    if name == "ValidationError":
        return "it answers what the protocol does not know"
    if name in {"ConnectError", "ConnectTimeout"}:
        return f"it cannot be reached ({said or name})"
    return f"it failed ({said or name})"


def is_closed(error: BaseException) -> bool:
    """Whether it only says that the connection is over, and not why."""
    return str(_first(error)) == "Connection closed"


def ending_words(end: "End", program: "ServerProgram | None", secrets: "Secrets") -> str:
    """Why a connection is over: how its program ended, where it did, and the last of what that said."""
    how = program.how_it_ended if program is not None else None
    reason = (end.reason if end.sure else None) or how or end.reason or "it ended"
    said = "; ".join(program.said.splitlines()[-_LAST_LINES:]) if program is not None else ""
    return f"{reason}: {clipped(secrets.hidden(said))}" if said else reason


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        held: tuple[BaseException, ...] = error.exceptions  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
        error = held[0]
    return error
