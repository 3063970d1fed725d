"""Commands that never run."""

import posixpath
import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Literal

import msgspec

from handrail.policy.programs.classes import SHELLS
from handrail.policy.programs.spec import BuiltinDeny

# § [policy.commands.targets] What a command deletes, overwrites or changes the rights of, read leniently: an
# § unknown option hides nothing.

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


# § [policy.commands.places] Places that no command may delete or overwrite, by how a word spells them.

PlaceKind = Literal["root", "home", "below home", "workspace", "device"]

_HOME = re.compile(r"(?:~(?![+-])[\w.-]*|\$HOME(?!\w)|\$\{HOME(?!\w)[^}]*\})(/.*)?", re.DOTALL)
_FOLDER = re.compile(r"(?:~\+|\$PWD(?!\w)|\$\{PWD(?!\w)[^}]*\}|\$\(\s*pwd\s*\)|`\s*pwd\s*`)(/.*)?", re.DOTALL)
_EVERYTHING = re.compile(r"\?*\*[*?]*|\.\*|\.\[[!^]\.\]\*|\.\?\?\*")
_SOMEONE = "/home/someone"
_HOMES = re.compile(r"/root|/var/root|/(?:home|Users)(?:/[^/]+)?")
SINKS = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr"])
"""Devices that anything may be written to: they keep nothing."""


def find_place_kind(word: str, *, literal: bool) -> PlaceKind | None:
    """Which of these places a word stands for as a whole. Unless it is `literal`, bash expands `~` and `$HOME`."""
    home = None if literal else _HOME.fullmatch(word)
    folder = None if literal else _FOLDER.fullmatch(word)
    spelled = _SOMEONE + (home[1] or "") if home else "." + (folder[1] or "") if folder else word
    path = _plain(spelled)
    if path.startswith("/"):
        return _absolute(_without_everything(path)) or ("below home" if home else None)
    return "workspace" if path == "." and word else None


def _absolute(path: str) -> PlaceKind | None:
    if path == "/":
        return "root"
    if _HOMES.fullmatch(path):
        return "home"
    return "device" if path.startswith("/dev/") and path not in SINKS else None


def _plain(path: str) -> str:
    plain = posixpath.normpath(path)
    return "/" + plain.lstrip("/") if plain.startswith("/") else plain


def _without_everything(path: str) -> str:
    """The folder itself where the last names are patterns that match all that is in it."""
    while _EVERYTHING.fullmatch(posixpath.basename(path)):
        path = posixpath.dirname(path)
    return path


# § [policy.commands.denies] What is never done, whatever the mode, the rules and the grants: found by a command's
# § words, each by its own rule.

FORK_BOMB = BuiltinDeny("deny.fork-bomb", "starts itself again and again until the machine stands still")
"""Also for who finds by other means that a function starts itself."""

_MAX_SHOWN_PATH_CHARS = 80


def find_builtin_deny(
    words: tuple[str, ...], writes: tuple[str, ...] = (), *, literal: bool = False
) -> BuiltinDeny | None:
    """Why a command is never run, or None; `writes` are the files that its output goes to.

    `literal`: nothing in the words is left to expand, so that `$HOME` is a name like any other.
    """
    by_program = _by_program(words) if words else None
    if by_program:
        return by_program
    wanted = (*list_targets(words), *(CommandTarget(path, "write") for path in writes))
    return next((found for target in wanted if (found := _by_target(target, literal=literal))), None)


_FORMATTING = frozenset(["mkfs", "mke2fs", "mkdosfs", "mkntfs", "mkswap"])
_STOPPING = frozenset(["shutdown", "reboot", "halt", "poweroff"])
_VERBS = frozenset(["poweroff", "reboot", "halt", "kexec", "soft-reboot"])
_UNITS = frozenset(f"{verb}.target" for verb in (*_VERBS, "shutdown", "runlevel0", "runlevel6"))
_POWERSHELLS = frozenset(["pwsh", "powershell"])
_CMDLETS = frozenset(["invoke-webrequest", "iwr", "invoke-restmethod", "irm", "start-bitstransfer"])
_DOWNLOAD = re.compile(
    rf"(?<![\w./\\-])(?:{'|'.join(sorted(_CMDLETS))})(?![\w./\\-])"
    r"|\bnet\.webclient\b|\.download(?:string|file|data)\b|\bnet\.http\.httpclient\b",
    re.IGNORECASE,
)
_BOMB = re.compile(r"([\w.:@%+-]{1,80})\s*\(\s*\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def _by_program(words: tuple[str, ...]) -> BuiltinDeny | None:
    name, rest = split_program(words)
    if not _is_the_workspaces(words[0]):
        if name in _FORMATTING or name.startswith("mkfs."):
            return BuiltinDeny("deny.format", f"{name} makes a new file system over what is there")
        if _stops(name, [word for word in rest if not word.startswith("-")]):
            return BuiltinDeny("deny.shutdown", f"{name} stops the machine")
    lower = name.lower().removesuffix(".exe")
    if lower in _CMDLETS or (lower in _POWERSHELLS and any(_downloads(word) for word in rest)):
        return BuiltinDeny("deny.powershell-download", "PowerShell downloads what nobody has seen")
    return FORK_BOMB if (name in SHELLS or name == "eval") and _BOMB.search(" ".join(rest)) else None


def _downloads(word: str) -> bool:
    """As it stands, without the backticks that PowerShell drops, or encoded as it takes whole commands."""
    return any(_DOWNLOAD.search(text) for text in (word, word.replace("`", ""), _decoded(word)))


def _decoded(word: str) -> str:
    try:
        return b64decode(word, validate=True).decode("utf-16-le")
    except ValueError:
        return ""


def _is_the_workspaces(word: str) -> bool:
    """Whether a program is a file of the workspace, such as ./halt: its name then says nothing."""
    return "/" in word and not word.startswith("/") and ".." not in word.split("/")


def _stops(name: str, operands: list[str]) -> bool:
    first = operands[0] if operands else ""
    if name in {"init", "telinit"}:
        return first in {"0", "6"}
    if name in {"systemctl", "loginctl"}:
        units = {f"{one}.target" if first == "isolate" and "." not in one else one for one in operands}
        return first in _VERBS or (first in {"start", "isolate"} and not _UNITS.isdisjoint(units))
    return name in _STOPPING


_RULES: dict[PlaceKind, tuple[str, str]] = {
    "root": ("deny.delete-root", "the root of the file system"),
    "home": ("deny.home", "a home folder as a whole"),
    "below home": ("deny.outside", "what is outside the workspace"),
    "workspace": ("deny.workspace", "the workspace as a whole"),
    "device": ("deny.device", "a device"),
}
_ACTS: dict[Act, str] = {"delete": "deletes", "rights": "changes the rights of", "write": "writes to"}


def _by_target(target: CommandTarget, *, literal: bool) -> BuiltinDeny | None:
    place = find_place_kind(target.path, literal=literal)
    if place is None or not _is_denied(place, target):
        return None
    if place == "home" and target.act == "write":  # what is put into a home folder does not take its place
        place = "below home"
    rule, what = _RULES[place]
    return BuiltinDeny(rule, f"{_ACTS[target.act]} {what} ({target.path[:_MAX_SHOWN_PATH_CHARS]})")


def _is_denied(place: PlaceKind, target: CommandTarget) -> bool:
    """Putting something into / or an absolute folder is judged by where it leads, which these words do not tell."""
    if place == "device":
        return target.act == "write"
    if place == "workspace":
        return target.whole
    return target.act != "write" or not target.path.startswith("/")
