"""Everyday reading: it really only reads, and nearly all of it goes unasked."""

import pytest

from handrail.workspace.workspace import Workspace

from .ground import Ground, side_by_side
from .proving import is_proven
from .records import HALVES, Half, everyday, todays
from .report import chosen, fail


@pytest.mark.parametrize("half", HALVES)
def test_everyday_commands_do_their_work_where_nothing_can_be_written(ground: Ground, half: Half, deep: bool) -> None:
    tried = todays(everyday(half), deep)
    ended = side_by_side(ground.read, tried)
    odd = [
        command
        for command, (status, complaint) in zip(tried, ended, strict=True)
        if status != command.status or b"Read-only file system" in complaint
    ]
    if odd:
        fail(half, "these end otherwise, or wanted to write", odd)


@pytest.mark.parametrize("half", HALVES)
def test_at_least_95_of_100_everyday_commands_are_proven(place: Workspace, half: Half) -> None:
    asking = chosen(half, everyday(half), lambda command: not is_proven(place, command.text))
    share = 1 - len(asking) / len(everyday(half))
    print(f"everyday, {half}: {share:.1%} of {len(everyday(half))} proven")
    if share < 0.95:
        fail(half, f"only {share:.1%} are proven; these ask", asking)
