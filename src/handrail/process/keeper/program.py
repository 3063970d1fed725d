"""The keeper: starts the command, says how that went, keeps it, and writes down how it ended."""

import contextlib
import json
import os
import select
import signal
import time

from handrail.kernel.cgroup import ControlGroup, find_parent_group
from handrail.kernel.process import TERMINATE, SignalQueue, reset_signals
from handrail.kernel.procfs import find_process, read_entry
from handrail.process.keeper.files import BOOT, Json, remove, write_crash, write_end, write_record
from handrail.process.keeper.keeping import KeeperLoop, take_printed
from handrail.process.keeper.plan import KeeperPlan
from handrail.process.keeper.signalling import list_live_descendants
from handrail.process.keeper.spawning import spawn
from handrail.process.keeper.terminal import Terminal
from handrail.process.keeper.writing_log import LogWriter
from handrail.process.tree import ProcessTree
from handrail.sandbox.launch import Launch

_SANDBOX_START_SECONDS = 20.0
"""Seconds for the sandbox to be made, on a machine that has much else to do."""
_MAX_REST_BYTES = 1 << 24


def run(descriptor: int) -> None:
    """Keeps what the plan behind the descriptor says, to its end."""
    plan = KeeperPlan.read(descriptor)
    for own in (plan.status, plan.lifeline, plan.folder, plan.ready_fd):
        os.set_inheritable(own, False)
    reset_signals()
    for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    try:
        _keep(plan, SignalQueue((TERMINATE,)))
    except BaseException as error:
        number = error.errno if isinstance(error, OSError) else None
        _tell(plan, {"errno": number or 0, "error": str(error)})
        write_crash(plan.folder)


def _keep(plan: KeeperPlan, signals: SignalQueue) -> None:
    with (
        _launch_of(plan) as launch,
        ControlGroup(find_parent_group(), memory=plan.memory, threads=plan.threads) as group,
        contextlib.ExitStack() as opened,
    ):
        launch.argv = group.wrap_argv(launch.argv)
        terminal = opened.enter_context(contextlib.closing(Terminal()))
        if plan.proxy is not None:
            from handrail.process.keeper.network import serve_network  # noqa: PLC0415  few have one

            opened.enter_context(serve_network(plan.folder, plan.proxy[0], plan.proxy[1:]))
        with ProcessTree(launch) as tree:
            tree.start(lambda launch: spawn(launch, terminal))
            if not _has_begun(tree, own_processes=plan.own_processes):
                tree.end()
                _tell(plan, {"said": _printed(terminal)})
                return
            _keep_on(plan, tree, terminal, signals, group)


def _keep_on(
    plan: KeeperPlan, tree: ProcessTree, terminal: Terminal, signals: SignalQueue, group: ControlGroup
) -> None:
    log = LogWriter(plan.folder, head=plan.head, kept=plan.kept, segment=plan.segment)
    keeping = KeeperLoop(plan, tree, terminal, log, signals)
    write_record(plan.folder, _record(plan, tree))
    if not _tell(plan, {"pid": os.getpid()}):  # nobody knows of it, and nobody ever will
        tree.end()
        remove(plan.folder, plan.record["id"])
        return
    keeping.run()
    gone = tree.end()
    terminal.hang_up()
    _take_rest(terminal, log)
    write_end(plan.folder, _end(keeping, tree, log, group.list_fired_limits(), gone=gone))


def _launch_of(plan: KeeperPlan) -> Launch:
    return Launch(
        tier=plan.tier,
        argv=tuple(map(os.fsdecode, plan.arguments)),
        environment={os.fsdecode(name): os.fsdecode(value) for name, value in plan.environment.items()},
        inherited=tuple(plan.inherited),
        status=plan.status,
        lifeline=plan.lifeline,
        own_processes=plan.own_processes,
    )


def _has_begun(tree: ProcessTree, *, own_processes: bool) -> bool:
    """Waits until the command's own program runs, or has run; whether it came to that."""
    poller = select.poll()
    poller.register(tree.status.descriptor, select.POLLIN)
    until = time.monotonic() + _SANDBOX_START_SECONDS
    while not tree.status.over and time.monotonic() < until:
        first = tree.status.child_pid
        if tree.status.exit_code is not None or (first and not (own_processes and _still_sets_up(tree, first))):
            return True
        poller.poll(1 if first else 100)
        tree.read_status()
    return tree.status.exit_code is not None


def _still_sets_up(tree: ProcessTree, first: int) -> bool:
    """Whether there is nobody in the namespace but bubblewrap, which may yet fail to make it."""
    names = (read_entry(f"/proc/{process.number}/comm") for process in list_live_descendants(tree.process_id, first))
    return all(name in {b"bwrap\n", b""} for name in names)


def _record(plan: KeeperPlan, tree: ProcessTree) -> Json:
    with open(BOOT, encoding="ascii") as file:
        boot = file.read().strip()
    first = tree.status.child_pid or 0
    return {
        **plan.record,
        "started": time.time(),
        "boot": boot,
        "keeper": _named(os.getpid()),
        "program": _named(tree.process_id),
        "first": _named(first),
        "own_processes": plan.own_processes,
        "proxy": plan.proxy[0] if plan.proxy else None,
    }


def _named(process: int) -> list[int]:
    """A process so that it cannot be taken for another: by its number and since when it runs."""
    found = find_process(process)
    return [process, found.started if found else 0]


def _end(keeping: KeeperLoop, tree: ProcessTree, log: LogWriter, held_to: list[str], *, gone: bool) -> Json:
    reason = keeping.reason or (held_to[0] if held_to else None)
    return {
        "ended": time.time(),
        "exit_code": tree.exit_code(),
        "reason": reason,
        "size": log.size,
        "trouble": log.trouble,
        "gone": gone,
    }


def _take_rest(terminal: Terminal, log: LogWriter) -> None:
    """What is still in the terminal; no more than that, somebody who got away may print for ever."""
    enough = log.size + _MAX_REST_BYTES
    while log.size < enough and take_printed(terminal, log):
        pass
    log.close()


def _printed(terminal: Terminal) -> str:
    terminal.hang_up()
    return terminal.read(4096).decode("utf-8", "replace")


def _tell(plan: KeeperPlan, document: Json) -> bool:
    """Says how the start went; whether somebody is there who listens."""
    told, plan.ready_fd = plan.ready_fd, -1
    if told < 0:
        return False
    try:
        return os.write(told, json.dumps(document).encode() + b"\n") > 0
    except OSError:
        return False
    finally:
        os.close(told)
