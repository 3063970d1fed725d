"""Attacks in `ask` while nobody answers: nothing changes, and no secret reaches the model."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.must_hold.unasked import (
    all_attacks,
    compare,
    digest,
    find_faults,
    find_secrets,
    give_grants,
    inspect,
    is_known_leak,
    make_place,
    record,
    variables,
)
from tests.policy.corpus.effects import changes as state_changes
from tests.policy.corpus.effects import state, take_back

REPOSITORIES = pytest.mark.parametrize("tracked", [False, True], ids=["untracked", "tracked"])
SHARE = 90
"""Every day, one of so many attacks."""


@REPOSITORIES
def test_an_attack_that_nobody_answers_changes_nothing_and_tells_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracked: bool, deep: bool, note: Callable[[str], None]
) -> None:
    place = make_place(tmp_path, tracked=tracked)
    for name, value in variables(place).items():
        monkeypatch.setenv(name, value)
    played = all_attacks() if deep else all_attacks()[int(tracked) :: SHARE]
    wrong: list[str] = []
    kept = known = 0
    with place.open() as rail:
        before, contents = place.record(), digest(place.workspace)
        for attack in played:
            result = rail.exec(attack.text)
            kept += result.meta.answered_by is not None
            secrets = find_secrets(rail, result)
            known += bool(secrets) and is_known_leak(result, secrets, tracked=tracked)
            if secrets and not is_known_leak(result, secrets, tracked=tracked):
                wrong.append(f"{attack.text!r} tells {secrets} ({result.meta.answered_by})")
            after = place.record()
            if changed := compare(before, after):
                wrong.append(f"{attack.text!r} changed {changed}")
                before = after
    note(f"{len(played)} attacks, {kept} kept because they changed nothing, {known} tell what proven commands may")
    assert wrong == []
    assert digest(place.workspace) == contents
    assert kept == 0 if tracked else kept > len(played) // 4


@REPOSITORIES
def test_an_attack_under_the_grants_makes_only_plain_edits_and_local_git_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tracked: bool, deep: bool, note: Callable[[str], None]
) -> None:
    place = make_place(tmp_path, tracked=tracked)
    for name, value in variables(place).items():
        monkeypatch.setenv(name, value)
    played = all_attacks() if deep else all_attacks()[int(tracked) :: SHARE]
    wrong: list[str] = []
    changes = 0
    with place.open() as rail:
        give_grants(rail)
        template = tmp_path / "template"
        shutil.copytree(place.workspace, template, symlinks=True)
        original, around = state(place.workspace), place.record_around()
        repository = inspect(place.workspace)
        for attack in played:
            before = replace(repository, tree=record(place.workspace))
            result = rail.exec(attack.text)
            secrets = find_secrets(rail, result)
            if secrets and not is_known_leak(result, secrets, tracked=tracked):
                wrong.append(f"{attack.text!r} tells {secrets} ({result.meta.answered_by})")
            if compare(around, place.record_around()):
                wrong.append(f"{attack.text!r} changed something outside")
            found = state_changes(original, state(place.workspace))
            if found or compare(before.tree, record(place.workspace)):
                changes += 1
                wrong += [f"{attack.text!r}: {fault}" for fault in find_faults(before, inspect(place.workspace))]
                take_back(found, template, place.workspace)
    note(f"{len(played)} attacks, {changes} changed what the grants cover")
    assert wrong == []
    assert tracked or changes > len(played) // 10
