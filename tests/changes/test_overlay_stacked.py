"""What lies beneath a layer: earlier layers, and what others change there meanwhile."""

import os
import shutil

import pytest
from tests.changes.support import As, World, by_path, told

from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.changes import add_diffs, examine
from handrail.changes.overlay.differences import compare_entry
from handrail.changes.overlay.walk import MAX_OVERLAY_DEPTH, SWAPPED_ERRNOS, OverlayEntry, OverlayWalk
from handrail.sandbox.overlay.overlay import Overlay

PYTHON = shutil.which("python3", path="/usr/bin:/bin:/usr/local/bin")  # one that every user may run
TREE = "mkdir -p d/e; echo a >a; echo b >b; echo x >d/x; echo y >d/e/y; ln -s a l"


def stacked(user: As, *scripts: str) -> OverlayChanges:
    """What the last one changed, over what the others did."""

    def work(world: World) -> OverlayChanges:
        world.sh(TREE)
        below: tuple = ()
        for script in scripts[:-1]:
            below = (world.layer(script, below=below), *below)
        layer = world.layer(scripts[-1], below=below)
        return add_diffs(world.workspace(), layer, examine(world.workspace(), layer))

    return user(work)


def test_before_is_what_earlier_layers_left(user: As) -> None:
    found = stacked(user, "echo one >a", "echo two >>a")
    assert told(found) == ["modified a"]
    assert found.diffs[0].endswith(" one\n+two\n")


def test_what_an_earlier_layer_made_can_go(user: As) -> None:
    found = stacked(user, "echo n >n; mkdir m; echo m >m/m", "rm n; rm -r m")
    assert sorted(told(found)) == ["deleted m", "deleted m/m", "deleted n"]


def test_what_an_earlier_layer_deleted_is_new_again(user: As) -> None:
    assert told(stacked(user, "rm a", "echo a >a")) == ["created a"]


def test_a_folder_that_an_earlier_layer_replaced_hides_what_was_in_it(user: As) -> None:
    found = stacked(user, "rm -r d; mkdir d; echo n >d/n", "echo x >d/x; rm d/n; mkdir d/e")
    assert sorted(told(found)) == ["created d/e", "created d/x", "deleted d/n"]


def test_folders_of_several_layers_are_one(user: As) -> None:
    found = stacked(user, "echo 1 >d/one", "echo 2 >d/two; rm d/x", "echo three >d/three", "rm -r d")
    expected = ["deleted d", "deleted d/e", "deleted d/e/y", "deleted d/one", "deleted d/three", "deleted d/two"]
    assert sorted(told(found)) == expected


def test_a_folder_that_an_earlier_layer_made_a_file_of(user: As) -> None:
    found = by_path(stacked(user, "rm -r d; echo f >d", "rm d; mkdir d; echo x >d/x"))
    assert (found["d"].replaces, found["d/x"].action, len(found)) == ("file", "created", 2)


def test_what_is_as_the_earlier_layer_left_it_is_no_change(user: As) -> None:
    assert stacked(user, "echo one >a; rm b", "touch a; echo two >a; echo one >a").steps == ()


def meanwhile(user: As, script: str, others: str, after: str = "true") -> OverlayChanges:
    """What a script changed, while others changed the real tree before or after it was done."""

    def work(world: World) -> OverlayChanges:
        world.sh(TREE)
        layer = world.layer("true")
        _tick(world, layer.started)
        world.sh(others)
        later = world.layer(script)
        later.started = layer.started  # as if it had been made before the others came
        world.sh(after)
        return examine(world.workspace(), later)

    return user(work)


def _tick(world: World, since: int) -> None:
    """Waits until the clock of the file system has moved."""
    probe = world.place / "probe"
    while True:
        probe.write_text("x")
        if os.stat(probe).st_ctime_ns > since:
            return


