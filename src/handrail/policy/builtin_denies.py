"""Commands that never run, in any mode, under any rule or grant."""

import posixpath
import re
from base64 import b64decode
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Literal

import msgspec

from handrail.policy.programs.options import LooseArgument, split_options
from handrail.policy.programs.spec import SINKS, to_base_name
from handrail.policy.programs.wrapper_table import FIND_EXEC_OPTIONS, SHELLS

Act = Literal["delete", "rights", "write"]
PlaceKind = Literal["root", "home", "below home", "workspace", "device"]
RIGHTS = frozenset(["chmod", "chown", "chgrp", "chattr", "setfacl"])
"""Programs that change the permissions or the owner of a file, not its content."""


class BuiltinDeny(msgspec.Struct, frozen=True):
    """Why a command never runs: the rule, and what the command would do."""

    rule: str
    reason: str


class CommandTarget(msgspec.Struct, frozen=True):
    """A word that names what a command acts on."""

    path: str
    act: Act
    whole: bool = False
    """Whether the act covers everything in a folder."""


FORK_BOMB = BuiltinDeny("deny.fork-bomb", "starts itself again and again until the machine hangs")

_MAX_SHOWN_PATH_CHARS = 80
_PLACE_RULES: dict[PlaceKind, tuple[str, str]] = {
    "root": ("deny.delete-root", "the root of the file system"),
    "home": ("deny.home", "a home folder as a whole"),
    "below home": ("deny.outside", "what is outside the workspace"),
    "workspace": ("deny.workspace", "the workspace as a whole"),
    "device": ("deny.device", "a device"),
}
_ACTS: dict[Act, str] = {"delete": "deletes", "rights": "changes the rights of", "write": "writes to"}


def find_builtin_deny(
    words: tuple[str, ...], writes: tuple[str, ...] = (), *, literal: bool = False
) -> BuiltinDeny | None:
    """Why a command never runs. `writes`: files of its output. `literal`: nothing is left to expand, as in `$HOME`."""
    found = _deny_program(words) if words else None
    if found:
        return found
    targets = (*list_targets(words), *(CommandTarget(path, "write") for path in writes))
    return next((denied for target in targets if (denied := _deny_target(target, literal=literal))), None)


def list_targets(words: tuple[str, ...]) -> tuple[CommandTarget, ...]:
    """The targets that a command deletes, overwrites or changes the rights of. An unknown option hides none."""
    name, rest = _split_program(words) if words else ("", ())
    return tuple(_list_program_targets(name, rest)) if name in _ACTING else ()


def _deny_target(target: CommandTarget, *, literal: bool) -> BuiltinDeny | None:
    place = _find_place_kind(target.path, literal=literal)
    if place is None or not _is_denied(place, target):
        return None
    if place == "home" and target.act == "write":  # a file in a home folder does not replace the folder
        place = "below home"
    rule, name = _PLACE_RULES[place]
    return BuiltinDeny(rule, f"{_ACTS[target.act]} {name} ({target.path[:_MAX_SHOWN_PATH_CHARS]})")


def _is_denied(place: PlaceKind, target: CommandTarget) -> bool:
    if place == "device":
        return target.act == "write"
    if place == "workspace":
        return target.whole
    # A write into / or an absolute folder is judged by where it leads, which the words do not tell.
    return target.act != "write" or not target.path.startswith("/")


# Programs that are denied as such.

