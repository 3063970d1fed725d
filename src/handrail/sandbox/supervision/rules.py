"""Landlock's rules for a command: what is allowed beneath which files and folders.

Landlock only adds rights: what is allowed beneath a folder cannot be taken back for a file in it. So where something in
a folder is hidden or sealed, the rights are given to what lies beside it, and the folder itself can only be listed:
names of hidden files can be seen there, and nothing new can be made.
"""

import os
import stat
from collections.abc import Iterable, Iterator

from handrail.kernel.landlock import (
    EXECUTE,
    FILE_RIGHTS,
    MAKE_DIR,
    MAKE_FIFO,
    MAKE_REG,
    MAKE_SOCK,
    MAKE_SYM,
    READ_DIR,
    READ_FILE,
    REFER,
    REMOVE_DIR,
    REMOVE_FILE,
    TRUNCATE,
    WRITE_FILE,
    Ruleset,
)
from handrail.protocol.errors import ToolError
from handrail.sandbox.confinement import SandboxProfile

READING = READ_FILE | READ_DIR | EXECUTE
MAKING = MAKE_DIR | MAKE_REG | MAKE_SYM | MAKE_FIFO | MAKE_SOCK
WRITING = WRITE_FILE | TRUNCATE | REMOVE_FILE | REMOVE_DIR | REFER | MAKING

_MAX_RULES = 2_000
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_KERNEL = ("/proc",)

LandlockRule = tuple[str, int]


def list_landlock_rules(
    profile: SandboxProfile, shown: Iterable[str], covered: Iterable[str]
) -> Iterator[LandlockRule]:
    """Paths and the rights beneath them; `shown` can be read besides the roots, and nothing that is `covered`."""
    hidden = {*covered, *profile.hidden_files, *profile.hidden_folders}
    for place in (*shown, *profile.read_only, *profile.writable):
        yield place, READ_DIR
        yield from ((part, READING) for part in _without(place, hidden))
    unwritable = {*hidden, *profile.read_only_paths, *profile.read_only}
    for place in profile.writable:
        yield from ((part, WRITING) for part in _without(place, unwritable))
    yield from ((device, READ_FILE | WRITE_FILE) for device in _DEVICES)
    yield from ((place, READ_FILE | READ_DIR) for place in _KERNEL)


def add_rules(ruleset: Ruleset, rules: Iterable[LandlockRule]) -> None:
    """Adds the rules; what is not there, or is a link, needs none."""
    for count, (path, rights) in enumerate(rules):
        if count == _MAX_RULES:
            raise ToolError(
                "SANDBOX_UNAVAILABLE",
                f"Too many files lie beside something hidden or sealed: there is room for {_MAX_RULES} rules, and"
                f" {path} is one more. Nothing was run. Install bubblewrap, or keep what is hidden in a folder with"
                " fewer files.",
            )
        _add(ruleset, path, rights)


def _add(ruleset: Ruleset, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # gone meanwhile, or out of the command's reach too
        return
    try:
        kind = os.fstat(place).st_mode
        rights &= ~0 if stat.S_ISDIR(kind) else FILE_RIGHTS
        # A link has no rights of its own, and who may talk to a socket is not a question of files.
        if rights and not stat.S_ISLNK(kind) and not stat.S_ISSOCK(kind):
            ruleset.allow(place, rights)
    finally:
        os.close(place)


def _without(place: str, exceptions: set[str]) -> Iterator[str]:
    """What together makes up the place without the exceptions; the place itself where none is in it."""
    return _parts(place, exceptions, {above for one in exceptions for above in _folders_above(one)})


def _parts(place: str, exceptions: set[str], ways: set[str]) -> Iterator[str]:
    if place in exceptions:
        return
    if place not in ways:
        yield place
        return
    try:
        names = os.listdir(place)
    except OSError:  # not a folder any more, or unreadable: nothing in it is allowed
        return
    for name in names:
        yield from _parts(os.path.join(place, name), exceptions, ways)


def _folders_above(path: str) -> Iterator[str]:
    while path != (above := os.path.dirname(path)):
        yield above
        path = above
