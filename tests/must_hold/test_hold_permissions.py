"""The permission matrix: every mix of calls, answered in any order by two processes at once, with kill -9 meanwhile."""

import itertools
import json
import os
import random
import select
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from handrail.state import StoredState

WORKER = Path(__file__).with_name("latch_worker.py")
MIXES = [mix for size in range(1, 7) for mix in itertools.product(("allow", "confirm", "deny"), repeat=size)]
PATIENCE = 60.0
"""Seconds for anything to come about, on a machine that has much else to do."""
ANSWERED = {"tool_call.permission-granted", "tool_call.permission-denied"}
Order = tuple[Any, ...]
"""What a worker is to do, and with what."""
Moment = tuple[str, int]
"""Before or after so many effects, or anywhere, after so many steps."""
KILLED = object()
"""What a process says that was killed before it said anything."""


class Worker:
    """One process, and how to talk to it."""

    def __init__(self, control: socket.socket) -> None:
        ours, theirs = socket.socketpair()
        socket.send_fds(control, [b"w"], [theirs.fileno()])
        theirs.close()
        ours.settimeout(PATIENCE)
        self.socket, self.lines = ours, ours.makefile("rw")
        self.process = os.pidfd_open(int(self.lines.readline()))

    def tell(self, order: Order, die: Moment | None = None) -> None:
        self.lines.write(json.dumps({"do": order[0], "with": order[1:], "die": die}) + "\n")
        self.lines.flush()

    def hear(self) -> Any:
        """What it says; KILLED when it is gone, and with it whatever it held."""
        line = self.lines.readline()
        if line.endswith("\n"):
            return json.loads(line)
        assert select.select([self.process], [], [], PATIENCE)[0]
        self.close()
        return KILLED

    def ask(self, *order: Any) -> Any:
        self.tell(order)
        said = self.hear()
        assert said is not KILLED
        return said

    def close(self) -> None:
        self.lines.close()
        self.socket.close()
        os.close(self.process)


class Pair:
    """Two processes at work on one session. When one is killed another takes its place."""

    def __init__(self, control: socket.socket, draw: random.Random) -> None:
        self.control, self.draw = control, draw
        self.workers = [Worker(control), Worker(control)]
        self.session, self.kills_left, self.killed = "", 0, 0

    def open(self, session: str, kills: int) -> None:
        self.session, self.kills_left, self.killed = session, kills, 0
        for worker in self.workers:
            worker.tell(("open", session))
        for worker in self.workers:
            worker.hear()

    def do(self, *order: Any) -> Any:
        """One of them does it, and may be killed meanwhile."""
        return self._together({self.draw.randrange(2): order})[0]

    def race(self, first: Order, second: Order) -> list[Any]:
        """Both at once, and one may be killed meanwhile."""
        return self._together({0: first, 1: second})

    def _together(self, orders: dict[int, Order]) -> list[Any]:
        victim = self.draw.choice(list(orders)) if self.draw.random() < 0.8 else None
        for number, order in orders.items():
            self.workers[number].tell(order, self._moment() if number == victim else None)
        said = {number: self.workers[number].hear() for number in orders}
        for number in orders:
            if said[number] is KILLED:
                self._replace(number)
        return list(said.values())

    def _moment(self) -> Moment | None:
        """When somebody is killed: anywhere, or where a call has begun and is not over."""
        if not self.kills_left:
            return None
        if self.draw.random() < 0.4:
            return self.draw.choice(("before", "after")), self.draw.randrange(3)
        return "anywhere", int(10 ** self.draw.uniform(0, 3.6))

    def _replace(self, number: int) -> None:
        """Opens the session anew, which settles what the killed one left; who does that may be killed too."""
        said: object = KILLED
        while said is KILLED:
            self.kills_left, self.killed = self.kills_left - 1, self.killed + 1
            self.workers[number] = Worker(self.control)
            self.workers[number].tell(("open", self.session), self._moment() if self.draw.random() < 0.3 else None)
            said = self.workers[number].hear()

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


@pytest.fixture
def pair(tmp_path: Path, workspace: Path) -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    command = [sys.executable, WORKER, workspace, tmp_path / "state", tmp_path / "effects", str(theirs.fileno())]
    with ExitStack() as stack:
        mother = stack.enter_context(subprocess.Popen(command, pass_fds=[theirs.fileno()]))
        stack.callback(lambda: mother.wait(PATIENCE))
        stack.enter_context(ours)
        theirs.close()
        two = Pair(ours, random.Random(7))
        stack.callback(two.close)
        yield two


