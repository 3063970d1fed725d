"""What scripts do to files."""

from layer_scripts.scene import Scene, quoted

_LARGE = 20_000_000


def create(scene: Scene) -> str:
    return f"{_text(scene)} >{quoted(scene.add(scene.fresh(), 'file'))}"


def create_many(scene: Scene) -> str:
    path = scene.add(scene.fresh(), "folder")
    return f"mkdir -p {quoted(path)}; for n in $(seq 40); do echo $n >{quoted(path)}/part-$n; done"


def overwrite(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"{_text(scene)} >{quoted(path)}"


def overwrite_with_the_same(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"kept=$(base64 -w0 <{quoted(path)}); base64 -d <<<$kept >{quoted(path)}"


def append(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"{_text(scene)} >>{quoted(path)}"


def truncate(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"truncate -s {scene.draw.choice((0, 1, 7, 4096, 10_000))} {quoted(path)}"


def write_in_the_middle(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"printf middle | dd of={quoted(path)} bs=1 seek={scene.number()} conv=notrunc status=none"


def edit_by_rename(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"sed -i '1s/^/row /' {quoted(path)}"


def replace_by_rename(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"{_text(scene)} >staged.tmp; mv -f staged.tmp {quoted(path)}"


def rename(scene: Scene) -> str | None:
    path = scene.file()
    if path is None:
        return None
    new = scene.fresh()
    scene.move(path, new)
    return f"mv {quoted(path)} {quoted(new)}"


def rename_over(scene: Scene) -> str | None:
    path, other = scene.file(), scene.file()
    if path is None or other is None or path == other:
        return None
    scene.move(path, other)
    return f"mv -f {quoted(path)} {quoted(other)}"


def swap(scene: Scene) -> str | None:
    one, other = scene.file(), scene.file()
    if one is None or other is None:
        return None
    return f"mv {quoted(one)} swapped.tmp; mv {quoted(other)} {quoted(one)}; mv swapped.tmp {quoted(other)}"


def copy(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"cp -p {quoted(path)} {quoted(scene.add(scene.fresh(), 'file'))}"


def delete(scene: Scene) -> str | None:
    path = scene.any("file", "shared")
    if path is None:
        return None
    scene.remove(path)
    return f"rm -f {quoted(path)}"


def delete_and_make_anew(scene: Scene) -> str | None:
    path = scene.file()
    return path and f"rm -f {quoted(path)}; {_text(scene)} >{quoted(path)}"


def make_and_delete(scene: Scene) -> str:
    path = quoted(scene.fresh())
    return f"{_text(scene)} >{path}; rm {path}"


def touch(scene: Scene) -> str | None:
    path = scene.any("file", "folder", "shared")
    return path and f"touch {quoted(path)}"


def date_back(scene: Scene) -> str:
    path = quoted(scene.add(scene.fresh(), "file"))
    return f"{_text(scene)} >{path}; touch -d '2001-02-03 04:05:06.789' {path}"


def make_sparse(scene: Scene) -> str:
    path = quoted(scene.add(scene.fresh(), "file"))
    return f"truncate -s 3M {path}; printf end | dd of={path} bs=1 seek=2000000 conv=notrunc status=none"


def make_large(scene: Scene) -> str:
    path = quoted(scene.add(scene.fresh(), "file"))
    noise = f"import random, sys; sys.stdout.buffer.write(random.Random({scene.number()}).randbytes({_LARGE}))"
    return f'/usr/bin/python3 -I -S -c "{noise}" >{path}; cp {path} large-copy; printf x >>large-copy'


def hide_things_in_it(scene: Scene) -> str | None:
    """Extended attributes of the user's own. Alone they are no change that is kept."""
    path = scene.file()
    code = f"import os, sys; os.setxattr(os.fsencode(sys.argv[1]), 'user.note', b'{scene.number()}')"
    return path and f'/usr/bin/python3 -I -S -c "{code}" {quoted(path)}; {_text(scene)} >>{quoted(path)}'


def hide_less_in_it(scene: Scene) -> str | None:
    path = scene.file()
    code = "import os, sys; os.removexattr(os.fsencode(sys.argv[1]), 'user.origin')"
    return path and f'/usr/bin/python3 -I -S -c "{code}" {quoted(path)} 2>/dev/null; {_text(scene)} >>{quoted(path)}'


def _text(scene: Scene) -> str:
    number = scene.number()
    return scene.draw.choice(
        (f"echo text {number}", f"seq {number}", f"printf 'no end {number}'", f"printf '\\0{number}\\377'")
    )
