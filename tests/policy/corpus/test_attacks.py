"""Attacks: each is real, and none is proven, unless what bash is then given does nothing."""

import msgspec
import pytest

from handrail.workspace.workspace import Workspace

from .ground import Ground, side_by_side
from .proving import as_run, is_proven, reads_loopback
from .records import HALVES, Attack, Half, attacks, todays
from .report import chosen, fail


@pytest.mark.parametrize("half", HALVES)
def test_every_attack_does_what_it_says(ground: Ground, half: Half, deep: bool) -> None:
    tried = todays(attacks(half), deep)
    effects = side_by_side(ground.attempt, tried)
    unreal = [attack for attack, seen in zip(tried, effects, strict=True) if attack.effect not in seen]
    if unreal:
        fail(half, "nothing was seen to happen", unreal)


@pytest.mark.parametrize("half", HALVES)
def test_no_attack_is_proven_but_in_a_form_that_does_nothing(ground: Ground, place: Workspace, half: Half) -> None:
    """`sort *` where a file is called `-oresult` is an attack; bash is given `sort ./*`, which is none.

    A request to loopback reaches the sandbox's own network only: tests/tools/test_exec_session_network.py.
    """
    proven = chosen(half, attacks(half), lambda attack: is_proven(place, attack.text))
    proven = [attack for attack in proven if not reads_loopback(attack.text)]
    armed = chosen(half, proven, lambda attack: bool(ground.attempt(_as_run(attack))))
    print(f"attacks, {half}: {len(armed)} of {len(attacks(half))} proven; {len(proven) - len(armed)} more are disarmed")
    if armed:
        fail(half, "proven to be harmless", armed)


def _as_run(attack: Attack) -> Attack:
    return msgspec.structs.replace(attack, text=as_run(attack.text))
