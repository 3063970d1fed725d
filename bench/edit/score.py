"""Scores an editor by the bytes of the file alone; what it says counts only where the file says the opposite.

A case that should apply is correct, refused (the file is as it was), ws (right but for white space: damage) or WRONG;
one that must be refused is kept or WRONG. LIED: the editor said the opposite of what the file shows. CRASH: it raised.
"""

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from bench.edit.case import Case
from bench.edit.lines import squashed

Outcome = Literal["correct", "kept", "refused", "ws", "WRONG", "LIED", "CRASH"]
OUTCOMES: tuple[Outcome, ...] = ("correct", "kept", "refused", "ws", "WRONG", "LIED", "CRASH")
HARM: frozenset[Outcome] = frozenset(("ws", "WRONG", "LIED", "CRASH"))


class Said(NamedTuple):
    """Whether the editor says that it changed the file, and its words."""

    changed: bool
    words: str


Editor = Callable[[Path, Case], Said]


class Verdict(NamedTuple):
    """What became of a case."""

    case: Case
    outcome: Outcome
    words: str
    after: bytes
    seconds: float


def verdicts(cases: Iterable[Case], editor: Editor, folder: Path) -> Iterator[Verdict]:
    """Runs the editor on every case, on a file of its own in the folder: no name comes twice, whatever the ids are."""
    for number, case in enumerate(cases):
        path = folder / f"{number:06d}{Path(case.path).suffix}"
        path.write_bytes(case.before)
        yield _verdict(case, editor, path)
        path.unlink(missing_ok=True)


def _verdict(case: Case, editor: Editor, path: Path) -> Verdict:
    start = time.perf_counter()
    try:
        said = editor(path, case)
    except Exception as error:
        return Verdict(case, "CRASH", f"{type(error).__name__}: {error}", path.read_bytes(), 0.0)
    seconds = time.perf_counter() - start
    after = path.read_bytes()
    outcome = judged(case, after) if said.changed == (after != case.before) else "LIED"
    return Verdict(case, outcome, said.words, after, seconds)


def judged(case: Case, after: bytes) -> Outcome:
    """What these bytes are, of all that the file could have become."""
    if not case.positive:
        return "kept" if after == case.before else "WRONG"
    if after in case.right:
        return "correct"
    if after == case.before:
        return "refused"
    return "ws" if _bare(case, after) in {_bare(case, right) for right in case.right} else "WRONG"


def _bare(case: Case, data: bytes) -> str:
    """The text without white space; a byte order mark is none."""
    return squashed(data.decode("utf-8" if case.encoding == "utf-8-sig" else case.encoding, "replace"))


class Total(NamedTuple):
    """How many cases came out how."""

    counts: Counter[Outcome]

    @property
    def cases(self) -> int:
        return self.counts.total()

    @property
    def good(self) -> int:
        return self.counts["correct"] + self.counts["kept"]

    @property
    def harm(self) -> int:
        return sum(self.counts[outcome] for outcome in HARM)

    @property
    def percent(self) -> float:
        return 100 * self.good / self.cases if self.cases else 100.0


class Score(NamedTuple):
    """The totals of each kind, of all that should apply and of all that must be refused."""

    kinds: dict[str, Total]
    positive: Total
    negative: Total
    milliseconds: float
    """What a case took, median."""

    def passes(self, least: float) -> bool:
        """Whether nothing was harmed, and at least so many percent of what should apply is correct."""
        return not self.positive.harm + self.negative.harm and self.positive.percent >= least


def score_of(found: Iterable[Verdict]) -> Score:
    kinds: dict[str, Total] = {}
    totals = {True: Total(Counter()), False: Total(Counter())}
    times: list[float] = []
    for verdict in found:
        kinds.setdefault(verdict.case.kind, Total(Counter())).counts[verdict.outcome] += 1
        totals[verdict.case.positive].counts[verdict.outcome] += 1
        times.append(verdict.seconds)
    return Score(kinds, totals[True], totals[False], statistics.median(times or [0.0]) * 1e3)
