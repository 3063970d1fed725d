"""What is never done, whatever the mode, the rules and the grants: found by a command's words, each by its own rule."""

import re
from base64 import b64decode

from handrail.policy.commands.places import PlaceKind, find_place_kind
from handrail.policy.commands.reading import BuiltinDeny
from handrail.policy.commands.targets import Act, CommandTarget, list_targets, split_program
from handrail.policy.commands.wrappers import SHELLS

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