def play(pair: Pair, mix: tuple[str, ...], session: str) -> dict[str, str]:
    """Parks the batch, has every question answered, and lets it run: in some order, by somebody. The results."""
    draw = pair.draw
    calls = [(f"{session}.{number}", kind) for number, kind in enumerate(mix)]
    asked = parked(pair, calls) if "confirm" in mix else []
    for request in draw.sample(asked, len(asked)):
        answer(pair, request)
    ways: list[Order] = [("resume",), ("call", *draw.choice(calls)), ("batch", calls)]
    ways += [("answer", draw.choice(asked), draw.choice(("once", "deny")))] if asked else []
    if draw.random() < 0.5:
        pair.race(draw.choice(ways), draw.choice(ways))
    while (said := pair.do("batch", calls)) is KILLED:
        pass
    return said["done"]


def parked(pair: Pair, calls: list[tuple[str, str]]) -> list[str]:
    """What is asked about the batch: the same, whoever brings it and however often."""
    said: list[Any] = []
    while not said:
        said = [one["parked"] for one in pair.race(("batch", calls), ("batch", calls)) if one is not KILLED]
    assert all(one == said[0] for one in said)
    assert [call for _, call in said[0]] == [call for call, kind in calls if kind == "confirm"]
    return [request for request, _ in said[0]]


def answer(pair: Pair, request: str) -> None:
    """Both answer, perhaps differently; again, where nobody lived to do it."""
    while request in pair.workers[0].ask("waiting"):
        first, second = (("answer", request, pair.draw.choice(("once", "deny"))) for _ in range(2))
        said = pair.race(first, second)
        if KILLED not in said:
            assert said.count("too late") == 1, said


def check(pair: Pair, mix: tuple[str, ...], session: str, results: dict[str, str], effects: Counter[str]) -> None:
    """Each call one result, asked at most once, run at most once, and only after everything was answered."""
    events: list[tuple[str, str | None, str | None]] = [tuple(one) for one in pair.workers[1].ask("events")]
    seen = Counter((kind, call) for kind, call, _ in events)
    said = {call: code for kind, call, code in events if kind in ANSWERED}
    ends = {call: code for kind, call, code in events if kind in {"tool_call.end", "tool_call.error"}}
    assert ends == results
    expected = {"once": {"ok", "INTERRUPTED"}, "deny": {"PERMISSION_DENIED"}}
    for number, kind in enumerate(mix):
        call = f"{session}.{number}"
        possible = {"allow": expected["once"], "deny": {"OUTSIDE_WORKSPACE"}}.get(kind) or expected[said[call] or ""]
        assert results[call] in possible
        assert seen["tool_call.start", call] == 1
        assert seen["tool_call.end", call] + seen["tool_call.error", call] == 1
        assert seen["tool_call.permission-required", call] == (kind == "confirm")
        assert sum(seen[answered, call] for answered in ANSWERED) == (kind == "confirm")
        assert seen["tool_call.running", call] <= 1
        assert effects[call] in ({0, 1} if results[call] == "INTERRUPTED" else {int(results[call] == "ok")})
    kinds = [kind for kind, _, _ in events]
    if "confirm" in mix and "tool_call.running" in kinds:
        assert kinds.index("tool_call.running") > max(n for n, kind in enumerate(kinds) if kind in ANSWERED)
    # A process does one call of a batch at a time, so each death cuts off one at the most, or one group in parallel.
    cut_off = [kind for number, kind in enumerate(mix) if results[f"{session}.{number}"] == "INTERRUPTED"]
    assert sum(kind != "allow" for kind in cut_off) <= pair.killed
    assert pair.killed or not cut_off


