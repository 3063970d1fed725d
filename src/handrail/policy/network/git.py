"""What a git command reaches: URLs among its words, and remotes whose URLs its repository knows."""

from collections.abc import Iterator
from typing import NamedTuple

from handrail.policy.commands.wrappers import GIT_VALUES
from handrail.policy.network.addresses import HostMention, parse_ssh_mention, parse_url_mention

Words = tuple[str, ...]

_WITH_REMOTE = frozenset({"push", "fetch", "pull", "ls-remote"})
_OTHERS = "clone submodule remote lfs fetch-pack send-pack http-fetch http-push svn p4 subtree request-pull"
_REMOTE = _WITH_REMOTE | frozenset(_OTHERS.split())
_VALUES = {"clone": "bocju", "fetch": "jo", "pull": "josX", "push": "o", "ls-remote": "o"}
"""Short options with a value, by sub-command."""
_LONG = """
    --upload-pack --receive-pack --exec --depth --shallow-since --shallow-exclude --deepen --refmap --server-option
    --negotiation-tip --jobs --branch --origin --config --reference --reference-if-able --separate-git-dir --template
    --filter --sort --push-option --strategy --strategy-option --revision --bundle-uri --ref-format
"""
_LONG_VALUES = frozenset(_LONG.split())
_MODULES = frozenset({"update", "init", "sync", "foreach"})


class Remote(NamedTuple):
    """Remotes of the repository around a folder."""

    folder: str
    names: tuple[str, ...] = ()
    """Empty: the one that git takes where none is named."""
    push: bool = False
    every: bool = False
    """Whether all remotes are meant."""
    modules: bool = False
    """Whether what its submodules come from is meant too."""


class GitReach(NamedTuple):
    """What one git command reaches."""

    named: tuple[HostMention, ...] = ()
    remotes: tuple[Remote, ...] = ()


def find_git_reach(words: Words, folder: str | None) -> GitReach:
    """What the words of a git command name; `folder`: where it runs, None where nobody knows."""
    rest, folder = _sub_command(words, folder)
    sub = rest[0] if rest else ""
    if sub not in _REMOTE:
        return GitReach()
    operands = tuple(_operands(rest[1:], _VALUES.get(sub, "")))
    named = tuple(_named(operands[:1] if sub in _WITH_REMOTE or sub == "clone" else operands))
    if named or folder is None:
        return GitReach(named)
    remote = _remote(sub, operands, rest, folder)
    return GitReach((), () if remote is None else (remote,))


def _remote(sub: str, operands: Words, rest: Words, folder: str) -> Remote | None:
    if sub in _WITH_REMOTE:
        every = sub in {"fetch", "pull"} and not {"--all", "--multiple"}.isdisjoint(rest)
        return Remote(folder, operands[:1], push=sub == "push", every=every)
    if sub == "remote" and operands[:1] in {("show",), ("update",)}:
        return Remote(folder, operands[1:], every=operands == ("update",))
    if sub == "submodule" and not _MODULES.isdisjoint(operands[:1]):
        return Remote(folder, modules=True)
    return Remote(folder, push=True) if sub == "lfs" else None


def _named(operands: Words) -> Iterator[HostMention]:
    for word in operands:
        found = parse_url_mention(word) or parse_ssh_mention(word)
        if found is not None:
            yield found


def _sub_command(words: Words, folder: str | None) -> tuple[Words, str | None]:
    """The words from the sub-command on, and the folder that `-C` leads to."""
    place = 1
    while place < len(words) and words[place].startswith("-"):
        value = words[place + 1] if place + 1 < len(words) else ""
        if words[place] == "-C" and folder is not None:
            folder = value if value.startswith("/") or folder == "." else f"{folder}/{value}"
        if words[place].startswith(("--git-dir", "--work-tree")):
            folder = None
        place += 2 if words[place] in GIT_VALUES else 1
    return words[place:], folder


def _operands(words: Words, short: str) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word == "--":
            yield from rest
        elif word in _LONG_VALUES or (word[:1] == "-" and word[1:2] != "-" and word[-1:] in short and len(word) > 1):
            next(rest, None)
        elif not word.startswith("-"):
            yield word
