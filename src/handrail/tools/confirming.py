"""Makes the sandbox of a command while it is still looked what must be hidden from it.

Looking through a large tree takes as long as half a sandbox does. Mostly there is what was there the last time: so the
sandbox is made for that, and the command waits in it until somebody has looked. Where something else is there, nothing
was run, and it is made anew.
"""

from collections.abc import Callable
from typing import TypeVar

from handrail.policy.confinement import Runnable
from handrail.sandbox.confinement import Confinement
from handrail.tools.commands import Commands
from handrail.tools.contract import CommandContext
from handrail.tools.running import Confirm, command_of, folder_of

Result = TypeVar("Result")


class _OutdatedError(Exception):
    """The sandbox was made for what is not so any more. Nothing was run in it."""


def confined(
    context: CommandContext,
    todo: Runnable,
    timeout_ms: int | None,
    commands: Commands,
    work: Callable[[Confinement, Confirm | None], Result],
) -> Result:
    """Does work that runs the command in a confinement, and must let `Confirm` agree before it begins, where there is
    one. Up to then it may be broken off and done again."""
    cwd = folder_of(context, command_of(context).cwd)
    expected = commands.expected_confinement(context, cwd, timeout_ms, todo)
    if expected is not None:

        def confirm() -> None:
            context.meanwhile()
            if commands.confinement(context, cwd, timeout_ms, todo) != expected:
                raise _OutdatedError

        try:
            return work(expected, confirm)
        except _OutdatedError:
            pass
    return work(commands.confinement(context, cwd, timeout_ms, todo), None)
