"""What a command deletes, overwrites or changes the rights of, read leniently: an unknown option hides nothing."""

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Literal

import msgspec

Act = Literal["delete", "rights", "write"]

_DELETING = frozenset(["rm", "rmdir", "unlink", "shred", "srm", "trash"])
RIGHTS = frozenset(["chmod", "chown", "chgrp", "chattr", "setfacl"])
"""Change who may do what with a file, not what is in it."""
_WRITING = frozenset(["tee", "touch", "mkdir", "truncate", "mkfifo", "mknod", "wipefs", "blkdiscard"])
_PLACING = frozenset(["mv", "cp", "ln", "install", "rsync"])
_MANY_IN_ONE = frozenset(["busybox", "toybox"])
RUNNING = frozenset(["-exec", "-execdir", "-ok", "-okdir"])
"""Behind these find has the words of a command."""
_STARTING = frozenset(["-H", "-L", "-P"])
"""What may stand before the places that find begins at."""
_FILING = frozenset(["-fprint", "-fprint0", "-fprintf", "-fls"])
"""What makes find write to a file."""
_IN_PLACE = {
    "sed": re.compile(r"-[A-Za-z]*i.*|--in-place.*"),
    "perl": re.compile(r"-[acdlnpsw0-9]*i.*"),
    "ruby": re.compile(r"-[aclnpsw0-9]*i.*"),
}
"""Programs that write over the files they are given, and the option that says so …"""
_CODE = {
    "sed": re.compile(r"-[Enrsuz]*[ef].*|--expression.*|--file.*"),
    "perl": re.compile(r"-[A-Za-z0-9]*[eE].*"),
    "ruby": re.compile(r"-[A-Za-z0-9]*e.*"),
}
"""… and the one that says what to do; without it that is their first operand."""
_INTO = "--target-directory"
_LONG_VALUES = frozenset([_INTO, "--expression", "--file"])
_VALUES = {
    "mv": "tS", "cp": "tS", "ln": "tS", "install": "tSgmo", "rsync": "efTBM", "touch": "dtr", "mkdir": "m",
    "truncate": "sr", "shred": "ns", "mknod": "m", "mkfifo": "m", "sed": "efl", "perl": "eE", "ruby": "e",
}  # fmt: skip


class CommandTarget(msgspec.Struct, frozen=True):
    """A word that names what a command acts on."""

    path: str
    act: Act
    whole: bool = False
    """Whether all that is in a folder goes with it."""


def split_program(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The base name of the program and what it is given; of `busybox rm x` that is rm."""
    name = to_base_name(words[0])
    if name in _MANY_IN_ONE and len(words) > 1:
        return split_program(words[1:])
    return name, words[1:]


def to_base_name(word: str) -> str:
    """A program by whatever path it is called, also with the backslash that keeps aliases away."""
    return word.removeprefix("\\").rpartition("/")[2]


def list_targets(words: tuple[str, ...]) -> tuple[CommandTarget, ...]:
    """What the words say is deleted, written to, or changed in its rights."""
    return tuple(_targets(*split_program(words))) if words else ()


def _targets(name: str, rest: tuple[str, ...]) -> Iterator[CommandTarget]:
    options, operands = _sorted(rest, _VALUES.get(name, ""))
    if name in _DELETING:
        yield from (CommandTarget(operand, "delete", whole=True) for operand in operands)
    elif name in RIGHTS:
        whole = any(option.startswith("-") and ("R" in option or option == "--recursive") for option in options)
        yield from (CommandTarget(operand, "rights", whole) for operand in operands)
    elif name in _WRITING:
        yield from (CommandTarget(operand, "write") for operand in operands)
    elif name in _IN_PLACE:
        yield from (CommandTarget(operand, "write") for operand in _written_over(name, options, operands))
    elif name in _PLACING:
        yield from _placing(name, rest, operands)
    elif name == "dd":
        yield from (CommandTarget(operand[3:], "write") for operand in operands if operand.startswith("of="))
    elif name == "find":
        yield from (CommandTarget(path, "write") for word, path in pairwise(rest) if word in _FILING)
        yield from (CommandTarget(start, "delete") for start in _starts(rest) if _finds_to_delete(rest))


def _placing(name: str, rest: tuple[str, ...], operands: list[str]) -> Iterator[CommandTarget]:
    into = [] if name == "rsync" else list(_into(rest))
    sources = operands if into or len(operands) == 1 else operands[:-1]
    yield from (CommandTarget(folder, "write") for folder in into or operands[len(sources) :])
    if name == "mv":
        yield from (CommandTarget(source, "delete", whole=True) for source in sources)
    if name == "rsync" and any(word.startswith("--del") for word in rest):
        yield from (CommandTarget(folder, "delete") for folder in operands[len(sources) :])


def _into(rest: tuple[str, ...]) -> Iterator[str]:
    for place, word in enumerate(rest):
        if word == "--":
            return
        name, has_value, value = word.partition("=")
        if word == "-t" or (len(name) > 2 and _INTO.startswith(name)):
            yield from (value,) if has_value else rest[place + 1 : place + 2]
        elif word.startswith("-t"):
            yield word[2:]


def _sorted(rest: tuple[str, ...], values: str) -> tuple[list[str], list[str]]:
    """Options and operands. What may be either counts as an operand: the value of a long option that is unknown."""
    options: list[str] = []
    operands: list[str] = []
    words = iter(rest)
    for word in words:
        if word == "--":
            operands += words
        elif not word.startswith("-") or word == "-":
            operands.append(word)
        else:
            options.append(word)
            if word in _LONG_VALUES or (word[1] != "-" and word[-1] in values):
                next(words, None)
    return options, operands


def _written_over(name: str, options: list[str], operands: list[str]) -> list[str]:
    if not any(_IN_PLACE[name].fullmatch(option) for option in options):
        return []
    if any(_CODE[name].fullmatch(option) for option in options):
        return operands
    return operands[2:] if operands[:1] == [""] else operands[1:]  # an empty word is for a sed that wants a suffix


def _finds_to_delete(rest: tuple[str, ...]) -> bool:
    if "-delete" in rest:
        return True
    # An inner command is judged by itself as well, but of that the words do not say on what.
    runs = {following.rpartition("/")[2] for word, following in pairwise(rest) if word in RUNNING}
    return bool(runs & (_DELETING | RIGHTS))


def _starts(rest: tuple[str, ...]) -> Iterator[str]:
    """Where find begins: what stands before its first expression."""
    place = 0
    while place < len(rest) and (rest[place] in _STARTING or rest[place].startswith(("-O", "-D"))):
        place += 2 if rest[place] == "-D" else 1
    return takewhile(lambda word: not word.startswith(("-", "(", "!")), rest[place:])
