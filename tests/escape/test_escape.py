"""Tier 2 contains every attack of the corpus, tier 1 all but its documented gaps, and the attacks are real."""

import os
import random
from collections.abc import Callable, Iterator

import pytest
from tests.escape.case import LAYERED, USERS, Case, Outcome, User
from tests.escape.corpus import CASES
from tests.escape.gaps import GAPS
from tests.escape.layered import UNCONFINED_LAYER
from tests.escape.starting import Part, ordinary_number, python_for
from tests.escape.ways import BARE

# Attacks that use up what a user or the machine has must hurt no other test, nor may another test blur what they do.
pytestmark = pytest.mark.alone
DEEP = os.environ.get("HANDRAIL_DEEP", "") not in {"", "0"}
SEED = 6
PATIENCE = 900
_BY_ID = {case.id: case for case in CASES}
Outcomes = dict[tuple[User, int], list[Outcome]]


def test_the_corpus_is_large_and_every_gap_is_somebodys() -> None:
    assert len(CASES) >= 150
    assert len(_BY_ID) == len(CASES)
    assert {case.gap for case in CASES} - {None} == set(GAPS)


def test_nothing_that_hurts_is_tried_where_nothing_confines_it() -> None:
    assert not [case.id for case in CASES for user in USERS if not case.harmless and case.tried_at(0, user)]


@pytest.fixture(scope="module")
def outcomes() -> Iterator[Outcomes]:
    """All attacks, made by both users at the same time; one of them where the other cannot be had."""
    parts = {user: Part(user, _plan(user)) for user in USERS if _cannot(user) is None}
    try:
        found: Outcomes = {}
        for user, part in parts.items():
            for outcome in part.outcomes(PATIENCE):
                found.setdefault((user, outcome.tier), []).append(outcome)
        yield found
    finally:
        for part in parts.values():
            part.close()


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("tier", [LAYERED, 2, 1, 0])
def test_a_tier_contains_what_it_is_to_contain_and_has_the_documented_gaps(
    outcomes: Outcomes, tier: int, user: User, note: Callable[[str], None]
) -> None:
    made = _made(outcomes, user, tier)
    wrong = [told for outcome in made if (told := _wrong(outcome, _BY_ID[outcome.id], user))]
    note(f"{len(made)} attacks, {sum(not outcome.effects for outcome in made)} contained")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("user", USERS)
def test_attacks_succeed_where_nothing_confines_them(
    outcomes: Outcomes, user: User, note: Callable[[str], None]
) -> None:
    made = _made(outcomes, user, BARE)
    vain = [outcome for outcome in made if not outcome.effects]
    note(f"{len(made) - len(vain)} of {len(made)} attacks succeed in a bare process")
    unreal = [f"{one.id} has no effect: {one.output}" for one in vain if not _BY_ID[one.id].host_may_refuse]
    assert not unreal, "\n".join(unreal)


@pytest.mark.parametrize("user", USERS)
def test_attacks_on_the_layer_succeed_where_no_sandbox_is_in_it(
    outcomes: Outcomes, user: User, note: Callable[[str], None]
) -> None:
    made = _made(outcomes, user, UNCONFINED_LAYER)
    real = [outcome.id for outcome in made if outcome.effects]
    note(f"{len(real)} of {len(made)} attacks get past a layer that has no sandbox in it")
    assert "layer-umount" in real
    assert "layer-the-layer-itself" in real


def _plan(user: User) -> list[tuple[int, list[str]]]:
    """Which attacks are made at which tier: each at tier 2, and every day by one of the users only."""
    draw = random.Random(SEED)
    turns = {case.id: draw.random() for case in CASES}
    # What only root can do where nothing confines it is root's to try: of anybody else it would show nothing.
    turns |= {case.id: turn / 2 for case in CASES if case.real_for == ("root",) and (turn := turns[case.id])}
    first = user == "root" or _cannot("root") is not None
    half = lambda turn: turn < 0.5 if first else turn >= 0.5  # noqa: E731
    drawn: dict[int, Callable[[float], bool]] = {
        LAYERED: (lambda turn: turn < 0.06) if first else (lambda turn: turn >= 0.94),
        2: half if _cannot("root" if user == "ordinary" else "ordinary") is None else lambda _: True,
        1: lambda turn: 0.35 <= turn < 0.5 if first else 0.5 <= turn < 0.65,
        0: lambda turn: turn < 0.08 if first else turn >= 0.92,
        BARE: lambda turn: 0.12 <= turn < 0.2 if first else 0.8 <= turn < 0.88,
    }
    drawn[UNCONFINED_LAYER] = drawn[LAYERED]
    always = {case.id for case in CASES if DEEP or case.family == "layers"}
    return [
        (tier, [one.id for one in CASES if _tried(one, tier, user) and (one.id in always or chosen(turns[one.id]))])
        for tier, chosen in drawn.items()
    ]


def _tried(case: Case, tier: int, user: User) -> bool:
    if tier == UNCONFINED_LAYER:
        return case.family == "layers" and user in case.real_for
    return case.harmless and user in case.real_for if tier == BARE else case.tried_at(tier, user)


def _made(outcomes: Outcomes, user: User, tier: int) -> list[Outcome]:
    if reason := _cannot(user):
        pytest.skip(reason)
    if (user, tier) not in outcomes:
        pytest.skip(f"tier {tier} is not available to {user} on this machine")
    return outcomes[user, tier]


def _wrong(outcome: Outcome, case: Case, user: User) -> str | None:
    if not outcome.tried:
        return f"{case.id} was not tried: {outcome.output}"
    contained = case.contained_at(outcome.tier, user)
    if contained and outcome.effects:
        return f"{case.id} escaped (it {case.tries}): {'; '.join(outcome.effects)[:500]}"
    if contained or outcome.effects or (outcome.tier == 0 and case.host_may_refuse):
        return None
    if outcome.tier == 0:
        return f"{case.id} has no effect where nothing confines it: {outcome.output}"
    return f"{case.id} is contained; its gap ({case.gap}) is to be taken from the list: {outcome.output}"


def _cannot(user: User) -> str | None:
    """Why attacks of this user cannot be made here."""
    if user == "root":
        return None if os.geteuid() == 0 else "attacks of root are made only where the tests run as root"
    if os.geteuid() != 0 or python_for(ordinary_number()):
        return None
    return "no Python with our libraries can be run by an ordinary user here"
