"""Puts a layer over the roots, in a mount namespace of its own, and starts the rest of the sandbox in it."""

import os

from handrail.sandbox.layer.layer import Layer, Overlaid

UNSHARE = ("/usr/bin/unshare", "/bin/unshare")
MOUNT = ("/usr/bin/mount", "/bin/mount")


def under_layer(argv: tuple[str, ...], layer: Layer, *, bash: str, unshare: str, mount: str) -> tuple[str, ...]:
    """What to start in the place of a program, so that the layer lies over the roots for it and for nobody else."""
    script = "".join(_mounting(over, mount, precise=layer.precise_links) for over in layer.overlaid)
    words = (word for over in layer.overlaid for word in (over.root, *over.below, over.upper, over.work))
    # As root in a user namespace: the program mount asks for no more.
    namespaces = ("--mount",) if os.geteuid() == 0 else ("--map-root-user", "--mount")
    # -p: what BASH_ENV names is for the command's own shell.
    shell = (bash, "--noprofile", "--norc", "-p", "-c", f'{script}exec "$@"', "handrail")
    return (unshare, *namespaces, "--", *shell, *words, *argv)


def _mounting(over: Overlaid, mount: str, *, precise: bool) -> str:
    """Folders are named by descriptors: no character in a path means anything to overlayfs then."""
    count = len(over.below) + 3
    names = [f"f{number}" for number in range(1, count + 1)]
    opened = " ".join(f'{{{name}}}<"${{{number}}}"' for number, name in enumerate(names, start=1))
    named = [f"/proc/self/fd/${name}" for name in names]
    lower = ":".join((*named[1:-2], named[0]))
    options = f"lowerdir={lower},upperdir={named[-2]},workdir={named[-1]},userxattr,volatile"
    options += ",index=on" if precise else ""
    closed = " ".join(f"{{{name}}}<&-" for name in names)
    mounted = f'{mount} -t overlay -o "{options}" handrail "$1" || exit 125'
    return f"exec {opened} || exit 125; {mounted}; exec {closed}; shift {count}; "
