"""Remotes of a git repository."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from handrail.policy.network.hosts import HostMention, parse_ssh_mention, parse_url_mention
from handrail.policy.programs.options import split_git_options, split_options

# § [policy.network.git] What a git command reaches: URLs among its words, and remotes whose URLs its repository
# § knows.

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
    options, rest = split_git_options(words)
    folder = _find_repository_folder(options, folder)
    sub = rest[0] if rest else ""
    if sub not in _REMOTE:
        return GitReach()
    valued = _LONG_VALUES.union(f"-{letter}" for letter in _VALUES.get(sub, ""))
    operands = tuple(argument.word for argument in split_options(rest[1:], valued) if not argument.option)
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


def _find_repository_folder(options: Words, folder: str | None) -> str | None:
    """The folder that git's global options lead to. None if it is another repository."""
    for option, value in pairwise((*options, "")):
        if option == "-C" and folder is not None:
            folder = value if value.startswith("/") or folder == "." else f"{folder}/{value}"
        if option.startswith(("--git-dir", "--work-tree")):
            return None
    return folder


# § [policy.network.git_config] Reads what a repository's configuration says of its remotes. git itself, asked,
# § would run what is configured there.  What is included from other files, and `url.….insteadOf`, is not followed:
# § a host that git then comes to is refused, and named in the result.


_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)"\s*)?\]')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)", re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"?|(\\.)|([#;].*)|([^"\\#;]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "b": "\b"}
_INCLUDED = re.compile(r"path[ \t]*=[ \t]*(.*)", re.IGNORECASE)
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_BRANCH = re.compile(r"ref: refs/heads/(.+)")


class Setting(NamedTuple):
    """One line of it."""

    section: str
    part: str
    """`origin` of `[remote "origin"]`."""
    key: str
    value: str


Gathered = dict[tuple[str, str, str], list[str]]
"""Values by section, part and key, in the order of the file."""


def list_remote_urls(remote: "Remote", config: str, head: str = "", modules: str = "") -> tuple[str, ...]:
    """The URLs that are meant, by the texts of `config`, `HEAD` and `.gitmodules`."""
    settings = _gathered(config)
    names = _known(settings) if remote.every else remote.names or (_default(settings, head, push=remote.push),)
    found = [url for name in names for url in _urls(settings, name, push=remote.push)]
    if remote.modules:
        found += (*_of_modules(settings), *_of_modules(_gathered(modules)))
    return tuple(dict.fromkeys(found))


def parse_git_config(text: str) -> Iterator[Setting]:
    """Every setting, in order; what is no setting is passed over."""
    section, part = "", ""
    for line in _CONTINUED.sub(r"\1", text).splitlines():
        header = _SECTION.match(line)
        rest = line
        if header:
            section, rest = header[1].lower(), line[header.end() :]
            section, dot, old = section.partition(".")
            part = old if dot else _ESCAPE.sub(r"\1", header[2] or "")
        found = _KEY.fullmatch(rest)
        if found and section:
            yield Setting(section, part, found[1].lower(), _plain(found[2]))


def list_included_paths(text: str) -> tuple[str, ...]:
    """The files that a configuration may include, as it names them; some of them may be paths of another kind."""
    return tuple(filter(None, (_plain(found[1]) for found in _INCLUDED.finditer(_CONTINUED.sub(r"\1", text)))))


def _plain(written: str) -> str:
    """A value without its quotes, its escapes and the comment behind it."""
    text = ""
    for quoted, escaped, comment, bare in _PIECE.findall(written):
        if comment:
            break
        text += _ESCAPE.sub(lambda found: _LETTERS.get(found[1], found[1]), quoted + escaped) + bare
    return text.strip()


def _gathered(text: str) -> Gathered:
    """All settings by their names: a file can hold very many."""
    found: Gathered = {}
    for one in parse_git_config(text):
        found.setdefault((one.section, one.part, one.key), []).append(one.value)
    return found


def _default(settings: Gathered, head: str, *, push: bool) -> str:
    """The remote that git takes where none is named."""
    branch = _BRANCH.match(head.strip())
    name = branch[1] if branch else ""
    pushed = (*_values(settings, "remote", "", "pushdefault"), *_values(settings, "branch", name, "pushremote"))
    chosen = (*_values(settings, "branch", name, "remote"), *(pushed if push else ()))
    if chosen:
        return chosen[-1]
    known = _known(settings)
    return known[0] if len(known) == 1 else "origin"


def _urls(settings: Gathered, name: str, *, push: bool) -> list[str]:
    found = _values(settings, "remote", name, "pushurl") if push else []
    found = found or _values(settings, "remote", name, "url")
    # What is no remote is a repository itself: a URL, or a path that leads to no other machine.
    return found or [name]


def _known(settings: Gathered) -> list[str]:
    return [part for section, part, key in settings if (section, key) == ("remote", "url") and part]


def _of_modules(settings: Gathered) -> list[str]:
    found = [urls for (section, _, key), urls in settings.items() if (section, key) == ("submodule", "url")]
    return [url for urls in found for url in urls]


def _values(settings: Gathered, section: str, part: str, key: str) -> list[str]:
    return settings.get((section, part, key), [])
