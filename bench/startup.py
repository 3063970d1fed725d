"""What a script pays to ask for one call: `handrail call read` against an interpreter that does nothing."""

import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, alternate

TEXT = "The quick brown fox jumps over the lazy dog.\n" * 20
RATIO = 6.0


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        (workspace / "sample.txt").write_text(TEXT)
        environment = os.environ | {"HANDRAIL_STATE_DIR": str(Path(folder, "state"))}
        arguments = json.dumps({"path": "sample.txt"})
        read = [os.environ["HANDRAIL_BENCH_COMMAND"], "call", "read", arguments, "--workspace", str(workspace)]
        prove(read, environment)
        cases = {
            "python": functools.partial(spawn, [sys.executable, "-c", "pass"], environment),
            "read": functools.partial(spawn, read, environment),
        }
        alternate(cases, repetitions=5)  # warms caches
        samples = alternate(cases, repetitions=31)
    bare, call = samples["python"], samples["read"]
    yield Row("python -c pass, median", bare.median * 1e3, "ms")
    yield Row("handrail call read, median", call.median * 1e3, "ms")
    yield Row("handrail call read, p95", call.p95 * 1e3, "ms")
    yield Row("handrail call read / python -c pass", call.median / bare.median, "x", RATIO)


def prove(command: list[str], environment: dict[str, str]) -> None:
    """A fast error is no result: the command must answer with the file's text before it is timed."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0 or TEXT.splitlines()[0] not in done.stdout:
        sys.exit(f"{' '.join(command)} did not read the file (exit {done.returncode}): {done.stdout}{done.stderr}")


def spawn(command: list[str], environment: dict[str, str]) -> None:
    subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
