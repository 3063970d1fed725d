"""The environment of a command: put together anew, never the runtime's own with things taken out.

Whatever the runtime was started with, a command gets the variables that are made here, those of toolchains whose
places it sees, and those that a person listed; and none of these where its value looks like a secret.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping

from handrail.policy.secret_values import looks_random, looks_secret
from handrail.policy.variables import why_kept_back
from handrail.sandbox.confinement import Confinement
from handrail.sandbox.host import Host
from handrail.sandbox.variables.git import git_only_looks
from handrail.sandbox.variables.search_path import Shown, Usable, search_path, usable_places
from handrail.sandbox.variables.toolchains import LISTS, PLACES

_ALWAYS = {
    "TERM": "dumb",
    "TMPDIR": "/tmp",  # noqa: S108  the sandbox's own
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
}
_BUILDING = {"LSAN_OPTIONS": "detect_leaks=0"}
"""Programs that look for their leaks trace themselves, which no command may: they would end with an error."""
# No NO_COLOR: node warns about it in every process whose parent sets FORCE_COLOR, as runners of tests do.
_LANGUAGES = re.compile(r"(?:C|POSIX|(?:C|[a-z]{2,3}(?:_[A-Z]{2})?)\.(?:UTF-8|utf-?8)(?:@[a-z]{1,12})?)")
_LANGUAGE_NAMES = ("LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "LC_MESSAGES", "LC_NUMERIC", "LC_TIME")
_ZONE = re.compile(r"[A-Za-z_]{1,20}(?:[+-]?[0-9]{1,2}(?:[A-Z]{3,4})?)?(?:/[A-Za-z_-]{1,20}(?:[+-]?[0-9]{1,2})?){0,2}")
_ACCOUNT = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
CHOSEN_FROM = PLACES | LISTS | {*_LANGUAGE_NAMES, "TZ", "PATH", "HOME", "USER"}
"""The variables of the runtime that a command's own are chosen from, besides those that a person listed."""
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
_LONGEST = 8192
"""Characters of one value; with more, programs may not start at all."""


def environment_for(confinement: Confinement, host: Host, shown: Shown) -> dict[str, str]:
    """The variables of a command; `shown` says whether it will see an absolute path."""
    usable = usable_places(confinement, shown)
    return {
        **_ALWAYS,
        "PATH": search_path(host.environ.get("PATH", ""), usable),
        "HOME": host.home,
        "SHELL": next(filter(os.path.exists, _SHELLS), _SHELLS[-1]),
        **_language(host.environ),
        **({} if confinement.only_looks else _BUILDING | _account(host.environ)),
        **dict(_toolchains(host.environ, usable)),
        **dict(_listed(host)),
        **(git_only_looks(confinement.git_settings) if confinement.only_looks else {}),
        **(_proxy(confinement) if confinement.proxy else {}),
    }


def kept_back(host: Host) -> dict[str, str]:
    """The variables that a person listed, are there, and are not passed on: for each, why, in words."""
    reasons = {name: _why_not(name, host.environ[name]) for name in host.variables if name in host.environ}
    return {name: reason for name, reason in reasons.items() if reason}


def _proxy(confinement: Confinement) -> dict[str, str]:
    from handrail.sandbox.variables.proxy import proxy_variables  # noqa: PLC0415  few commands have one

    return proxy_variables(confinement.listed)


def _listed(host: Host) -> Iterator[tuple[str, str]]:
    for name in host.variables:
        if name in host.environ and not _why_not(name, host.environ[name]):
            yield name, host.environ[name]


def _why_not(name: str, value: str) -> str | None:
    if reason := why_kept_back(name):
        return reason
    if not _is_plain(value):
        return "is longer than a variable should be, or holds what is no text"
    return "holds what looks like a secret" if looks_secret(value) or looks_random(value) else None


def _is_plain(value: str) -> bool:
    """No line breaks, nothing unseen, no function for a shell."""
    return value.isprintable() and len(value) <= _LONGEST and not value.lstrip().startswith("()")


def _language(environ: Mapping[str, str]) -> dict[str, str]:
    """The person's language where its text is UTF-8; everything that is printed is read as that."""
    found = {name: environ[name] for name in _LANGUAGE_NAMES if _LANGUAGES.fullmatch(environ.get(name, ""))}
    if not found.keys() & {"LANG", "LC_ALL"}:
        found["LANG"] = "C.UTF-8"
    if _ZONE.fullmatch(environ.get("TZ", "")):
        found["TZ"] = environ["TZ"]
    return found


def _account(environ: Mapping[str, str]) -> dict[str, str]:
    """Who runs it, since some builds fail without. It tells no more than the home folder's name does; but what only
    looks needs it for nothing."""
    name = _name_on_record() or environ.get("USER", "")
    return {"USER": name, "LOGNAME": name} if _ACCOUNT.fullmatch(name) and not looks_secret(name) else {}


def _name_on_record() -> str:
    import pwd  # noqa: PLC0415  few need it

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return ""


def _toolchains(environ: Mapping[str, str], usable: Usable) -> Iterator[tuple[str, str]]:
    for name in PLACES & environ.keys():
        if _is_place(environ[name], usable):
            yield name, environ[name]
    for name in LISTS & environ.keys():
        if places := [place for place in environ[name].split(":") if _is_place(place, usable)]:
            yield name, ":".join(places)


def _is_place(value: str, usable: Callable[[str], bool]) -> bool:
    return _is_plain(value) and not looks_secret(value) and usable(value)
