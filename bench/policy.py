"""Deciding about a command from facts that are there, against the standard library splitting it into words."""

import random
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from bench.measure import Row, measure
from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.policy.parse import parse_command
from handrail.protocol.decisions import CommandFact, Facts, PathFact
from handrail.runtime.facts import collect_command_facts
from handrail.tools.exec.spec import EXEC
from handrail.workspace.workspace import Workspace

SIMPLE = (
    "ls -la src", "git status", "git log --oneline -n 5", "cat README.md", "grep -rn TODO src --include='*.py'",
    "find . -name '*.py' -not -path './build/*'", "head -20 src/a.py", "wc -l src/a.py", "rm build/a.o",
    "pytest -q tests", "python3 x.py", "mkdir -p build/x", "git diff HEAD~1 -- src", "sed -n 1,20p a.py",
)  # fmt: skip
FIRST = (
    "git status", "git diff", "ls -la", "cat README.md", "grep -rn TODO src", "find . -name '*.py'",
    "head -20 src/a.py", "wc -l src/a.py", "rm build/a.o", "pytest -q tests",
)  # fmt: skip
LARGEST = 8192
ROUNDS = 300
SIMPLE_MICROSECONDS = 50.0
LARGE_MICROSECONDS = 1_000.0
FIRST_MICROSECONDS = 1_500.0
FIRST_ROUNDS = 5


def rows() -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder, Workspace(folder) as workspace:
        simple = {text: collect_command_facts(workspace, text, tier=2) for text in SIMPLE}
        large = {name: collect_command_facts(workspace, text, tier=2) for name, text in large_commands()}
    times = [_decided(facts) for _ in range(ROUNDS) for facts in simple.values()]
    words = [measure(lambda text=text: shlex.split(text), 1) for _ in range(ROUNDS) for text in SIMPLE]
    yield Row("a simple command, median", statistics.median(times) * 1e6, "µs", SIMPLE_MICROSECONDS)
    yield Row("a simple command / shlex.split", statistics.median(times) / statistics.median(words), "x")
    first = statistics.median(_measure_fresh_process() for _ in range(FIRST_ROUNDS))
    yield Row("the first ten commands of a process", first * 1e6, "µs", FIRST_MICROSECONDS)
    for name, facts in large.items():
        taken = statistics.median(_decided(facts) for _ in range(ROUNDS // 5))
        yield Row(f"8 KB of {name}, median", taken * 1e6, "µs", LARGE_MICROSECONDS)


def large_commands() -> Iterator[tuple[str, str]]:
    """Texts of 8 KB that keep the lexer, the tables and the paths busy, each up to its limits."""
    chance = random.Random(5)
    names = ["".join(chance.choices("abcdefgh", k=18)) for _ in range(390)]
    yield "one word", f"grep {'a' * (LARGEST - 6)}"
    yield "quoted text", f"echo '{'it is $x ' * 900}'"[: LARGEST - 1] + "'"
    yield "paths", f"cat {' '.join(names)}"
    yield "paths in folders", f"cat {' '.join(f'{name[:9]}/{name[9:]}' for name in names)}"
    yield "commands", " && ".join(f"grep -rn {'a' * 230} src/{name}" for name in names[:29])
    yield "words, too many", "echo " + "w " * 4000
    yield "commands, too many", "ls;" * 2700
    yield "quotes", "echo " + "''\"\"" * 2040


def decide_first_commands() -> None:
    """Parse and decide ten commands, each with its facts."""
    for text in FIRST:
        uses = parse_command(text, ".", ()).path_uses()
        paths = tuple(PathFact(path=use.path, access=use.access, kind="file", real=use.path) for use in uses)
        decide(EXEC, None, Facts(paths=paths, command=CommandFact(text=text, tier=2)), PolicyConfig("ask"))


def _measure_fresh_process() -> float:
    """Seconds for the first commands of a process that has imported the tables."""
    program = (
        "from bench import measure, policy; from handrail.policy.programs.registry import build_registry\n"
        "import handrail.policy.commands; build_registry()\n"
        "print(measure.measure(policy.decide_first_commands, 1))"
    )
    return float(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout)


def _decided(facts: Facts) -> float:
    parse_command.cache_clear()  # a second look at the same text would cost nothing
    return measure(lambda: decide(EXEC, None, facts, PolicyConfig("ask")), 1)
