"""Errors of commands for a person: the failure, then one command."""

from handrail.cli.exits import FAILED, INFRASTRUCTURE, USAGE, CommandFailed
from handrail.cli.output import print_error
from handrail.cli.parser import COMMANDS
from handrail.protocol.errors import ErrorInfo, HandrailError, StoreError, ToolError
from handrail.terminal.call_lines import describe_to_person
from handrail.terminal.error_text import describe_tool_error


def print_tool_error(
    error: ErrorInfo | ToolError, tool: str, arguments: object = None, *, advice: str = "", mode: str | None = None
) -> None:
    """Prints why a call failed. `advice`: what would let it run. `mode`: the mode that the person named."""
    text, then = describe_tool_error(error, tool, arguments, advice=advice, mode=mode)
    print_error(text, f"handrail help {tool}" if error.code == "INVALID_ARGUMENT" and tool in COMMANDS else then)


def describe_error(error: CommandFailed | HandrailError | ToolError) -> tuple[str, str, int]:
    """The text, the next step if it is known, and the exit code of an error outside of a call."""
    match error:
        case CommandFailed():
            return str(error), error.then, error.code
        case StoreError():
            return *error.describe(), INFRASTRUCTURE
        case ToolError():
            return describe_to_person(error), "", FAILED
        case _:
            return str(error), error.then, USAGE


def print_dialect_error(error: ErrorInfo, dialect: str, *, advice: str = "") -> None:
    """Prints why a call of a dialect failed, in the dialect's words. Its arguments have names of their own."""
    denied = error.code in {"POLICY_DENIED", "PERMISSION_DENIED"}
    command = "handrail policy modes" if denied else f"handrail tools --dialect {dialect}"
    print_error(" ".join((describe_to_person(error), advice)).rstrip(), command)
