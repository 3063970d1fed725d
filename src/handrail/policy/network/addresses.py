"""The host that a word names: by its scheme, its port, and the forms that git has besides."""

import re
from typing import NamedTuple

from handrail.policy.network.hosts import InvalidHost, parse_host_port, render_untrusted

CARRIED = {"http": 80, "https": 443, "ws": 80, "wss": 443}
"""What goes through a proxy for http, and its port where none is named."""
_NOT_CARRIED = {
    "ssh": 22, "git": 9418, "ftp": 21, "ftps": 990, "sftp": 22, "scp": 22, "rsync": 873, "svn": 3690, "telnet": 23,
}  # fmt: skip
_HERE = frozenset({"file", "data", "npm", "jsr", "workspace", "link", "portal", "unix"})
"""Schemes that name no host."""
_URL = re.compile(
    r"(?:[\w.\[\],-]+\s*[=@]\s*)?"  # name=URL, name @ URL
    r"(?:(?:git|hg|bzr|svn|sparse|registry)\+)?([A-Za-z][A-Za-z0-9.-]*)(?:\+(ssh))?://([^/?#\\]*)"
)
_AUTHORITY = re.compile(r"(\[[^\]]*\]|[^:]*)(?::([0-9]*))?")
_OF_SSH = re.compile(r"(?:[\w.+-]+@)?(\[[0-9A-Fa-f:]+\]|[A-Za-z0-9][A-Za-z0-9.-]*):(?![/\\]{2})")
"""`git@example.org:shop.git`, as git and scp write it; what has a slash before its colon is a path."""


class HostMention(NamedTuple):
    """What a word says of the network: a host that a yes can open, or why it cannot."""

    host: str = ""
    """`example.org:443`, in the one spelling that hosts have."""
    unreachable: str = ""
    """In words, with what looked like a host: `example.org:22 by ssh, which no proxy carries`."""


def parse_url_mention(word: str) -> HostMention | None:
    """What a word names that is a URL, or says `name=URL`; None where it is none, or is about no other machine."""
    match = _URL.match(word)
    if match is None or match[1].lower() in _HERE:
        return None
    scheme = (match[2] or match[1]).lower()
    authority = match[3].rpartition("@")[2]
    return _carried(authority, CARRIED[scheme]) if scheme in CARRIED else _not_carried(authority, scheme)


def parse_bare_mention(word: str, port: int) -> HostMention:
    """What a word names that is an address with or without its scheme."""
    return parse_url_mention(word) or _carried(re.split(r"[/?#\\]", word, maxsplit=1)[0].rpartition("@")[2], port)


def parse_ssh_mention(word: str) -> HostMention | None:
    """What a word names in the short form of ssh; None where it is a path."""
    match = _OF_SSH.match(word)
    return _not_carried(match[1], "ssh") if match and "://" not in word else None


def _carried(authority: str, port: int) -> HostMention:
    found = parse_host_port(_with_port(authority, port))
    if isinstance(found, InvalidHost):
        return HostMention(unreachable=found.reason)
    if found.address is None and found.labels[-1] == "localhost":
        return HostMention(
            unreachable=f"{found.spelled} is the sandbox's own; this machine would be 127.0.0.1:{found.port}"
        )
    return HostMention(found.spelled)


def _not_carried(authority: str, scheme: str) -> HostMention:
    """With its port, where one is known for the scheme."""
    port = _NOT_CARRIED.get(scheme)
    where = render_untrusted(authority) if port is None else render_untrusted(_with_port(authority, port))
    return HostMention(unreachable=f"{where} by {render_untrusted(scheme)}, which no proxy carries")


def _with_port(authority: str, port: int) -> str:
    match = _AUTHORITY.fullmatch(authority)
    return authority if match is None else f"{match[1]}:{match[2] or port}"
