"""What a score says: to people, and as JSON."""

import difflib
import json

from bench.edit.score import OUTCOMES, Score, Total, Verdict


def table(score: Score) -> str:
    """A line for each kind, and one for each total."""
    lines = [_line(kind, total) for kind, total in score.kinds.items()]
    lines.append(_line(f"all {score.positive.cases} positive", score.positive))
    lines.append(_line(f"all {score.negative.cases} negative", score.negative))
    return "\n".join([*lines, f"median {score.milliseconds:.2f} ms"])


def _line(name: str, total: Total) -> str:
    counts = "  ".join(f"{outcome} {total.counts[outcome]}" for outcome in OUTCOMES if total.counts[outcome])
    return f"{name:<28} {total.percent:5.1f} %  {counts}"


def as_json(score: Score) -> str:
    parts = {"kinds": {kind: _counted(total) for kind, total in score.kinds.items()}}
    totals = {"positive": _counted(score.positive), "negative": _counted(score.negative)}
    return json.dumps({**parts, **totals, "milliseconds": round(score.milliseconds, 3)}, indent=2)


def _counted(total: Total) -> dict[str, float]:
    return {"cases": total.cases, "percent": round(total.percent, 2), **total.counts}


def shown(verdict: Verdict) -> str:
    """One case that did not come out well: what was sent, what was said, and what is not as it should be."""
    case = verdict.case
    every = ", replaceAll" if case.replace_all else ""
    parts = [
        f"--- {case.id} ({case.path}{every}): {verdict.outcome}",
        verdict.words,
        f"oldText {case.old!r}",
        f"newText {case.new!r}",
    ]
    if verdict.outcome != "refused":
        parts += _difference(verdict)
    return "\n".join(parts)


def _difference(verdict: Verdict) -> list[str]:
    """What the file should be, against what it is."""
    right, after = (_lines(data) for data in (verdict.case.right[0], verdict.after))
    return [repr(line)[1:-1] for line in difflib.unified_diff(right, after, "right", "after", n=1, lineterm="")]


def _lines(data: bytes) -> list[str]:
    return data.decode("utf-8", "backslashreplace").split("\n")
