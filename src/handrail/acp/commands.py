"""What the person can have done without the model: `/undo` and the like, typed in the place of a prompt."""

from acp.schema import AvailableCommand, AvailableCommandInput, AvailableCommandsUpdate, UnstructuredCommandInput

from handrail.acp.cards import format_code_block
from handrail.acp.contents import bound_text
from handrail.async_api import AsyncHandrail
from handrail.protocol.errors import ToolError, UsageError

CONTINUE = "continue"
"""This one is a turn: it goes on with the last, where that was cut off or waits."""
_COMMANDS: dict[str, tuple[str, str | None]] = {
    "undo": (
        "Take back the last change in this workspace, or the one of this number",
        "number of a change, or nothing",
    ),
    "redo": ("Take back the last undo", None),
    "diff": ("Show the last change, or the one of this number", "number of a change, or nothing"),
    CONTINUE: ("Go on with the last turn, where it was cut off or waits for you", None),
}


def build_commands_update() -> AvailableCommandsUpdate:
    """What the editor offers behind a slash."""
    commands = [
        AvailableCommand(
            name=name,
            description=told,
            input=AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None,
        )
        for name, (told, hint) in _COMMANDS.items()
    ]
    return AvailableCommandsUpdate(session_update="available_commands_update", available_commands=commands)


def parse_command(prompt: str) -> tuple[str, str] | None:
    """The command and its argument, where a prompt is one."""
    name, _, argument = prompt.strip().partition(" ")
    return (name[1:], argument.strip()) if name.startswith("/") and name[1:] in _COMMANDS else None


async def run_command(rail: AsyncHandrail, name: str, argument: str) -> str:
    """Does it; what the person is told, as Markdown."""
    try:
        number = _number(argument)
        if name == "diff":
            diff = await rail.stored_diff(number)
            return f"Change {diff.numbers[0]}:\n\n{format_code_block(bound_text(diff.text))}\n"
        result = await (rail.undo(number) if name == "undo" else rail.redo())
    except (ToolError, UsageError) as error:
        return f"{error}\n"
    return f"{result.error.message if result.error is not None else result.summary}\n"


def _number(argument: str) -> int | None:
    if argument and not (argument.isascii() and argument.isdigit() and len(argument) < 12):
        raise UsageError(f"a change has a number, not {argument[:80]!r}. Nothing was done.")
    return int(argument) if argument else None
