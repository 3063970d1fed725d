"""What a person waits for in `handrail run` besides the model: from its first token to its first words on stdout, and
from the command line to the first question. The model is one that says when it speaks; all else is what a run does."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bench.measure import Row, Sample

if TYPE_CHECKING:
    from handrail.models.base import ModelRequest, StreamPiece

REPETITIONS = 21
LIMIT = 50.0
WORDS = "Hello."


class Waited(NamedTuple):
    """What one run took, in seconds."""

    asked: float
    """From the start of the process to the model's first token."""
    seen: float
    """From there to its words in the pipe."""


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        environment = os.environ | {"HANDRAIL_STATE_DIR": str(Path(folder, "state")), "CI": "1"}
        measured = [measure(workspace, environment) for _ in range(REPETITIONS + 1)][1:]
    seen = Sample(tuple(one.seen for one in measured))
    yield Row("first words after the model's first token, median", seen.median * 1e3, "ms")
    yield Row("first words after the model's first token, p95", seen.p95 * 1e3, "ms", LIMIT)
    yield Row(
        "from the start to the first question, median", statistics.median(one.asked for one in measured) * 1e3, "ms"
    )


def measure(workspace: Path, environment: dict[str, str]) -> Waited:
    """Runs it once. The clock is the same for all processes of a machine."""
    begun = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "bench.run", str(workspace)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        if process.stdout is None or process.stderr is None:
            raise AssertionError("both are pipes")
        first = os.read(process.stdout.fileno(), 1)
        seen = time.monotonic()
        out, err = process.communicate(timeout=60)
    if process.returncode != 0 or (first + out).decode() != f"{WORDS}\n":
        sys.exit(f"the run did not say its words (exit {process.returncode}): {first + out!r} {err.decode()}")
    spoken = float(next(line for line in err.decode().splitlines() if line.startswith("token ")).split()[1])
    return Waited(spoken - begun, seen - spoken)


class Timed:
    """A model that notes when it says its first word."""

    name = "bench:timed"
    window = 200_000

    async def stream(self, request: "ModelRequest") -> "AsyncIterator[StreamPiece]":  # noqa: ARG002  it always says the same
        from handrail.models.base import Completion, TextPiece  # noqa: PLC0415  only in the process that is measured
        from handrail.protocol.messages import TextPart  # noqa: PLC0415

        os.write(2, f"token {time.monotonic()}\n".encode())
        yield TextPiece(WORDS)
        yield Completion(parts=(TextPart(text=WORDS),), finish="stop")

    async def close(self) -> None:
        """There is nothing to let go of."""


def main(workspace: str) -> int:
    """The process that is measured: `handrail run`, but for who the model is."""
    from handrail.cli.commands.run import run  # noqa: PLC0415
    from handrail.cli.usage import parse_arguments  # noqa: PLC0415  the other process needs none of it

    options = parse_arguments("run", ["hello", "--workspace", workspace, "--model", "scripted:bench", "-q"])
    if options is None:
        raise AssertionError("these are options of run")
    return run(options, Timed())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
