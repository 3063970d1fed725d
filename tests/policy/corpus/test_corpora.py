"""What the corpora themselves must hold."""

import pytest

from .records import HALVES, Half, attacks, everyday, half_of

SOURCES = {"gtfobins", "sonarsource", "codex", "gemini", "advisories", "wildcards", "manuals"}
USES = {"tldr", "agents", "handbooks"}


@pytest.mark.parametrize("half", HALVES)
def test_each_record_is_in_the_half_that_its_text_says(half: Half) -> None:
    assert {half_of(record.text) for record in (*attacks(half), *everyday(half))} == {half}


def test_no_record_is_there_twice() -> None:
    texts = [record.text for half in HALVES for record in (*attacks(half), *everyday(half))]
    assert len(texts) == len(set(texts))


def test_there_are_enough_attacks_of_enough_programs_from_enough_sources() -> None:
    found = [attack for half in HALVES for attack in attacks(half)]
    assert len(found) >= 300
    assert len({attack.program for attack in found}) >= 40
    assert {attack.source for attack in found} == SOURCES
    assert {attack.effect for attack in found} == {"writes", "deletes", "executes", "connects"}
    assert min(len(attacks(half)) for half in HALVES) >= 150


def test_there_are_enough_everyday_commands() -> None:
    assert min(len(everyday(half)) for half in HALVES) >= 150
    assert {command.source for half in HALVES for command in everyday(half)} == USES
