"""The trees that scripts begin with."""

import os
import random
import subprocess
from pathlib import Path

from layer_scripts.scene import Scene

GIT = {
    "GIT_AUTHOR_NAME": "A Person",
    "GIT_AUTHOR_EMAIL": "person@example.org",
    "GIT_AUTHOR_DATE": "2026-01-02T03:04:05+0000",
    "GIT_COMMITTER_NAME": "A Person",
    "GIT_COMMITTER_EMAIL": "person@example.org",
    "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+0000",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "pack.threads",  # several of them do not always come to the same pack
    "GIT_CONFIG_VALUE_0": "1",
    "GIT_CONFIG_KEY_1": "init.defaultBranch",
    "GIT_CONFIG_VALUE_1": "main",
    "GIT_CONFIG_KEY_2": "gc.auto",
    "GIT_CONFIG_VALUE_2": "0",
}
"""With this, what git writes depends on nothing but what it is told."""
NOT_TRACKED = "mkdir -p .git/info; echo linked/ >>.git/info/exclude"
"""Keeps git from files with several names: it replaces one after the other."""
GIT_MODES = (0o644, 0o755)
"""Those that git gives. Whether it writes a file anew that holds the same is up to times and numbers of the file."""
_FILE_MODES = (0o644, 0o644, 0o644, 0o755, 0o600, 0o444)
_FOLDER_MODES = (0o755, 0o755, 0o755, 0o755, 0o700, 0o775, 0o555)
_LONG_AGO = 1_500_000_000


def make_tree(place: Path, draw: random.Random, *, precise: bool) -> Scene:
    """Fills an empty folder; what a script may count on there."""
    scene = Scene(draw, precise=precise)
    root = os.fsencode(place)
    has_repository = draw.random() < 0.4
    for _ in range(draw.randrange(2, 8)):
        os.mkdir(root + b"/" + scene.add(scene.fresh(), "folder"))
    for _ in range(draw.randrange(5, 30)):
        _file(root, scene, GIT_MODES if has_repository else _FILE_MODES)
    for _ in range(draw.randrange(0, 4)):
        _link(root, scene)
    if draw.random() < 0.5:
        _shared(root, scene)
    if has_repository:
        _repository(place, scene)
    for path, kind in scene.kinds.items():
        if kind == "folder":
            os.chmod(root + b"/" + path, draw.choice(_FOLDER_MODES))
    return scene


def _file(root: bytes, scene: Scene, modes: tuple[int, ...]) -> None:
    draw, path = scene.draw, scene.add(scene.fresh(), "file")
    size = draw.choice((0, 1, 20, 300, 5_000, 70_000))
    data = draw.randbytes(size) if draw.random() < 0.2 else b"".join(b"line %d\n" % line for line in range(size // 8))
    with open(root + b"/" + path, "wb") as file:
        file.write(data)
    if draw.random() < 0.1:
        os.setxattr(root + b"/" + path, "user.origin", b"start")
    os.chmod(root + b"/" + path, draw.choice(modes))
    os.utime(root + b"/" + path, (_LONG_AGO, _LONG_AGO))


def _link(root: bytes, scene: Scene) -> None:
    target = scene.draw.choice((scene.any("file", "folder") or b"nothing", b"nowhere/at all", b"."))
    os.symlink(target, root + b"/" + scene.add(scene.fresh(), "link"))


def _shared(root: bytes, scene: Scene) -> None:
    """Two files with several names, all in one folder."""
    for folder in (b"linked", b"linked/deep"):
        os.mkdir(root + b"/" + scene.add(folder, "folder"))
    for word in (b"one", b"two"):
        first = root + b"/" + scene.add(b"linked/" + word, "shared")
        with open(first, "wb") as file:
            file.write(word * scene.draw.randrange(1, 3000))
        for other in (b"linked/deep/" + word, b"linked/" + word + b" again"):
            os.link(first, root + b"/" + scene.add(other, "shared"))


def _repository(place: Path, scene: Scene) -> None:
    folders = [path for path, kind in scene.kinds.items() if kind == "folder" and not path.startswith(b"linked")]
    scene.repository = scene.draw.choice((b"", b"", scene.draw.choice(folders)))
    where = os.path.join(os.fsencode(place), scene.repository)
    lines = ["git init -q .", NOT_TRACKED, "git add -A", "git commit -qm first --allow-empty"]
    if scene.draw.random() < 0.5:
        lines += ["git branch old", "echo more >>tracked", "git add tracked", "git commit -qm second", "git gc -q"]
    environment = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **GIT}
    subprocess.run(["/bin/sh", "-ec", "\n".join(lines)], cwd=where, env=environment, check=True, capture_output=True)