def test_every_mix_is_asked_once_and_run_once_whoever_answers_and_whoever_is_killed(
    pair: Pair, tmp_path: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    chosen = random.Random(11).sample(MIXES, count(len(MIXES)))
    killed, cut_off, calls = 0, 0, 0
    for number, mix in enumerate(chosen):
        session = f"m{number}"
        pair.open(session, kills=pair.draw.randrange(5))
        results = play(pair, mix, session)
        assert set(results) == {f"{session}.{place}" for place in range(len(mix))}
        effects = Counter((tmp_path / "effects").read_text().split()) if (tmp_path / "effects").exists() else Counter()
        check(pair, mix, session, results, effects)
        killed, calls = killed + pair.killed, calls + len(mix)
        cut_off += list(results.values()).count("INTERRUPTED")
    verification = StoredState(str(tmp_path / "state")).verify()
    assert (verification.problems, verification.records) == ((), calls)
    note(f"{len(chosen)} mixes, {calls} calls, {killed} kills, {cut_off} calls cut off")
    print(f"\n{len(chosen)} mixes, {calls} calls, {killed} kills, {cut_off} calls cut off")


def test_a_grant_is_there_exactly_when_its_yes_is_whenever_the_one_who_answers_is_killed(
    pair: Pair, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    granted, killed = 0, 0
    for number in range(count(100)):
        scope, call = ("session", "workspace")[number % 2], f"g{number}"
        pair.open(call, kills=0)
        first, second = pair.workers
        [[request, _]] = first.ask("batch", [(call, "command")])["parked"]
        first.tell(("answer", request, scope), ("anywhere", 20 + pair.draw.randrange(80)))
        if first.hear() is KILLED:
            killed += 1
            pair._replace(0)
            first = pair.workers[0]
        answered = second.ask("waiting") == []
        found = second.ask("granted")
        assert [command for _, command in found] == (["mkdir"] if answered else [])
        granted += answered
        for grant_id, _ in found:  # also while what was answered with it is still to be run
            second.ask("revoke", grant_id)
        assert second.ask("answer", request, "once" if not answered else scope) is not None
        assert first.ask("batch", [(call, "command")])["done"][call] in {"ok", "INTERRUPTED"}
        assert first.ask("granted") == second.ask("granted") == []
    note(f"{killed} kills, {granted} grants")
    print(f"\n{killed} kills, {granted} grants")


def play_tried(pair: Pair, calls: list[tuple[str, str]]) -> dict[str, str]:
    """Has commands tried, some of them again, answered in their order by somebody, and kept. The results."""
    draw, said = pair.draw, []
    while not said:
        said = [one["parked"] for one in pair.race(("batch", calls), ("batch", calls)) if one is not KILLED]
    for request, _ in said[0]:
        if draw.random() < 0.3:
            pair.race(("retry", request), ("retry", request))
        while request in pair.workers[0].ask("waiting"):
            kinds = draw.choices(("once", "output", "deny"), weights=(4, 1, 1), k=2)
            first, second = (("answer_shown", request, kind) for kind in kinds)
            pair.race(first, ("retry", request) if draw.random() < 0.5 else second)
    if draw.random() < 0.5:
        pair.race(("resume",), ("batch", calls))
    while (done := pair.do("batch", calls)) is KILLED:
        pass
    return done["done"]


def check_tried(pair: Pair, calls: list[tuple[str, str]], results: dict[str, str], kept: list[str]) -> None:
    """What was kept is what was said yes to, once and in its order; what was not is nowhere."""
    events: list[tuple[str, str | None, str | None]] = [tuple(one) for one in pair.workers[1].ask("events")]
    said = {call: code for kind, call, code in events if kind in ANSWERED}
    seen = Counter((kind, call) for kind, call, _ in events)
    assert kept == [call for call, _ in calls if call in kept]
    for call, _ in calls:
        assert sum(seen[answered, call] for answered in ANSWERED) == 1
        assert seen["tool_call.end", call] + seen["tool_call.error", call] == 1
        possible = {"deny": {"PERMISSION_DENIED"}, "output": {"ok", "INTERRUPTED"}}
        assert results[call] in possible.get(said[call] or "", {"ok", "CONFLICT", "INTERRUPTED"})
        if results[call] != "INTERRUPTED":
            assert (call in kept) == (results[call] == "ok" and said[call] == "once")
    assert list(results.values()).count("INTERRUPTED") <= pair.killed


def test_what_was_tried_is_kept_once_or_not_at_all_whoever_answers_tries_again_or_is_killed(
    pair: Pair, workspace: Path, tmp_path: Path, count: Callable[[int], int], note: Callable[[str], None]
) -> None:
    killed, calls_kept, calls_all = 0, 0, 0
    for number in range(count(100)):
        session = f"t{number}"
        pair.open(session, kills=pair.draw.randrange(4))
        calls = [(f"{session}.{place}", "append") for place in range(1 + number % 3)]
        results = play_tried(pair, calls)
        log = workspace / f"log-{session}"
        kept = log.read_text().split() if log.exists() else []
        check_tried(pair, calls, results, kept)
        killed, calls_kept, calls_all = killed + pair.killed, calls_kept + len(kept), calls_all + len(calls)
    assert not StoredState(str(tmp_path / "state")).verify().problems
    left = len(list((tmp_path / "state").glob("workspaces/*/.changes/trials/*")))
    assert left <= 4 * killed  # who is killed leaves at the most what its batch had tried, and what that was to replace
    note(f"{killed} kills, {calls_kept} of {calls_all} commands kept, {left} trials left to the sweep")
    print(f"\n{killed} kills, {calls_kept} of {calls_all} commands kept, {left} trials left to the sweep")
