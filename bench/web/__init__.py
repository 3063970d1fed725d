"""The web console in Chromium: size, first paint, scrolling through a long conversation."""

import gzip
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row
from bench.server import serve

STEPS = 1_250
"""Of the task. Each is about four events."""
SIZE_LIMIT, PAINT_LIMIT, FRAME_LIMIT = 400.0, 1_000.0, 20.0
_IN_CHROMIUM = {
    "paint": ("first paint", "ms", PAINT_LIMIT),
    "events": ("events of the conversation", "", None),
    "mean": ("scrolling: time of a frame, mean", "ms", FRAME_LIMIT),
    "p95": ("scrolling: time of a frame, p95", "ms", None),
}
"""The name, unit and limit of each value of `bench.web.window`."""


def rows() -> Iterator[Row]:
    yield Row("gzipped files", measure_size(), "kB", SIZE_LIMIT)
    if find_chromium() is None:
        for name, unit, limit in _IN_CHROMIUM.values():
            yield Row(name, None, unit, limit, "needs Chromium (Debian: apt-get install chromium)")
        return
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder, serve(folder, STEPS, 0) as served:
        # Playwright is a tool of development.
        command = [os.environ["HANDRAIL_BENCH_DEVELOPMENT"], "-P", "-m", "bench.web.window", str(served.port)]
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    found = json.loads(done.stdout)
    for key, (name, unit, limit) in _IN_CHROMIUM.items():
        yield Row(name, found[key], unit, limit)


def find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser")


def measure_size() -> float:
    from handrail.server.console_files import FOLDER  # noqa: PLC0415  needs the extra server

    files = [path for path in Path(FOLDER).rglob("*") if path.is_file() and path.suffix not in {".md", ".sha256"}]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1e3
