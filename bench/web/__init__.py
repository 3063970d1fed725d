"""The web console in Chromium: size, first paint, scrolling through a long conversation."""

import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row
from bench.server import serve

STEPS = 1_250
"""Of the task. Each is about four events."""
SIZE_LIMIT, PAINT_LIMIT, FRAME_LIMIT = 400.0, 1_000.0, 20.0


def rows() -> Iterator[Row]:
    yield Row("gzipped files", measure_size(), "kB", SIZE_LIMIT)
    if shutil.which("chromium") is None:
        print("bench: the rest needs Chromium (Debian: apt-get install chromium)", file=sys.stderr)
        return
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder, serve(folder, STEPS, 0) as served:
        # Playwright is a tool of development.
        command = [os.environ["HANDRAIL_BENCH_DEVELOPMENT"], "-P", "-m", "bench.web.window", str(served.port)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    yield Row("first paint", found["paint"], "ms", PAINT_LIMIT)
    yield Row("events of the conversation", found["events"], "")
    yield Row("scrolling: time of a frame, mean", found["mean"], "ms", FRAME_LIMIT)
    yield Row("scrolling: time of a frame, p95", found["p95"], "ms")


def measure_size() -> float:
    from handrail.server.console_files import FOLDER  # noqa: PLC0415  needs the extra server

    files = [path for path in Path(FOLDER).rglob("*") if path.is_file() and path.suffix not in {".md", ".sha256"}]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1e3
