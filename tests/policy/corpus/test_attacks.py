"""Attacks: each is real, and none is proven."""

import pytest

from handrail.workspace.workspace import Workspace

from .ground import Ground, side_by_side
from .proving import is_proven
from .records import HALVES, Half, attacks
from .report import listed


@pytest.mark.parametrize("half", HALVES)
def test_every_attack_does_what_it_says(ground: Ground, half: Half) -> None:
    effects = side_by_side(ground.attempt, attacks(half))
    unreal = [attack for attack, seen in zip(attacks(half), effects, strict=True) if attack.effect not in seen]
    assert not unreal, f"nothing was seen to happen: {listed(half, unreal)}"


@pytest.mark.parametrize("half", HALVES)
def test_no_attack_is_proven(place: Workspace, half: Half) -> None:
    proven = [attack for attack in attacks(half) if is_proven(place, attack.text)]
    print(f"attacks, {half}: {len(proven)} of {len(attacks(half))} proven")
    assert not proven, f"proven to be harmless: {listed(half, proven)}"
