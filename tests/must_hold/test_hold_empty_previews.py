"""A command that is kept because its preview changed nothing leaves the tree exactly as it was."""

import random
from collections.abc import Callable
from pathlib import Path

from tests.must_hold.harmless_commands import make_command
from tests.must_hold.unasked import Place, compare, digest
from tests.policy.corpus.scratch import make_workspace

COMMANDS = 2_000
DAILY = 40
LEAST_KEPT = 0.3
SEED = 11


def test_a_command_that_is_kept_because_its_preview_changed_nothing_leaves_every_byte_mode_and_time(
    tmp_path: Path, deep: bool, note: Callable[[str], None]
) -> None:
    make_workspace(tmp_path / "workspace")
    for name in ("outside", "home", "programs"):
        (tmp_path / name).mkdir()
    place, draw = Place(tmp_path, tracked=False), random.Random(SEED)
    commands = [make_command(draw) for _ in range(COMMANDS if deep else DAILY)]
    wrong: list[str] = []
    kept = changed = 0
    with place.open() as rail:
        before, contents = place.record(), digest(place.workspace)
        for command in commands:
            result = rail.exec(command)
            kept += result.meta.answered_by == "preview"
            changed += result.error is not None
            if found := compare(before, place.record()):
                wrong.append(f"{command!r} changed {found}")
                before = place.record()
    note(f"{len(commands)} commands, {kept} kept because they changed nothing, {changed} parked or refused")
    assert wrong == []
    assert digest(place.workspace) == contents
    assert kept >= LEAST_KEPT * len(commands)
