"""Makes the sandbox of a command while it is still looked what must be hidden from it.

Looking through a large tree takes as long as half a sandbox does. Mostly there is what was there the last time: so the
sandbox is made for that, and the command waits in it until somebody has looked. Where something else is there, nothing
was run, and it is made anew.
"""

from collections.abc import Callable
from typing import TypeVar

from handrail.policy.parse import ParsedCommand
from handrail.sandbox.confinement import SandboxProfile
from handrail.tools.commands import CommandEnvironment
from handrail.tools.contract import CommandContext
from handrail.tools.running import Confirm, require_command_fact, resolve_cwd

Result = TypeVar("Result")


class _OutdatedError(Exception):
    """The sandbox was made for what is not so any more. Nothing was run in it."""


def run_with_speculative_sandbox(
    context: CommandContext,
    todo: ParsedCommand,
    timeout_ms: int | None,
    commands: CommandEnvironment,
    work: Callable[[SandboxProfile, Confirm | None], Result],
) -> Result:
    """Does work that runs the command with a sandbox profile, and must let `Confirm` agree before it begins, where
    there is one. Up to then it may be broken off and done again."""
    cwd = resolve_cwd(context, require_command_fact(context).cwd)
    expected = commands.build_expected_profile(context, cwd, timeout_ms, todo)
    if expected is not None:

        def confirm() -> None:
            context.while_waiting()
            if commands.build_profile(context, cwd, timeout_ms, todo) != expected:
                raise _OutdatedError

        try:
            return work(expected, confirm)
        except _OutdatedError:
            pass
    return work(commands.build_profile(context, cwd, timeout_ms, todo), None)
