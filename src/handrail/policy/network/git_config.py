"""Reads what a repository's configuration says of its remotes. git itself, asked, would run what is configured there.

What is included from other files, and `url.….insteadOf`, is not followed: a host that git then comes to is refused, and
named in the result.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from handrail.policy.network.git import Remote

_SECTION = re.compile(r'\s*\[\s*([A-Za-z0-9.-]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_KEY = re.compile(r"\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)", re.DOTALL)
_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"?|\\(.)|([#;].*)|([^"\\#;]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_BRANCH = re.compile(r"ref: refs/heads/(.+)")


class Setting(NamedTuple):
    """One line of it."""

    section: str
    part: str
    """`origin` of `[remote "origin"]`."""
    key: str
    value: str


def urls_of(remote: Remote, config: str, head: str = "", modules: str = "") -> tuple[str, ...]:
    """The URLs that are meant, by the texts of `config`, `HEAD` and `.gitmodules`."""
    settings = tuple(settings_in(config))
    names = _known(settings) if remote.every else remote.names or (_default(settings, head, push=remote.push),)
    found = [url for name in names for url in _urls(settings, name, push=remote.push)]
    if remote.modules:
        found += _values(settings, "submodule", None, "url")
        found += _values(tuple(settings_in(modules)), "submodule", None, "url")
    return tuple(dict.fromkeys(found))


def settings_in(text: str) -> Iterator[Setting]:
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


def _plain(written: str) -> str:
    """A value without its quotes, its escapes and the comment behind it."""
    text = ""
    for quoted, escaped, comment, bare in _PIECE.findall(written):
        if comment:
            break
        text += _ESCAPE.sub(r"\1", quoted) + escaped + bare
    return text.strip()


def _default(settings: tuple[Setting, ...], head: str, *, push: bool) -> str:
    """The remote that git takes where none is named."""
    branch = _BRANCH.match(head.strip())
    name = branch[1] if branch else ""
    pushed = (*_values(settings, "remote", "", "pushdefault"), *_values(settings, "branch", name, "pushremote"))
    chosen = (*_values(settings, "branch", name, "remote"), *(pushed if push else ()))
    if chosen:
        return chosen[-1]
    known = _known(settings)
    return known[0] if len(known) == 1 else "origin"


def _urls(settings: tuple[Setting, ...], name: str, *, push: bool) -> tuple[str, ...]:
    found = _values(settings, "remote", name, "pushurl") if push else ()
    found = found or _values(settings, "remote", name, "url")
    # What is no remote is a repository itself: a URL, or a path that leads to no other machine.
    return found or (name,)


def _known(settings: tuple[Setting, ...]) -> tuple[str, ...]:
    names = [one.part for one in settings if one.section == "remote" and one.key == "url" and one.part]
    return tuple(dict.fromkeys(names))


def _values(settings: tuple[Setting, ...], section: str, part: str | None, key: str) -> tuple[str, ...]:
    """The values of a key; of every part where none is given."""
    return tuple(
        one.value for one in settings if one.section == section and one.key == key and part in {None, one.part}
    )