@pytest.mark.parametrize(
    ("script", "others", "outdated"),
    [
        ("echo more >>a", "echo others >a", {b"a"}),
        ("rm a", "echo others >a", {b"a"}),
        ("echo n >n", "echo others >n", {b"n"}),
        ("rm -r d", "echo others >d/x", {b"d/x"}),
        ("rm -r d", "echo others >d/n", {b"d", b"d/n"}),
        ("chmod 700 a", "chmod 755 a", {b"a"}),
        ("ln -sfn b l", "ln -sfn d l", {b"l"}),
        ("echo more >>a", "echo others >b", set()),
        ("echo n >d/n", "echo others >d/o", set()),
        ("chmod 700 d", "echo others >d/o", set()),
        ("echo more >>a", "true", set()),
    ],
)
def test_what_others_changed_meanwhile_is_outdated(user: As, script: str, others: str, outdated: set[bytes]) -> None:
    assert set(meanwhile(user, script, others).outdated) == outdated


@pytest.mark.parametrize(
    ("script", "after", "outdated"),
    [("echo more >>a", "rm a", {b"a"}), ("echo more >>d/x", "rm -r d", {b"d"}), ("echo n >n", "rm b", set())],
)
def test_what_others_removed_meanwhile_is_outdated(user: As, script: str, after: str, outdated: set[bytes]) -> None:
    assert set(meanwhile(user, script, "true", after).outdated) == outdated


def test_what_was_there_before_is_never_outdated(user: As) -> None:
    def work(world: World) -> list[bytes]:
        world.sh(TREE)
        found: list[bytes] = []
        for number in range(10):
            (world.root / "a").write_text(f"{number}\n")
            found += world.examine("echo more >>a").outdated
        return found

    assert user(work) == []


def test_what_vanishes_while_it_is_looked_at_is_outdated(user: As) -> None:
    def work(world: World) -> list[list[str]]:
        world.sh(f"{TREE}; echo z >z")
        layer = world.layer("echo more >>b; echo more >>d/e/y; echo more >>z; ln -sfn b l")
        found: list[list[str]] = []
        for path, others in (("b", "rm z"), ("d", "rm -r d"), ("d", "rm -r d; echo f >d"), ("l", "rm l; echo f >l")):
            world.sh("cp -a . ../copy")
            found.append(_interrupted(world, layer, path, others))
            world.sh("rm -rf a b d l z; cp -a ../copy/. .; rm -r ../copy")
        return found

    for outdated in user(work):
        assert outdated


def _interrupted(world: World, layer: Overlay, path: str, others: str) -> list[str]:
    """What is found to be another thing where others come by when the walk is at a path."""
    walk = OverlayWalk(layer.overlaid[0])
    found: list[str] = []
    for met in walk.paths():
        if met.path == path:
            world.sh(others)
        if _is_swapped(met, precise=layer.tracks_hard_links):
            found.append(met.path)
        if met.lower is None and met.parent_ctime > layer.started:
            found.append(met.path)
    return found + walk.swapped


def _is_swapped(met: OverlayEntry, *, precise: bool) -> bool:
    try:
        compare_entry(met, precise=precise)
    except OSError as error:
        return error.errno in SWAPPED_ERRNOS
    return False


def test_folders_without_end_are_not_followed(user: As) -> None:
    def work(world: World) -> OverlayChanges:
        levels = 2 * MAX_OVERLAY_DEPTH
        deep = f"import os\nfor _ in range({levels}):\n    os.mkdir('d')\n    os.chdir('d')\nopen('f', 'w')\n"
        (world.place / "deep.py").write_text(deep)
        world.sh(f"mkdir old; cd old; {PYTHON} {world.place}/deep.py")
        return world.examine(f"mkdir new; cd new; {PYTHON} {world.place}/deep.py; cd ..; rm -r old")

    found = user(work)
    assert 2 * MAX_OVERLAY_DEPTH < len(found.steps) <= 2 * MAX_OVERLAY_DEPTH + 4
    assert [words.partition(": ")[2] for words in found.unkept] == ["what is in more than 100 folders is not kept"] * 2
