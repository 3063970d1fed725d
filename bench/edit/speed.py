"""An exact edit in 1 MB, against reading the file and writing it anew safely; the worst refusals; and long lines."""

import os
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.edit.worst import in_vain, worst
from bench.measure import Row, alternate, measure
from handrail import Handrail
from handrail.settings import Settings

SIZE = 1_000_000
BEYOND_MILLISECONDS = 3.0
REFUSAL_MILLISECONDS = 300.0
IN_VAIN_LINES = 5_000
EVERY_MILLISECONDS = 1_500.0
WORDS = ("price", "total", "count", "order", "shop", "item", "tax", "rate", "name", "user", "line", "page")


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        workspace.mkdir()
        with Handrail(workspace, mode="full", state_dir=Path(folder, "state"), settings=Settings()) as rail:
            yield from exact(rail, workspace)
            yield from refusal(rail, workspace)
            yield from long_lines(rail, workspace)
            yield from in_vain(rail, workspace, source(SIZE).split("\n")[:IN_VAIN_LINES])
            yield from worst(rail, workspace)


def exact(rail: Handrail, workspace: Path) -> Iterator[Row]:
    text = source(SIZE)
    middle = len(text) // 2
    at = text.index("def ", middle)
    for name in ("edited.py", "bare.py"):
        rail.write(name, f"{text[:at]}# turn 0 of the loop\n{text[at:]}")
    turns = iter(range(1_000_000))

    def edit() -> None:
        turn = next(turns)
        result = rail.edit("edited.py", f"# turn {turn} of the loop", f"# turn {turn + 1} of the loop")
        if not result.ok:
            raise AssertionError(f"a fast refusal is no result: {result.summary}")

    samples = alternate({"edit": edit, "bare": lambda: rewrite(workspace / "bare.py")}, repetitions=101)
    beyond = sorted(a - b for a, b in zip(samples["edit"].times, samples["bare"].times, strict=True))
    yield Row("read, write, fsync, rename of 1 MB, median", samples["bare"].median * 1e3, "ms")
    yield Row("rail.edit in 1 MB, median", samples["edit"].median * 1e3, "ms")
    yield Row("rail.edit beyond that, median", beyond[len(beyond) // 2] * 1e3, "ms", BEYOND_MILLISECONDS)


def rewrite(path: Path) -> None:
    """What every safe editor has to do: all bytes in, all bytes out beside it, on the disk, in its place."""
    data = path.read_bytes()
    temporary = path.with_name(".bare")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.write(descriptor, data)
    os.fsync(descriptor)
    os.close(descriptor)
    temporary.rename(path)


def refusal(rail: Handrail, workspace: Path) -> Iterator[Row]:
    """500 lines, every seventh of them changed, that are looked for in 5 MB."""
    text = source(5 * SIZE)
    (workspace / "large.py").write_text(text)
    lines = text.split("\n")[50_000:50_500]
    changed = "\n".join(f"{line} changed" if number % 7 == 0 else line for number, line in enumerate(lines))

    def refuse() -> None:
        error = rail.edit("large.py", changed, "something else").error
        if error is None or "Closest is lines 50001–50500" not in error.message:
            raise AssertionError(f"the refusal does not say where: {error}")

    times = sorted(measure(refuse, 1) for _ in range(15))
    yield Row("NO_MATCH of 500 lines in 5 MB, median", times[len(times) // 2] * 1e3, "ms", REFUSAL_MILLISECONDS)


def long_lines(rail: Handrail, workspace: Path) -> Iterator[Row]:
    """A refusal in 31 lines of a megabyte each, and every place of a line that is the whole file."""
    filling = "a b " * 250_000
    begins = "wholeline hit here halfone part of line wordrare "
    (workspace / "wide.txt").write_text(f"{begins}{filling}\n" * 24 + f"{filling}\n" * 7)
    wanted = "wholeline hit here\nhalfone part of line gone gone\nwordrare nope nope2 nope3\nzip zap zop\nzub zob zib"

    def refuse() -> None:
        error = rail.edit("wide.txt", wanted, "something else").error
        if error is None or error.code != "NO_MATCH":
            raise AssertionError(f"not the refusal that is measured: {error}")

    times = sorted(measure(refuse, 1) for _ in range(5))
    yield Row("NO_MATCH in 31 lines of 1 MB, median", times[len(times) // 2] * 1e3, "ms", REFUSAL_MILLISECONDS)
    (workspace / "minified.js").write_text(("x" + "y" * 299) * 40_000)
    letters = iter("xzxzxz")
    names = iter("zxzxzx")

    def every() -> None:
        result = rail.edit("minified.js", next(letters), next(names), replace_all=True)
        if result.data is None or result.data.replacements != 40_000:
            raise AssertionError(f"not the edit that is measured: {result.summary}")

    times = sorted(measure(every, 1) for _ in range(5))
    yield Row("replaceAll, 40,000 places in a line of 12 MB, median", times[2] * 1e3, "ms", EVERY_MILLISECONDS)


def source(size: int) -> str:
    """Text that looks like code, the same on every run."""
    chance = random.Random(4)
    lines: list[str] = []
    length = number = 0
    while length < size:
        number += 1
        words = chance.choices(WORDS, k=4)
        lines.append(
            f"def {words[0]}_{number}({words[1]}):\n    return {words[2]}({words[1]}, {number}) + {words[3]}\n"
        )
        length += len(lines[-1])
    return "\n".join(lines)
