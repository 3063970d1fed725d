"""What scripts do with git."""

from layer_scripts.scene import Scene, quoted
from layer_scripts.start import NOT_TRACKED


def begin(scene: Scene) -> str | None:
    if scene.repository is not None:
        return None
    scene.repository = b""
    return f"chmod -R u=rwX,go=rX .; git init -q .; {NOT_TRACKED}; git add -A; git commit -qm begun"


def commit(scene: Scene) -> str | None:
    return _git(scene, "add -A", f"commit -qm 'change {scene.number()}'")


def stage(scene: Scene) -> str | None:
    return _git(scene, "add -A")


def branch(scene: Scene) -> str | None:
    if scene.repository is None:
        return None
    scene.branches += 1
    return _git(scene, f"checkout -qb branch-{scene.branches}", "add -A", "commit -qm on-it")


def go_back(scene: Scene) -> str | None:
    return _git(scene, "checkout -qf main")


def go_to_a_branch(scene: Scene) -> str | None:
    return _git(scene, f"checkout -qf {_branch(scene)}")


def merge(scene: Scene) -> str | None:
    return _git(scene, f"merge -q --no-edit {_branch(scene)}", "merge --abort", needs_all=False)


def rebase(scene: Scene) -> str | None:
    return _git(scene, "rebase -q main", "rebase --abort", needs_all=False)


def cherry_pick(scene: Scene) -> str | None:
    return _git(scene, f"cherry-pick {_branch(scene)}", "cherry-pick --abort", needs_all=False)


def stash(scene: Scene) -> str | None:
    return _git(scene, "stash -qu")


def stash_and_take_back(scene: Scene) -> str | None:
    return _git(scene, "stash -q", "stash pop -q", needs_all=False)


def collect_garbage(scene: Scene) -> str | None:
    return _git(
        scene, scene.draw.choice(("gc -q --prune=now", "gc -q", "repack -adq", "repack -Adq", "pack-refs --all"))
    )


def forget(scene: Scene) -> str | None:
    return _git(scene, "reflog expire --expire=now --all", "gc -q --prune=now")


def reset(scene: Scene) -> str | None:
    return _git(scene, scene.draw.choice(("reset -q --hard", "reset -q --hard HEAD~1", "reset -q --soft HEAD~1")))


def clean(scene: Scene) -> str | None:
    return _git(scene, "clean -fdq")


def tag(scene: Scene) -> str | None:
    return _git(scene, f"tag -f v{scene.draw.randrange(3)}", "tag -fam words annotated")


def remove(scene: Scene) -> str | None:
    path = scene.file()
    return path and _git(scene, f"rm -q --ignore-unmatch --cached {quoted(path)}")


def restore(scene: Scene) -> str | None:
    return _git(scene, "checkout -q -- .")


def set_up(scene: Scene) -> str | None:
    return _git(scene, f"config user.note {scene.number()}")


def _git(scene: Scene, *commands: str, needs_all: bool = True) -> str | None:
    if scene.repository is None:
        return None
    where = f"git -C {quoted(scene.repository)} " if scene.repository else "git "
    return (" && " if needs_all else "; ").join(where + command for command in commands)


def _branch(scene: Scene) -> str:
    names = ["old", *(f"branch-{number}" for number in range(1, scene.branches + 1))]
    return scene.draw.choice(names)
