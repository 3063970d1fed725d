"""What only fails under a layer is told in words, where the output shows it."""

from pathlib import Path

import pytest
from tests.sandbox.overlays import WHY_NOT, LayeredWorld

from handrail.sandbox.overlay.overlay import list_overlay_hints


@pytest.mark.parametrize(
    ("printed", "words"),
    [
        (
            "OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'\n",
            "An overlay cannot rename a folder that existed before",
        ),
        (
            "Error: EXDEV: cross-device link not permitted, rename 'a' -> 'b'\n",
            "An overlay cannot rename a folder that existed before",
        ),
        ("rename a b: invalid cross-device link\n", "An overlay cannot rename a folder that existed before"),
        ("sh: 1: cannot create f: Value too large for defined data type\n", "belongs to another user or group"),
        ("Error: EOVERFLOW: value too large for defined data type, open 'f'\n", "belongs to another user or group"),
    ],
)
def test_a_sign_in_the_output_becomes_a_sentence(printed: str, words: str) -> None:
    hints = list_overlay_hints(f"lots of output\n{printed}")
    assert len(hints) == 1
    assert words in hints[0]


def test_ordinary_output_gives_no_hint() -> None:
    assert list_overlay_hints("") == ()
    assert list_overlay_hints("src/fs.c:12: case EXDEV:\nassert err != EOVERFLOW\n") == ()
    assert list_overlay_hints("rename: ok\nmv: cannot stat 'x': No such file or directory\n") == ()


def test_of_very_long_output_the_end_counts() -> None:
    sign = "Invalid cross-device link"
    assert list_overlay_hints("x" * 500_000 + sign)
    assert not list_overlay_hints(sign + "x" * 500_000)


@pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))
def test_renaming_a_folder_from_below_gives_the_sign_and_mv_does_without(tmp_path: Path) -> None:
    world = LayeredWorld(tmp_path)
    world.write("home/projects/mine/folder/file")
    with world.new_layer() as layer:
        done = world.in_layer('python3 -I -S -c \'import os; os.rename("folder", "other")\'', layer)
        assert "An overlay cannot rename a folder that existed before" in list_overlay_hints(done.out)[0]
    with world.new_layer() as layer:
        made = 'mkdir made && python3 -I -S -c \'import os; os.rename("made", "new")\''
        assert world.in_layer(made, layer).out == ""
    with world.new_layer() as layer:
        done = world.in_layer("mv folder other && cat other/file", layer)
        assert (done.code, done.out) == (0, "content")
