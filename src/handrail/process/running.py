"""Runs a launch from its start to its end, and leaves nothing of it behind."""

import time
from collections.abc import Callable

from handrail.process.collecting import Collected
from handrail.process.control_group import ControlGroup
from handrail.process.following import Following
from handrail.process.pipes import Pipes
from handrail.process.ran import Ending, Ran
from handrail.process.starting import not_started, start
from handrail.process.tap import Tap
from handrail.process.tree import Tree
from handrail.process.watching import Watch
from handrail.sandbox.launch import Launch
from handrail.sandbox.limits import Limits
from handrail.sandbox.probing.control_groups import usable_parent

_NAMES: dict[Ending, str] = {"timeout": "time", "memory": "memory", "processes": "processes", "disk": "disk"}
"""The limits that end a command."""
_FILE_TOO_LARGE = 128 + 25


def run_launch(
    launch: Launch,
    *,
    limits: Limits,
    cancelled: Callable[[], bool],
    on_output: Callable[[bytes], None] | None = None,
    spill_folder: str,
    two_pipes: bool = False,
    confirm: Callable[[], None] | None = None,
) -> Ran:
    """Runs it to its end and closes it; ToolError when it cannot be started.

    `on_output` gets what is printed as it comes, and nothing (`b""`) now and then. `confirm` is called before the
    command begins: where it waits to be let, while its sandbox is made. What these or `cancelled` raise, and an
    interrupt, ends the command and goes on to the caller.
    """
    began = time.monotonic()
    with launch, ControlGroup(limits, usable_parent()) as group:
        launch.argv = group.joined(launch.argv)
        taps: list[Tap] = []
        try:
            with _pipes_of(launch, 1 + two_pipes) as pipes, Tree(launch) as tree:
                taps += [Tap(pipe, Collected(limits, spill_folder), on_output) for pipe in pipes.reading]
                _start(launch, tree, pipes, confirm)
                ending = _follow(launch, tree, taps, limits, began + limits.seconds, _asked(cancelled, on_output))
                # Before the last of the output is taken: nobody is to print, or change a file, after the result.
                gone = tree.end()
                for tap in taps:
                    tap.take_rest()
                return _ran(ending, tree, taps, time.monotonic() - began, group.fired(), gone=gone)
        except BaseException:
            for tap in taps:
                tap.collected.discard()
            raise


def _pipes_of(launch: Launch, count: int) -> Pipes:
    try:
        return Pipes(count)
    except OSError as error:
        raise not_started(error, launch) from None


def _start(launch: Launch, tree: Tree, pipes: Pipes, confirm: Callable[[], None] | None) -> None:
    if confirm is not None and not launch.waits:
        confirm()
    try:
        tree.start(lambda launch: start(launch, pipes))
    except (OSError, ValueError) as error:
        raise not_started(error, launch) from None
    pipes.hand_over()
    if launch.waits:
        if confirm is not None:
            confirm()
        launch.let_begin()


def _asked(cancelled: Callable[[], bool], on_output: Callable[[bytes], None] | None) -> Callable[[], bool]:
    def ask() -> bool:
        if on_output:
            on_output(b"")
        return cancelled()

    return ask


def _follow(
    launch: Launch, tree: Tree, taps: list[Tap], limits: Limits, until: float, cancelled: Callable[[], bool]
) -> Ending:
    watch = Watch(limits, program=tree.process_id, own_processes=launch.own_processes)
    try:
        return Following(tree, taps, watch, until, cancelled).to_the_end()
    finally:
        watch.close()


def _ran(ending: Ending, tree: Tree, taps: list[Tap], seconds: float, held_to: list[str], *, gone: bool) -> Ran:
    exit_code = tree.exit_code() if ending == "exit" else None
    fired = [
        *([_NAMES[ending]] if ending in _NAMES else []),
        *(["output"] if any(tap.collected.limited for tap in taps) else []),
        *(["file size"] if exit_code == _FILE_TOO_LARGE else []),
        *held_to,
    ]
    left = [] if gone else ["Something that the command started could not be ended; it may still be running."]
    return Ran(
        ending="failed" if ending == "exit" and exit_code is None else ending,
        exit_code=exit_code,
        seconds=seconds,
        output=taps[0].collected.printed(),
        errors=taps[1].collected.printed() if len(taps) > 1 else None,
        limits=tuple(dict.fromkeys(fired)),
        warnings=(*left, *(warning for tap in taps for warning in tap.collected.warnings)),
    )
