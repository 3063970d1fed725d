"""Remotes that a git command reaches."""

import re
from itertools import pairwise
from typing import NamedTuple

from handrail.policy.git_config import GitSetting, parse_git_config
from handrail.policy.network.hosts import HostMention, parse_ssh_mention, parse_url_mention
from handrail.policy.programs.options import split_git_options, split_options

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
    """Remotes of the repository around a folder, whose URLs only its configuration knows."""

    folder: str
    names: tuple[str, ...] = ()
    """Empty: git's default remote."""
    push: bool = False
    every: bool = False
    """Whether the command reaches all remotes."""
    modules: bool = False
    """Whether the command reaches the remotes of submodules too."""


def find_git_reach(words: Words, folder: str | None) -> tuple[HostMention | Remote, ...]:
    """Hosts and remotes that a git command names. `folder`: where it runs, None if that is unknown."""
    options, rest = split_git_options(words)
    folder = _find_repository_folder(options, folder)
    sub = rest[0] if rest else ""
    if sub not in _REMOTE:
        return ()
    valued = _LONG_VALUES.union(f"-{letter}" for letter in _VALUES.get(sub, ""))
    operands = tuple(argument.word for argument in split_options(rest[1:], valued) if not argument.option)
    urls = operands[:1] if sub in _WITH_REMOTE or sub == "clone" else operands
    mentions = tuple(mention for url in urls if (mention := parse_url_mention(url) or parse_ssh_mention(url)))
    remote = None if mentions or folder is None else _find_remote(sub, operands, rest, folder)
    return mentions if remote is None else (remote,)


def _find_remote(sub: str, operands: Words, rest: Words, folder: str) -> Remote | None:
    if sub in _WITH_REMOTE:
        every = sub in {"fetch", "pull"} and not {"--all", "--multiple"}.isdisjoint(rest)
        return Remote(folder, operands[:1], push=sub == "push", every=every)
    if sub == "remote" and operands[:1] in {("show",), ("update",)}:
        return Remote(folder, operands[1:], every=operands == ("update",))
    if sub == "submodule" and not _MODULES.isdisjoint(operands[:1]):
        return Remote(folder, modules=True)
    return Remote(folder, push=True) if sub == "lfs" else None


def _find_repository_folder(options: Words, folder: str | None) -> str | None:
    """The folder that git's global options lead to. None if it is another repository."""
    for option, value in pairwise((*options, "")):
        if option == "-C" and folder is not None:
            folder = value if value.startswith("/") or folder == "." else f"{folder}/{value}"
        if option.startswith(("--git-dir", "--work-tree")):
            return None
    return folder


_BRANCH = re.compile(r"ref: refs/heads/(.+)")


def list_remote_urls(remote: Remote, config: str, head: str = "", modules: str = "") -> tuple[str, ...]:
    """The URLs of a remote, by the texts of `config`, `HEAD` and `.gitmodules`.

    Included files and `url.….insteadOf` are not followed. The proxy refuses the hosts that git takes from these.
    """
    settings = parse_git_config(config).settings
    values: dict[str, list[str]] = {}
    for setting in settings:
        values.setdefault(setting.name, []).append(setting.value)
    remotes = list(
        dict.fromkeys(one.part for one in settings if (one.section, one.key) == ("remote", "url") and one.part)
    )
    default = _find_default_remote(values, remotes, head, push=remote.push)
    names = remotes if remote.every else remote.names or (default,)
    urls = [url for name in names for url in _list_urls(values, name, push=remote.push)]
    if remote.modules:
        urls += (*_list_submodule_urls(settings), *_list_submodule_urls(parse_git_config(modules).settings))
    return tuple(dict.fromkeys(urls))


def _find_default_remote(values: dict[str, list[str]], remotes: list[str], head: str, *, push: bool) -> str:
    branch = _BRANCH.match(head.strip())
    name = branch[1] if branch else ""
    push_names = (*values.get("remote.pushdefault", ()), *values.get(f"branch.{name}.pushremote", ())) if push else ()
    names = (*values.get(f"branch.{name}.remote", ()), *push_names)
    if names:
        return names[-1]
    return remotes[0] if len(remotes) == 1 else "origin"


def _list_urls(values: dict[str, list[str]], name: str, *, push: bool) -> list[str]:
    urls = values.get(f"remote.{name}.pushurl") if push else None
    # An unknown name is a repository itself: a URL, or a path on this machine.
    return urls or values.get(f"remote.{name}.url") or [name]


def _list_submodule_urls(settings: tuple[GitSetting, ...]) -> list[str]:
    return [setting.value for setting in settings if (setting.section, setting.key) == ("submodule", "url")]
