"""A command through exec, policy, journal and audit included: `true` against bare bubblewrap with the same mounts and
against other projects' sandboxes, and 200 MB of output against `subprocess` with a reader that keeps as little."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from bench.bare_bubblewrap import bare_command, minimal_command
from bench.measure import Row, alternate
from bench.peer_sandboxes import found_peers
from handrail import Handrail
from handrail.settings import Settings
from handrail.settings.model import Sandbox

TRUE_RATIO = 1.35
PEER_RATIO = 0.5
OUTPUT_RATIO = 1.25
UNPROMPTED_MILLISECONDS = 25.0
"""What a command may take longer if its preview answers the prompt."""
PROVEN, UNASKED = "true", "wait"
"""As little work; that nothing is changed is proven of the first only."""
SIZE = 200_000_000
PRODUCERS = {
    "seq": (f"seq 100000000 {100_000_000 + SIZE // 10 - 1}", OUTPUT_RATIO),
    "/dev/zero": (f"head -c {SIZE} /dev/zero", None),
}
"""One process each: with a second one, the result depends on who gets which processor. The first makes what it prints,
as programs do; the second shows what it costs to keep 64 MB of it, where nothing else costs anything."""
KEPT = 64 * 1024
PIECE = 1 << 18


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace, state = Path(folder, "workspace"), Path(folder, "state")
        workspace.mkdir()
        settings = Settings(sandbox=Sandbox(least=2))
        with Handrail(workspace, mode="ask", state_dir=state, settings=settings) as rail:
            yield from unprompted(rail, workspace)
        with Handrail(workspace, mode="full", state_dir=state, settings=settings) as rail:
            yield from nothing_at_all(rail, workspace, state)
            for name, (command, limit) in PRODUCERS.items():
                yield from much_output(rail, workspace, name, command, limit)


def nothing_at_all(rail: Handrail, workspace: Path, state: Path) -> Iterator[Row]:
    roots = tuple(root.path for root in rail._session.workspace.roots)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    cases: dict[str, Callable[[], object]] = {
        "minimal bubblewrap": minimal_command(),
        "bare, read-only": bare_command(roots, state, "proven"),
        "exec, proven": lambda: succeed(rail, PROVEN),
        "bare, writable": bare_command(roots, state, "unasked"),
        "exec, in a layer": lambda: succeed(rail, UNASKED),
    }
    alternate(cases, repetitions=5)  # warms caches
    medians = {name: sample.median for name, sample in alternate(cases, repetitions=101).items()}
    for name, taken in medians.items():
        yield Row(f"true: {name}", taken * 1e3, "ms")
    yield Row("true: exec, proven / bare", medians["exec, proven"] / medians["bare, read-only"], "x", TRUE_RATIO)
    # No limit here either: the mounts of the allow-list alone take 1.4 to 1.8 times as long as one of all of /.
    yield Row("true: exec, proven / minimal", medians["exec, proven"] / medians["minimal bubblewrap"], "x")
    # No limit here: what a layer may cost is what bench/layers is about.
    yield Row("true: exec, in a layer / bare", medians["exec, in a layer"] / medians["bare, writable"], "x")
    yield from others(cases["exec, in a layer"], found_peers(workspace))


def unprompted(rail: Handrail, workspace: Path) -> Iterator[Row]:
    """A command that `ask` would ask about, but for its preview, which changed nothing."""

    def keep() -> None:
        if (by := rail.exec(UNASKED).meta.answered_by) != "preview":
            raise AssertionError(f"{UNASKED}: answered by {by}")

    def command() -> None:
        shell = ["bash", "--noprofile", "--norc", "-c", UNASKED]
        subprocess.run(shell, cwd=workspace, stdin=subprocess.DEVNULL, capture_output=True, check=True)

    cases: dict[str, Callable[[], object]] = {"the command": command, "exec": keep}
    alternate(cases, repetitions=5)
    medians = {name: sample.median for name, sample in alternate(cases, repetitions=51).items()}
    over = (medians["exec"] - medians["the command"]) * 1e3
    yield Row("unprompted: exec, over the command itself", over, "ms", UNPROMPTED_MILLISECONDS)


def others(exec_case: Callable[[], object], peers: Mapping[str, Callable[[], object]]) -> Iterator[Row]:
    if not peers:
        print("bench: no other sandbox is installed: codex and srt are not compared", file=sys.stderr)
        return
    medians = {name: sample.median for name, sample in alternate({"exec": exec_case, **peers}, repetitions=15).items()}
    for name in peers:
        yield Row(f"true: {name}", medians[name] * 1e3, "ms")
        yield Row(f"true: exec / {name}", medians["exec"] / medians[name], "x", PEER_RATIO)


def much_output(rail: Handrail, workspace: Path, name: str, command: str, limit: float | None) -> Iterator[Row]:
    cases: dict[str, Callable[[], object]] = {
        "subprocess": lambda: bounded(workspace, command),
        "exec": lambda: succeed(rail, command),
    }
    alternate(cases, repetitions=1)
    medians = {case: sample.median for case, sample in alternate(cases, repetitions=9).items()}
    yield Row(f"200 MB, {name}: subprocess", medians["subprocess"] * 1e3, "ms")
    yield Row(f"200 MB, {name}: exec", medians["exec"] * 1e3, "ms")
    yield Row(f"200 MB, {name}: exec / subprocess", medians["exec"] / medians["subprocess"], "x", limit)


def succeed(rail: Handrail, command: str) -> None:
    """A fast failure is no result, nor one without the sandbox that is meant."""
    result = rail.exec(command)
    used = result.meta.sandbox
    if result.data is None or result.data.exit_code != 0 or used is None or used.tier < 2:
        raise AssertionError(f"{command}: {result.summary} {result.error}")


def bounded(workspace: Path, command: str) -> None:
    """What a careful caller writes: the beginning and the end are kept, the rest is read and dropped."""
    head, tail, total = b"", b"", 0
    shell = ["bash", "--noprofile", "--norc", "-c", command]
    with subprocess.Popen(
        shell, cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0
    ) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), PIECE):
            total += len(piece)
            if len(head) < KEPT:
                head += piece[: KEPT - len(head)]
            tail = (tail + piece)[-KEPT:]
    if total != SIZE or process.returncode != 0:
        raise AssertionError(f"{command}: {total} bytes, exit code {process.returncode}")
