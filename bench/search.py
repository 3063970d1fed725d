"""find and grep against the bare program, verification, policy, journal and audit included.

The trees are 21,000 generated files, the installed packages, and this repository.
"""

import functools
import os
import random
import shutil
import string
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.measure import Row, Sample, alternate
from handrail import Handrail
from handrail.settings import Settings
from handrail.workspace.search.ripgrep import find_ripgrep

FILES = 21_000
FIND_RATIO = 1.15
GREP_RATIO = 1.25
RARE = "needle_in_the_hay"
EXPRESSION = r"n[aeiou]{2}dle_\w+_hay"
COMMON = "import"
COMMON_RATIO = 1.5
REAL_RATIO = 1.3
REAL_RARE, REAL_EXPRESSION = "__init_subclass__", r"__\w+_subclass__"


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        workspace = Path(folder, "workspace")
        make_tree(workspace)
        program = find_ripgrep(())
        if program is None:
            raise AssertionError("there is no rg to compare with")
        (Path(folder) / "bin").mkdir()
        program = str(shutil.copy(program, Path(folder, "bin")))  # one that lies in the searched tree is not run
        os.environ["PATH"] = f"{Path(folder, 'bin')}:{os.environ['PATH']}"
        for name, (tree, limits) in real_trees().items():
            yield from measure_tree(name, tree, Path(folder, name), program, limits)
        with Handrail(workspace, state_dir=Path(folder, "state"), settings=Settings()) as rail:
            bare = functools.partial(run, workspace, program)
            pipe = f"{program} --sort path {COMMON} | head -n 100"
            yield from compare(
                "find, few names",
                FIND_RATIO,
                lambda: bare("--files"),
                lambda: prove(rail.find("conftest.py").meta.total, 20),
            )
            yield from compare(
                "find, capped at 1,000",
                FIND_RATIO,
                lambda: bare("--files"),
                lambda: prove(rail.find("**/*").meta.returned, 1_000),
            )
            yield from compare(
                "grep, rare word", GREP_RATIO, lambda: bare(RARE), lambda: prove(rail.grep(RARE).meta.total, 7)
            )
            yield from compare(
                "grep, expression",
                GREP_RATIO,
                lambda: bare(EXPRESSION),
                lambda: prove(rail.grep(EXPRESSION).meta.total, 7),
            )
            yield from compare(
                "grep, common word capped at 100",
                COMMON_RATIO,
                lambda: shell(workspace, pipe),
                lambda: prove(rail.grep(COMMON).meta.returned, 100),
            )


def real_trees() -> dict[str, tuple[Path, tuple[float | None, ...]]]:
    """Trees, with the limits of names, rare words and common words. In a small one the constant part counts most."""
    development = Path(os.environ["HANDRAIL_BENCH_DEVELOPMENT"]).parent.parent
    packages = next(development.glob("lib/python*/site-packages"))
    repository = Path(__file__).resolve().parent.parent
    return {"packages": (packages, (FIND_RATIO, REAL_RATIO, COMMON_RATIO)), "repository": (repository, (None,) * 3)}


def measure_tree(
    name: str,
    tree: Path,
    state: Path,
    program: str,
    limits: tuple[float | None, ...],
    words: tuple[str, str] = (REAL_RARE, REAL_EXPRESSION),
) -> Iterator[Row]:
    find, rare, common = limits
    with Handrail(tree, state_dir=state, settings=Settings()) as rail:
        for kind, text in zip(("rare word", "expression"), words, strict=True):
            yield from compare(
                f"{name}: grep, {kind}",
                rare,
                functools.partial(run, tree, program, text),
                lambda text=text: prove(bool(rail.grep(text).meta.total), True),
            )
        yield from compare(
            f"{name}: grep, common word capped at 100",
            common,
            lambda: shell(tree, f"{program} --sort path {COMMON} | head -n 100"),
            lambda: prove(rail.grep(COMMON).meta.returned, 100),
        )
        yield from compare(
            f"{name}: find",
            find,
            lambda: run(tree, program, "--files", "--glob", "test_*.py"),
            lambda: prove(bool(rail.find("test_*.py").meta.total), True),
        )


def compare(name: str, limit: float | None, bare: Callable[[], None], ours: Callable[[], None]) -> Iterator[Row]:
    cases = {"bare": bare, "handrail": ours}
    alternate(cases, repetitions=3)  # warms caches
    samples: dict[str, Sample] = alternate(cases, repetitions=31)
    yield Row(f"{name}: rg", samples["bare"].median * 1e3, "ms")
    yield Row(f"{name}: handrail", samples["handrail"].median * 1e3, "ms")
    yield Row(f"{name}: handrail / rg", samples["handrail"].median / samples["bare"].median, "x", limit)


def prove(found: int | None, expected: int) -> None:
    """A fast wrong answer is no result."""
    if found != expected:
        raise AssertionError(f"{found} found instead of {expected}")


def run(workspace: Path, program: str, *arguments: str) -> None:
    command = [program, *arguments]
    subprocess.run(command, cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)


def shell(workspace: Path, command: str) -> None:
    subprocess.run(["sh", "-c", command], cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)


def make_tree(workspace: Path) -> None:
    """Packages of 21 files: words at random, the same ones every time; in a few of them what is searched for."""
    choice = random.Random(4)
    words = ["".join(choice.choices(string.ascii_lowercase, k=choice.randint(3, 9))) for _ in range(2_000)]
    (workspace / ".git").mkdir(parents=True)  # bare rg reads .gitignore only in a repository
    (workspace / ".gitignore").write_text("*.pyc\n__pycache__/\n")
    for number in range(FILES):
        package = workspace / f"pkg{number // 1_050:02}" / f"mod{number // 210 % 5}" / f"part{number // 21 % 10}"
        if number % 21 == 0:
            package.mkdir(parents=True)
        name = "conftest.py" if number % 1_050 == 0 else f"{words[number % 2_000]}_{number}.py"
        text = [f"import {choice.choice(words)}", *(" ".join(choice.choices(words, k=8)) for _ in range(60))]
        if number % 3_000 == 11:
            text.append(f"a {RARE} here")
        (package / name).write_text("\n".join(text) + "\n")
