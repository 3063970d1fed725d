"""Runs a launch from its start to its end, and leaves nothing of it behind."""

import time
from collections.abc import Callable

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.process.collecting import OutputBuffer
from handrail.process.following import RunLoop
from handrail.process.pipes import Pipes
from handrail.process.ran import CommandResult, Ending
from handrail.process.starting import build_start_error, start
from handrail.process.tap import Tap
from handrail.process.tree import ProcessTree
from handrail.process.watching import UsageMonitor
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import ResourceLimits

_NAMES: dict[Ending, str] = {"timeout": "time", "memory": "memory", "processes": "processes", "disk": "disk"}
"""The limits that end a command."""
_FILE_TOO_LARGE = 128 + 25


def run_launch(
    launch: Launch,
    *,
    limits: ResourceLimits,
    cancelled: Callable[[], bool],
    on_output: Callable[[bytes], None] | None = None,
    spill_folder: str,
    two_pipes: bool = False,
    confirm: Callable[[], None] | None = None,
) -> CommandResult:
    """Runs it to its end and closes it; ToolError when it cannot be started.

    `on_output` gets what is printed as it comes, and nothing (`b""`) now and then. `confirm` is called before the
    command begins: where it waits to be let, while its sandbox is made. What these or `cancelled` raise, and an
    interrupt, ends the command and goes on to the caller.
    """
    began = time.monotonic()
    with launch, ControlGroup(find_parent_group(), memory=limits.memory, threads=limits.threads) as group:
        launch.argv = group.wrap_argv(launch.argv)
        taps: list[Tap] = []
        try:
            with _pipes_of(launch, 1 + two_pipes) as pipes, ProcessTree(launch) as tree:
                taps += [Tap(pipe, OutputBuffer(limits, spill_folder), on_output) for pipe in pipes.reading]
                _start(launch, tree, pipes, confirm)
                ending = _follow(launch, tree, taps, limits, began + limits.seconds, _asked(cancelled, on_output))
                # Before the last of the output is taken: nobody is to print, or change a file, after the result.
                gone = tree.end()
                for tap in taps:
                    tap.take_rest()
                return _ran(ending, tree, taps, time.monotonic() - began, group.list_fired_limits(), gone=gone)
        except BaseException:
            for tap in taps:
                tap.collected.discard()
            raise


def _pipes_of(launch: Launch, count: int) -> Pipes:
    try:
        return Pipes(count)
    except OSError as error:
        raise build_start_error(error, launch) from None


def _start(launch: Launch, tree: ProcessTree, pipes: Pipes, confirm: Callable[[], None] | None) -> None:
    if confirm is not None and not launch.held:
        confirm()
    try:
        tree.start(lambda launch: start(launch, pipes))
    except (OSError, ValueError) as error:
        raise build_start_error(error, launch) from None
    pipes.close_child_ends()
    if launch.held:
        if confirm is not None:
            confirm()
        launch.release()


def _asked(cancelled: Callable[[], bool], on_output: Callable[[bytes], None] | None) -> Callable[[], bool]:
    def ask() -> bool:
        if on_output:
            on_output(b"")
        return cancelled()

    return ask


def _follow(
    launch: Launch,
    tree: ProcessTree,
    taps: list[Tap],
    limits: ResourceLimits,
    until: float,
    cancelled: Callable[[], bool],
) -> Ending:
    watch = UsageMonitor(limits, program=tree.process_id, own_processes=launch.own_processes)
    try:
        return RunLoop(tree, taps, watch, until, cancelled).run()
    finally:
        watch.close()


def _ran(
    ending: Ending, tree: ProcessTree, taps: list[Tap], seconds: float, held_to: list[str], *, gone: bool
) -> CommandResult:
    exit_code = tree.exit_code() if ending == "exit" else None
    fired = [
        *([_NAMES[ending]] if ending in _NAMES else []),
        *(["output"] if any(tap.collected.limited for tap in taps) else []),
        *(["file size"] if exit_code == _FILE_TOO_LARGE else []),
        *held_to,
    ]
    left = [] if gone else ["Something that the command started could not be ended; it may still be running."]
    return CommandResult(
        ending="failed" if ending == "exit" and exit_code is None else ending,
        exit_code=exit_code,
        seconds=seconds,
        output=taps[0].collected.printed(),
        errors=taps[1].collected.printed() if len(taps) > 1 else None,
        limits=tuple(dict.fromkeys(fired)),
        warnings=(*left, *(warning for tap in taps for warning in tap.collected.warnings)),
    )
