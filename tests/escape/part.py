"""Runs attacks as whoever it is started as: `python part.py PLAN`, PLAN a JSON file; one JSON line for each outcome.

It plays the runtime: it has a terminal, secrets in its environment and open files, and outsiders beside it.
"""

import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path

import msgspec
from tests.escape.asking import ByAsking
from tests.escape.attack import HIJACKED, REACHED, TRIED, text_of
from tests.escape.case import ASKED, GRANTED, LAYERED, Case, Outcome
from tests.escape.corpus import CASES
from tests.escape.layered import UNCONFINED_LAYER, ByLayer, ByUnconfinedLayer
from tests.escape.outside import SECRET, Outside, differences
from tests.escape.outside.files import whole
from tests.escape.outside.machine import telling_environment
from tests.escape.outside.processes import gone, marked
from tests.escape.ways import BARE, Answer, ByHandrail, run_bare

_CARELESS = {"environment", "descriptors"}


class Plan(msgspec.Struct, frozen=True):
    """Which attacks are run, where, and where the outcomes go."""

    place: str
    outcomes: str
    runs: tuple[tuple[int, tuple[str, ...]], ...]
    """Tiers, -1 for a bare process, each with the ids of its attacks in their order."""


def main(plan: Plan) -> None:
    place = Path(plan.place)
    for name in ("workspace", "repositories", "state"):
        (place / name).mkdir(exist_ok=True)
    (place / "state/record").write_text(SECRET)
    outside = Outside(place)
    os.environ.update(telling_environment(place))
    cases = {case.id: case for case in CASES}
    try:
        with open(plan.outcomes, "wb") as file:
            for tier, ids in plan.runs:
                field = Field(place, outside, tier)
                for name in ids if field.open() else ():
                    file.write(msgspec.json.encode(field.fight(cases[name])) + b"\n")
                    file.flush()
                field.close()
    finally:
        outside.close()


class Field:
    """Where attacks are run one after the other at one tier."""

    def __init__(self, place: Path, outside: Outside, tier: int) -> None:
        self._place = place
        self._outside = outside
        self._tier = tier
        self._rail = _way(place, tier)
        self._number = 0
        self._known: dict[str, dict[str, object]] | None = None
        """How the outside was found after the last attack, where nothing was put back."""

    def open(self) -> bool:
        """Whether attacks can be made here at all."""
        return self._rail is None or self._rail.available()

    def close(self) -> None:
        if self._rail:
            self._rail.close()

    def fight(self, case: Case) -> Outcome:
        """Runs one attack and looks at the outside before and after it."""
        self._number += 1
        workspace = self._place / ("repositories" if case.family == "repositories" else "workspace")
        command, mark = self._prepared(case, workspace)
        known = None if case.command else self._known
        before, inside = known or self._outside.fingerprint(), self._inside(case, workspace)
        started = time.monotonic()
        answer = self._run(case, command, workspace)
        seconds = time.monotonic() - started
        inside_after = self._inside(case, workspace)
        effects = self._stayed(case, mark, workspace)
        after = self._outside.fingerprint()
        effects += differences({**before, "workspace": inside}, {**after, "workspace": inside_after})
        effects += _told(answer.text)
        if self._outside.files.workspace == workspace:
            self._outside.files.tidy()
        self._known = None if self._outside.put_back(before, after) else after
        tried = answer.ran if case.command else TRIED in answer.text or not case.survives
        return Outcome(
            id=case.id,
            tier=self._tier,
            tried=tried or (case.trust == "proven" and self._tier > 0),
            effects=tuple(effects),
            output=answer.text[-3000:],
            seconds=seconds,
        )

    def _prepared(self, case: Case, workspace: Path) -> tuple[str, str]:
        """The command to run, and the mark by which its processes are known."""
        mark = f"attack-{os.getpid()}-{self._number}"
        suffix, program = ("sh", "/bin/bash") if case.shell else ("py", "/usr/bin/python3 -I -S")
        file = (self._place if case.command else workspace) / f"{mark}.{suffix}"
        # What is to be stopped waits for that, however busy the machine is.
        constants = self._outside.constants() | {"PATIENCE": 0.2 if self._tier == BARE else 8}
        file.write_text(text_of(case, constants))
        if case.command is None:
            return f"{program} {file}", mark
        done = run_bare(f"{program} {file}", workspace, self._home(), careless=False)
        assert TRIED in done.text, f"{case.id} could not be prepared: {done.text}"
        file.unlink()
        return case.command, mark

    def _run(self, case: Case, command: str, workspace: Path) -> Answer:
        if self._rail is None:
            return run_bare(command, workspace / case.cwd, self._home(), careless=case.family in _CARELESS)
        return self._rail.run(command, workspace.name, case.cwd, case.trust)

    def _home(self) -> str:
        return str(self._outside.constants()["HOME"])

    def _stayed(self, case: Case, mark: str, workspace: Path) -> list[str]:
        """What the attack still does after its call is over."""
        if not marked(mark) and case.family != "outliving":
            return []
        free = workspace / case.cwd
        (free / "go").touch()
        if gone(lambda: marked(mark) or _held(free / "alive"), 20) and not (free / "late").exists():
            return []
        for pid in marked(mark):
            os.kill(pid, 9)
        return ["it was still there after the call"]

    def _inside(self, case: Case, workspace: Path) -> dict[str, object]:
        """What is to be as it was in the workspace: everything where a command only looks, or has a layer."""
        is_kept_out = case.trust == "proven" or self._tier in {LAYERED, UNCONFINED_LAYER, ASKED}
        return whole(workspace) if is_kept_out else {}


def _way(place: Path, tier: int) -> ByHandrail | ByLayer | ByUnconfinedLayer | ByAsking | None:
    if tier == BARE:
        return None
    if tier in {ASKED, GRANTED}:
        return ByAsking(place, granted=tier == GRANTED)
    if tier == LAYERED:
        return ByLayer(place)
    return ByUnconfinedLayer(place) if tier == UNCONFINED_LAYER else ByHandrail(place, tier)


def _held(file: Path) -> bool:
    """Whether somebody is alive who has locked the file."""
    if not file.exists():
        return False
    with file.open() as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False


def _told(text: str) -> list[str]:
    found = [line for line in text.splitlines() if line.startswith(REACHED)]
    if SECRET in text:
        found.append("a secret is in the output")
    if HIJACKED in text:
        found.append("a program that the environment names was run")
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what was put on the machine is taken away again
    main(msgspec.convert(json.loads(Path(sys.argv[1]).read_text()), Plan))
