"""Pages of 200 lines of a 1 GiB and of a 5 MB file, and what they cost in memory."""

import functools
import resource
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Row, alternate, measure
from handrail import Handrail
from handrail.settings import Settings

GIBIBYTE = 1 << 30
LINE = b"%011d the quick brown fox jumps over the lazy dog and runs away again.\n"
PAGE_MILLISECONDS = 3.0
FIVE_MEGABYTES = 5_000_000
SMALL_PAGE_MILLISECONDS = 2.0
MEMORY_MEGABYTES = 64.0


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        block = b"".join(LINE % number for number in range(10_000))
        (workspace / "five.log").write_bytes((block * (FIVE_MEGABYTES // len(block) + 1))[:FIVE_MEGABYTES])
        lines = make_file(workspace / "large.log")
        before = peak_megabytes()
        with Handrail(workspace, state_dir=Path(folder, "state"), settings=Settings()) as rail:
            pages = functools.partial(page, rail)
            first_deep = measure(functools.partial(pages, lines * 3 // 4), 1)
            samples = alternate(
                {
                    "tail": functools.partial(tail, workspace / "large.log"),
                    "head page": functools.partial(pages, 1),
                    "end page": functools.partial(pages, -200),
                    "deep page": functools.partial(pages, lines // 2),
                    "5 MB, first lines": functools.partial(pages, 1, "five.log"),
                    "5 MB, last lines": functools.partial(pages, -200, "five.log"),
                },
                repetitions=31,
            )
        grown = peak_megabytes() - before
    yield Row("tail -n 200, median", samples["tail"].median * 1e3, "ms")
    yield Row("first lines, median", samples["head page"].median * 1e3, "ms", PAGE_MILLISECONDS)
    yield Row("last lines (offset -200), median", samples["end page"].median * 1e3, "ms", PAGE_MILLISECONDS)
    yield Row("first page by a deep line number", first_deep * 1e3, "ms")
    yield Row("later pages by a deep line number, median", samples["deep page"].median * 1e3, "ms", PAGE_MILLISECONDS)
    for name in ("5 MB, first lines", "5 MB, last lines"):
        yield Row(f"{name}, median", samples[name].median * 1e3, "ms", SMALL_PAGE_MILLISECONDS)
    yield Row("memory added at the peak", grown, "MB", MEMORY_MEGABYTES)


def make_file(path: Path) -> int:
    """A file of 1 GiB; how many lines it has."""
    block = b"".join(LINE % number for number in range(10_000))
    count = GIBIBYTE // len(block) + 1
    with path.open("wb") as out:
        for _ in range(count):
            out.write(block)
    return count * 10_000


def page(rail: Handrail, offset: int, path: str = "large.log") -> None:
    result = rail.read(path, offset=offset, limit=200)
    if result.meta.returned != 200:
        raise AssertionError(f"the page at {offset} has {result.meta.returned} lines: {result.summary}")


def tail(path: Path) -> None:
    subprocess.run(["tail", "-n", "200", str(path)], stdout=subprocess.DEVNULL, check=True)


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
