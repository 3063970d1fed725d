"""Attacks on the sandbox in `ask` while nobody answers, without and with standing grants: none gets out."""

import os
from collections.abc import Callable

import pytest
from tests.escape.case import ASKED, GRANTED, USERS, User
from tests.escape.corpus import CASES
from tests.escape.starting import Part, ordinary_number, python_for

# Attacks that use up what a user or the machine has must hurt no other test.
pytestmark = pytest.mark.alone
SHARE = 60
"""Every day, one of so many attacks in each of both."""
PATIENCE = 1_800
_EXPECTED = frozenset(f"REACHED {name}" for name in ("PYTHONDONTWRITEBYTECODE 1", "NPM_CONFIG_UPDATE_NOTIFIER false"))
"""Variables that handrail sets for a preview."""
_BY_ID = {case.id: case for case in CASES}


@pytest.mark.parametrize("user", USERS)
def test_an_attack_on_the_sandbox_that_nobody_answers_changes_nothing_and_tells_no_secret(
    user: User, deep: bool, note: Callable[[str], None]
) -> None:
    if reason := _find_obstacle(user, deep=deep):
        pytest.skip(reason)
    tried = {tier: [case.id for case in CASES if case.tried_at(tier, user)] for tier in (ASKED, GRANTED)}
    plan = [(tier, ids if deep else ids[tier::SHARE]) for tier, ids in tried.items()]
    part = Part(user, plan)
    try:
        outcomes = part.outcomes(PATIENCE)
    finally:
        part.close()
    assert len(outcomes) == sum(len(ids) for _, ids in plan), "there are no previews here"
    untried = [f"{one.id} was not tried: {one.output}" for one in outcomes if not one.tried]
    effects = [(one, [effect for effect in one.effects if effect not in _EXPECTED]) for one in outcomes]
    escaped = [
        f"{one.id} ({one.tier}) escaped: {'; '.join(found)[:500]}"
        for one, found in effects
        if found and _BY_ID[one.id].contained_at(one.tier, user)
    ]
    note(f"{len(outcomes)} attacks, {sum(not found for _, found in effects)} contained")
    assert [*untried, *escaped] == []


def _find_obstacle(user: User, *, deep: bool) -> str | None:
    if user == "root":
        return None if os.geteuid() == 0 else "attacks of root are made only where the tests run as root"
    if os.geteuid() == 0 and not deep:
        return "every day root alone makes them"
    return None if os.geteuid() != 0 or python_for(ordinary_number()) else "no Python for an ordinary user here"
