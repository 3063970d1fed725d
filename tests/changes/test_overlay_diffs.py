"""What people see of a trial: diffs within bounds, and what only looks different."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.changes.support import World, a_world, by_path, told

from handrail.changes.model import OverlayChanges
from handrail.changes.overlay.changes import DiffBounds, add_diffs, examine
from handrail.sandbox.overlay.overlay import Overlay
from handrail.workspace.roots import Root
from handrail.workspace.workspace import Workspace


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with a_world(tmp_path) as one:
        yield one


def shown(world: World, before: str, script: str, bounds: DiffBounds = DiffBounds()) -> OverlayChanges:  # noqa: B008
    world.sh(before)
    layer = world.layer(script)
    return add_diffs(world.workspace(), layer, examine(world.workspace(), layer), bounds)


def diff_of(examined: OverlayChanges, path: str) -> str:
    return examined.diffs[[change.path for change in examined.changes].index(path)]


def test_lines_are_counted_and_shown(world: World) -> None:
    found = shown(world, "printf '1\\n2\\n3\\n' >a; echo gone >g", "printf '1\\ntwo\\n3\\n4\\n' >a; echo new >n; rm g")
    changes = by_path(found)
    assert {path: (one.added, one.removed) for path, one in changes.items()} == {"a": (2, 1), "g": (0, 1), "n": (1, 0)}
    assert diff_of(found, "a") == "--- a/a\n+++ b/a\n@@ -1,3 +1,4 @@\n 1\n-2\n+two\n 3\n+4\n"
    assert diff_of(found, "n").startswith("--- /dev/null\n+++ b/n\n")
    assert diff_of(found, "g").startswith("--- a/g\n+++ /dev/null\n")


def test_only_the_layout_differs(world: World) -> None:
    found = by_path(shown(world, "echo 'a b' >a; echo 'a b' >b", "printf '  a\\n\\tb' >a; echo 'a c' >b"))
    assert (found["a"].layout_only, found["b"].layout_only) == (True, False)


@pytest.mark.parametrize("script", ["head -c 50 /dev/zero >a", "head -c 2M /dev/urandom | base64 >a"])
def test_what_is_no_text_or_too_large_has_no_diff(world: World, script: str) -> None:
    found = shown(world, "echo a >a", script)
    assert (found.changes[0].added, found.changes[0].removed, found.diffs) == (None, None, ("",))


def test_other_permissions_are_no_lines(world: World) -> None:
    found = shown(world, "echo a >a", "chmod 755 a")
    assert (found.changes[0].added, found.changes[0].removed, found.diffs) == (0, 0, ("",))


def test_a_file_that_became_a_link_has_lost_its_lines(world: World) -> None:
    found = shown(world, "echo a >a", "ln -sfn x a")
    assert (found.changes[0].added, found.changes[0].removed) == (0, 1)
    assert found.diffs == ("--- a/a\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n",)


def test_what_was_moved_has_no_lines(world: World) -> None:
    found = shown(world, "echo a >a", "mv a b")
    assert [(one.path, one.added, one.removed) for one in found.changes] == [("a", 0, 0), ("b", 0, 0)]
    assert found.diffs == ("", "")


def test_beyond_the_bounds_the_most_harmful_come_first(world: World) -> None:
    found = shown(world, "echo 123 >gone", "echo 456 >a; rm gone; echo 789 >z", DiffBounds(size=5))
    assert [(one.path, one.removed) for one in found.changes] == [("a", None), ("gone", 1), ("z", None)]
    none = shown(world, "true", "echo 456 >a", DiffBounds(seconds=-1))
    assert (none.changes[0].added, none.diffs) == (None, ("",))


def test_what_others_changed_since_has_no_diff(world: World) -> None:
    world.sh("echo a >a")
    layer = world.layer("echo b >>a")
    examined = examine(world.workspace(), layer)
    world.sh("echo c >a")
    found = add_diffs(world.workspace(), layer, examined)
    assert (found.diffs, found.changes[0].added) == (("",), None)


@pytest.mark.parametrize(
    ("main", "extra", "expected"),
    [
        ("one", ("two",), ["modified x", "modified {place}/two/x"]),
        ("one", ("one/in",), ["modified in/x", "modified x"]),
        ("one/in", ("one",), ["modified x", "modified {place}/one/x"]),
        ("one-x", ("one",), ["modified x", "modified {place}/one/x"]),
    ],
)
def test_paths_are_relative_in_the_workspace_and_absolute_elsewhere(
    tmp_path: Path, main: str, extra: tuple[str, ...], expected: list[str]
) -> None:
    roots = [tmp_path / name for name in (main, *extra)]
    for root in roots:
        root.mkdir(parents=True, exist_ok=True)
        (root / "x").write_text("x\n")
    space = Workspace(str(roots[0]), *(Root(str(root)) for root in roots[1:]))
    layer = Overlay(str(tmp_path / "layer"), tuple(map(str, roots)))
    for over in layer.overlaid:
        for root in roots:
            if root.is_relative_to(over.root):
                place = Path(over.upper) / root.relative_to(over.root)
                place.mkdir(exist_ok=True, mode=0o755)
                (place / "x").write_text("new\n")
    try:
        found = add_diffs(space, layer, examine(space, layer))
        assert sorted(told(found)) == sorted(words.format(place=tmp_path) for words in expected)
        assert all(
            os.fsencode(change.path) == step.path for change, step in zip(found.changes, found.steps, strict=True)
        )
        assert all(diff.endswith("-x\n+new\n") for diff in found.diffs)
    finally:
        layer.remove()
        space.close()
