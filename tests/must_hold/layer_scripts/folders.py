"""What scripts do to folders, links and modes."""

from layer_scripts.scene import Scene, quoted
from layer_scripts.start import GIT_MODES

_MODES = ("644", "755", "600", "444", "u+x", "go-rwx", "a+w")
_FOLDER_MODES = ("755", "700", "775", "555")


def make_folder(scene: Scene) -> str:
    path = scene.add(scene.fresh(), "folder")
    inner = scene.add(path + b"/inner", "folder")
    return f"mkdir -p {quoted(inner)}/innermost; echo in it >{quoted(scene.add(inner + b'/file', 'file'))}"


def make_empty_folder(scene: Scene) -> str:
    return f"mkdir -m {scene.draw.choice(_FOLDER_MODES)} {quoted(scene.add(scene.fresh(), 'folder'))}"


def rename(scene: Scene) -> str | None:
    path, new = scene.folder(), scene.fresh()
    if path is None or new.startswith(path + b"/"):
        return None
    scene.move(path, new)
    return f"{_open(path)}; mv {quoted(path)} {quoted(new)}"


def rename_back(scene: Scene) -> str | None:
    path = scene.folder()
    return path and f"{_open(path)}; mv {quoted(path)} away.tmp && mv away.tmp {quoted(path)}"


def move_into(scene: Scene) -> str | None:
    path, other = scene.folder(), scene.any("folder")
    if path is None or other is None or (other + b"/").startswith(path + b"/"):
        return None
    scene.move(path, other + b"/" + path.rpartition(b"/")[2])
    return f"{_open(path)}; mv {quoted(path)} {quoted(other)}/"


def copy(scene: Scene) -> str | None:
    path, new = scene.folder(), scene.fresh()
    if path is None or new.startswith(path + b"/"):
        return None
    scene.add(new, "folder")
    return f"cp -a {quoted(path)} {quoted(new)}"


def delete(scene: Scene) -> str | None:
    path = scene.any("folder")
    if path is None:
        return None
    scene.remove(path)
    return f"chmod -R u+w {quoted(path)}; rm -rf {quoted(path)}"


def delete_and_make_anew(scene: Scene) -> str | None:
    path = scene.any("folder")
    if path is None:
        return None
    scene.remove(path)
    scene.add(path, "folder")
    made = scene.add(path + b"/anew", "file")
    return f"chmod -R u+w {quoted(path)}; rm -rf {quoted(path)}; mkdir {quoted(path)}; echo anew >{quoted(made)}"


def empty_it(scene: Scene) -> str | None:
    path = scene.any("folder")
    return path and f"chmod u+w {quoted(path)}; find {quoted(path)} -mindepth 1 -type f -delete"


def file_becomes_folder(scene: Scene) -> str | None:
    path = scene.file()
    if path is None:
        return None
    scene.add(path, "folder")
    scene.add(path + b"/inside", "file")
    return f"rm -f {quoted(path)}; mkdir {quoted(path)}; echo inside >{quoted(path)}/inside"


def folder_becomes_file(scene: Scene) -> str | None:
    path = scene.any("folder")
    if path is None:
        return None
    scene.add(path, "file")
    return f"chmod -R u+w {quoted(path)}; rm -rf {quoted(path)}; echo a file now >{quoted(path)}"


def there_and_back(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"rm -f {quoted(path)}; mkdir {quoted(path)}; rmdir {quoted(path)}; echo back >{quoted(path)}"


def link(scene: Scene) -> str:
    target = scene.any("file", "folder", "link") or b"nothing"
    return f"ln -s {quoted(target)} {quoted(scene.add(scene.fresh(), 'link'))}"


def link_to_nothing(scene: Scene) -> str:
    return f"ln -s not/there {quoted(scene.add(scene.fresh(), 'link'))}"


def replace_link(scene: Scene) -> str | None:
    path = scene.any("link")
    return path and f"ln -sfn elsewhere-{scene.number()} {quoted(path)}"


def link_becomes_file(scene: Scene) -> str | None:
    path = scene.any("link")
    if path is None:
        return None
    scene.add(path, "file")
    return f"rm -f {quoted(path)}; echo no link >{quoted(path)}"


def file_becomes_link(scene: Scene) -> str | None:
    path = scene.file()
    if path is None:
        return None
    scene.add(path, "link")
    return f"ln -sf somewhere {quoted(path)}"


def folder_becomes_link(scene: Scene) -> str | None:
    path = scene.folder()
    if path is None:
        return None
    moved = path + b".moved"
    scene.move(path, moved)
    scene.add(path, "link")
    return (
        f"{_open(path)}; mv {quoted(path)} {quoted(moved)} && ln -s {quoted(moved.rpartition(b'/')[2])} {quoted(path)}"
    )


def write_through_link(scene: Scene) -> str | None:
    path = scene.any("link")
    return path and f"[ -d {quoted(path)} ] || echo through >>{quoted(path)}"


def another_name(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"ln {quoted(path)} {quoted(scene.share(path))}"


def two_new_names(scene: Scene) -> str:
    one = scene.add(scene.fresh(), "file")
    other = scene.share(one)
    return f"echo new >{quoted(one)}; ln {quoted(one)} {quoted(other)}; echo both >>{quoted(other)}"


def write_through_a_name(scene: Scene) -> str | None:
    """Of a file with several names. Where the layer does not keep these together, the others must not be looked at
    afterwards."""
    path = scene.any("shared")
    return path and f"echo through one {scene.number()} >>{quoted(path)}"


def change_mode(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"chmod {_mode(scene)} {quoted(path)}"


def change_mode_and_write(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"chmod u+w {quoted(path)}; echo more >>{quoted(path)}; chmod {_mode(scene)} {quoted(path)}"


def change_folder_mode(scene: Scene) -> str | None:
    path = scene.any("folder")
    return path and f"chmod {scene.draw.choice(_FOLDER_MODES)} {quoted(path)}"


def close_a_tree(scene: Scene) -> str:
    """As caches of modules do: nothing in it can be written, nor can anything be added."""
    path = quoted(scene.add(scene.fresh(), "folder"))
    return f"mkdir -p {path}/a/b; echo 1 >{path}/a/one; echo 2 >{path}/a/b/two; chmod -R a-w {path}"


def _mode(scene: Scene) -> str:
    return scene.draw.choice(_MODES) if scene.repository is None else oct(scene.draw.choice(GIT_MODES))[2:]


def _open(path: bytes) -> str:
    """What is copied and then removed, in the place of being renamed, must be open for that, and for its attributes."""
    return f"chmod -R u+w {quoted(path)}"