_FORMATTERS = frozenset(["mkfs", "mke2fs", "mkdosfs", "mkntfs", "mkswap"])
_SHUTDOWNS = frozenset(["shutdown", "reboot", "halt", "poweroff"])
_SYSTEMD_VERBS = frozenset(["poweroff", "reboot", "halt", "kexec", "soft-reboot"])
_SYSTEMD_UNITS = frozenset(f"{verb}.target" for verb in (*_SYSTEMD_VERBS, "shutdown", "runlevel0", "runlevel6"))
_POWERSHELLS = frozenset(["pwsh", "powershell"])
_CMDLETS = frozenset(["invoke-webrequest", "iwr", "invoke-restmethod", "irm", "start-bitstransfer"])
_DOWNLOAD = re.compile(
    rf"(?<![\w./\\-])(?:{'|'.join(sorted(_CMDLETS))})(?![\w./\\-])"
    r"|\bnet\.webclient\b|\.download(?:string|file|data)\b|\bnet\.http\.httpclient\b",
    re.IGNORECASE,
)
_BOMB = re.compile(r"([\w.:@%+-]{1,80})\s*\(\s*\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def _deny_program(words: tuple[str, ...]) -> BuiltinDeny | None:
    name, rest = _split_program(words)
    if not _is_workspace_program(words[0]):
        if name in _FORMATTERS or name.startswith("mkfs."):
            return BuiltinDeny("deny.format", f"{name} replaces a file system by a new one")
        if _stops_machine(name, [word for word in rest if not word.startswith("-")]):
            return BuiltinDeny("deny.shutdown", f"{name} stops the machine")
    lower = name.lower().removesuffix(".exe")
    if lower in _CMDLETS or (lower in _POWERSHELLS and any(_is_download(word) for word in rest)):
        return BuiltinDeny("deny.powershell-download", "PowerShell downloads what nobody has seen")
    return FORK_BOMB if (name in SHELLS or name == "eval") and _BOMB.search(" ".join(rest)) else None


def _split_program(words: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The base name of the program and its arguments. `busybox rm x` is rm."""
    name = to_base_name(words[0])
    return _split_program(words[1:]) if name in {"busybox", "toybox"} and len(words) > 1 else (name, words[1:])


def _is_workspace_program(word: str) -> bool:
    """Whether a program is a file of the workspace, such as ./halt. Then its name says nothing."""
    return "/" in word and not word.startswith("/") and ".." not in word.split("/")


def _stops_machine(name: str, operands: list[str]) -> bool:
    first = operands[0] if operands else ""
    if name in {"init", "telinit"}:
        return first in {"0", "6"}
    if name in {"systemctl", "loginctl"}:
        units = {f"{unit}.target" if first == "isolate" and "." not in unit else unit for unit in operands}
        return first in _SYSTEMD_VERBS or (first in {"start", "isolate"} and not _SYSTEMD_UNITS.isdisjoint(units))
    return name in _SHUTDOWNS


def _is_download(word: str) -> bool:
    """Also without the backticks that PowerShell drops, and encoded as PowerShell takes commands."""
    return any(_DOWNLOAD.search(text) for text in (word, word.replace("`", ""), _decode(word)))


def _decode(word: str) -> str:
    try:
        return b64decode(word, validate=True).decode("utf-16-le")
    except ValueError:
        return ""


# What a command acts on.

_DELETING = frozenset(["rm", "rmdir", "unlink", "shred", "srm", "trash"])
_WRITING = frozenset(["tee", "touch", "mkdir", "truncate", "mkfifo", "mknod", "wipefs", "blkdiscard"])
_COPYING = frozenset(["mv", "cp", "ln", "install", "rsync"])
_FIND_START_OPTIONS = frozenset(["-H", "-L", "-P"])
_FIND_WRITE_OPTIONS = frozenset(["-fprint", "-fprint0", "-fprintf", "-fls"])
_IN_PLACE = {
    "sed": re.compile(r"-[A-Za-z]*i.*|--in-place.*"),
    "perl": re.compile(r"-[acdlnpsw0-9]*i.*"),
    "ruby": re.compile(r"-[aclnpsw0-9]*i.*"),
}
"""The option with which a program overwrites its operands."""
_CODE = {
    "sed": re.compile(r"-[Enrsuz]*[ef].*|--expression.*|--file.*"),
    "perl": re.compile(r"-[A-Za-z0-9]*[eE].*"),
    "ruby": re.compile(r"-[A-Za-z0-9]*e.*"),
}
"""The option with the code. Without it the first operand is the code."""
_ACTING = frozenset([*_DELETING, *RIGHTS, *_WRITING, *_COPYING, *_IN_PLACE, "dd", "find"])
_TARGET_OPTIONS = frozenset(["-t", *("--target-directory"[:size] for size in range(3, 19))])
"""`--target-directory` and its abbreviations."""
_VALUES = {
    "mv": "tS", "cp": "tS", "ln": "tS", "install": "tSgmo", "rsync": "efTBM", "touch": "dtr", "mkdir": "m",
    "truncate": "sr", "shred": "ns", "mknod": "m", "mkfifo": "m", "sed": "efl", "perl": "eE", "ruby": "e",
}  # fmt: skip
"""Letters of the short options with a value."""
_LONG_VALUED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("mv", "cp", "ln", "install"), _TARGET_OPTIONS),
    "sed": frozenset(["--expression", "--file"]),
}


def _list_program_targets(name: str, rest: tuple[str, ...]) -> Iterator[CommandTarget]:
    valued = {*(f"-{letter}" for letter in _VALUES.get(name, "")), *_LONG_VALUED.get(name, ())}
    arguments = list(split_options(rest, valued))
    options = [argument.word for argument in arguments if argument.option]
    operands = [argument.word for argument in arguments if not argument.option]
    if name in _DELETING:
        yield from (CommandTarget(operand, "delete", whole=True) for operand in operands)
    elif name in RIGHTS:
        whole = any("R" in option or option == "--recursive" for option in options)
        yield from (CommandTarget(operand, "rights", whole) for operand in operands)
    elif name in _WRITING:
        yield from (CommandTarget(operand, "write") for operand in operands)
    elif name in _IN_PLACE:
        yield from (CommandTarget(operand, "write") for operand in _list_overwritten(name, options, operands))
    elif name in _COPYING:
        yield from _list_copy_targets(name, arguments, operands)
    elif name == "dd":
        yield from (CommandTarget(operand[3:], "write") for operand in operands if operand.startswith("of="))
    else:  # find
        yield from (CommandTarget(path, "write") for word, path in pairwise(rest) if word in _FIND_WRITE_OPTIONS)
        yield from (CommandTarget(start, "delete") for start in _list_find_starts(rest) if _has_deletion(rest))


def _list_copy_targets(name: str, arguments: list[LooseArgument], operands: list[str]) -> Iterator[CommandTarget]:
    folders = [argument.value for argument in arguments if argument.option in _TARGET_OPTIONS and argument.value]
    sources = operands if folders or len(operands) == 1 else operands[:-1]
    destinations = folders or operands[len(sources) :]
    yield from (CommandTarget(folder, "write") for folder in destinations)
    if name == "mv":
        yield from (CommandTarget(source, "delete", whole=True) for source in sources)
    if name == "rsync" and any(argument.word.startswith("--del") for argument in arguments):
        yield from (CommandTarget(folder, "delete") for folder in destinations)


def _list_overwritten(name: str, options: list[str], operands: list[str]) -> list[str]:
    if not any(_IN_PLACE[name].fullmatch(option) for option in options):
        return []
    if any(_CODE[name].fullmatch(option) for option in options):
        return operands
    return operands[2:] if operands[:1] == [""] else operands[1:]  # BSD sed wants a suffix, which may be empty


def _has_deletion(rest: tuple[str, ...]) -> bool:
    # The inner command is judged by itself too, but its words do not tell the files.
    programs = {after.rpartition("/")[2] for word, after in pairwise(rest) if word in FIND_EXEC_OPTIONS}
    return "-delete" in rest or not programs.isdisjoint(_DELETING | RIGHTS)


def _list_find_starts(rest: tuple[str, ...]) -> Iterator[str]:
    """The paths that find starts from: the words before its first expression."""
    place = 0
    while place < len(rest) and (rest[place] in _FIND_START_OPTIONS or rest[place].startswith(("-O", "-D"))):
        place += 2 if rest[place] == "-D" else 1
    return takewhile(lambda word: not word.startswith(("-", "(", "!")), rest[place:])


# Places that no command may delete or overwrite, by their spelling.

_HOME = re.compile(r"(?:~(?![+-])[\w.-]*|\$HOME(?!\w)|\$\{HOME(?!\w)[^}]*\})(/.*)?", re.DOTALL)
_WORKING_FOLDER = re.compile(r"(?:~\+|\$PWD(?!\w)|\$\{PWD(?!\w)[^}]*\}|\$\(\s*pwd\s*\)|`\s*pwd\s*`)(/.*)?", re.DOTALL)
_EVERYTHING = re.compile(r"\?*\*[*?]*|\.\*|\.\[[!^]\.\]\*|\.\?\?\*")
_ANY_HOME = "/home/someone"
_HOMES = re.compile(r"/root|/var/root|/(?:home|Users)(?:/[^/]+)?")


def _find_place_kind(word: str, *, literal: bool) -> PlaceKind | None:
    """The place that a word stands for. Unless it is `literal`, bash expands `~` and `$HOME`."""
    home = None if literal else _HOME.fullmatch(word)
    folder = None if literal else _WORKING_FOLDER.fullmatch(word)
    spelled = _ANY_HOME + (home[1] or "") if home else "." + (folder[1] or "") if folder else word
    path = posixpath.normpath(spelled)
    if path.startswith("/"):
        return _find_absolute_kind("/" + path.lstrip("/")) or ("below home" if home else None)
    return "workspace" if path == "." and word else None


def _find_absolute_kind(path: str) -> PlaceKind | None:
    while _EVERYTHING.fullmatch(posixpath.basename(path)):  # a pattern for everything in it stands for the folder
        path = posixpath.dirname(path)
    if path == "/":
        return "root"
    if _HOMES.fullmatch(path):
        return "home"
    return "device" if path.startswith("/dev/") and path not in SINKS else None
