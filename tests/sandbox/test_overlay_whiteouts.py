"""What a layer holds is as overlayfs wrote it: a command cannot forge the signs by which that tells what was removed,
replaced or lies elsewhere."""

import os
import stat
from pathlib import Path

import pytest
from tests.sandbox.overlays import WHY_NOT, LayeredWorld

pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))

_SIGNS = ("opaque", "whiteout", "whiteouts", "redirect", "metacopy", "upper", "nlink", "protattr", "xwhiteouts")
_FORGING = """
import os
for place in ("file", "folder", "new", "new-folder", "."):
    for name in SIGNS + ("origin", "impure", "overlay.opaque"):
        for space in ("user.overlay", "trusted.overlay", "user.overlay.overlay"):
            for value in (b"y", b"x", b"/elsewhere"):
                try:
                    os.setxattr(place, f"{space}.{name}", value)
                except OSError:
                    pass
"""


@pytest.fixture
def world(tmp_path: Path) -> LayeredWorld:
    found = LayeredWorld(tmp_path)
    found.write("home/projects/mine/file")
    found.write("home/projects/mine/folder/kept")
    return found


def test_attributes_that_a_command_sets_are_not_those_of_overlayfs(world: LayeredWorld) -> None:
    world.write("home/projects/mine/forge.py", _FORGING.replace("SIGNS", repr(_SIGNS)))
    # Both change the same; one of them sets attributes besides.
    changing = "echo >new; mkdir new-folder; chmod 700 file folder . {}; echo done; ls folder"
    signs: list[dict[str, dict[str, bytes]]] = []
    for text in (changing.format(""), changing.format("; python3 -I -S forge.py")):
        with world.new_layer() as layer:
            assert world.in_layer(text, layer).out == "done\nkept\n"
            signs.append(_signs(world.upper(layer)))
    assert signs[0].keys() == {".", "file", "folder", "new", "new-folder"}
    assert signs[1] == signs[0]


def _signs(upper: Path) -> dict[str, dict[str, bytes]]:
    """What overlayfs would go by, and whoever lists the layer; not what it has escaped."""
    found: dict[str, dict[str, bytes]] = {}
    for path in (upper, *upper.rglob("*")):
        names = [name for name in os.listxattr(path) if name.startswith(("user.overlay.", "trusted.overlay."))]
        own = [name for name in names if name.rpartition(".")[0] in {"user.overlay", "trusted.overlay"}]
        found[str(path.relative_to(upper))] = {
            name: os.getxattr(path, name) for name in own if not name.endswith((".uuid", ".impure"))
        }
    return found


def test_a_folder_that_was_not_replaced_cannot_be_made_to_look_like_it(world: LayeredWorld) -> None:
    script = "import os\ntry: os.setxattr('folder', 'user.overlay.opaque', b'y')\nexcept OSError: pass"
    world.write("home/projects/mine/forge.py", script)
    with world.new_layer() as layer, world.new_layer(layer) as second:
        assert world.in_layer("python3 -I -S forge.py; touch folder/more", layer).code == 0
        assert world.in_layer("ls folder", second).out == "kept\nmore\n"


def test_no_whiteout_can_be_made_but_by_removing_something(world: LayeredWorld) -> None:
    with world.new_layer() as layer:
        done = world.in_layer("mknod made c 0 0; mkdir new; mknod new/made c 0 0; mknod file c 0 0; true", layer)
        assert done.out.count("mknod: ") == 3
        marked = [path for path in world.upper(layer).rglob("*") if stat.S_ISCHR(path.lstat().st_mode)]
        assert marked == []
