"""The environment of a command: put together anew, never the runtime's own with things taken out.

Whatever the runtime was started with, a command gets the variables that are made here, those of toolchains whose
places it sees, and those that a person listed; and none of these where its value looks like a secret.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping

from handrail.policy.secrets import find_withheld_reason, is_random_value, is_secret_value
from handrail.sandbox.confinement import SandboxProfile
from handrail.sandbox.host import SandboxHost
from handrail.sandbox.variables.git import build_git_variables
from handrail.sandbox.variables.search_path import Shown, Usable, build_search_path, build_usable_check
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
_MAX_VALUE_CHARS = 8192
"""Characters of one value; with more, programs may not start at all."""


def build_environment(profile: SandboxProfile, host: SandboxHost, shown: Shown) -> dict[str, str]:
    """The variables of a command; `shown` says whether it will see an absolute path."""
    usable = build_usable_check(profile, shown)
    return {
        **_ALWAYS,
        "PATH": build_search_path(host.environ.get("PATH", ""), usable),
        "HOME": host.home,
        "SHELL": next(filter(os.path.exists, _SHELLS), _SHELLS[-1]),
        **_language(host.environ),
        **({} if profile.is_read_only else _BUILDING | _account(host.environ)),
        **dict(_toolchains(host.environ, usable)),
        **dict(_listed(host)),
        **(build_git_variables(profile.git_settings) if profile.is_read_only else {}),
        **(_proxy(profile) if profile.proxy else {}),
    }


def find_withheld_variables(host: SandboxHost) -> dict[str, str]:
    """The variables that a person listed, are there, and are not passed on: for each, why, in words."""
    reasons = {name: _why_not(name, host.environ[name]) for name in host.variables if name in host.environ}
    return {name: reason for name, reason in reasons.items() if reason}


def _proxy(profile: SandboxProfile) -> dict[str, str]:
    from handrail.sandbox.variables.proxy import build_proxy_variables  # noqa: PLC0415  few commands have one

    return build_proxy_variables(profile.listed)


def _listed(host: SandboxHost) -> Iterator[tuple[str, str]]:
    for name in host.variables:
        if name in host.environ and not _why_not(name, host.environ[name]):
            yield name, host.environ[name]


def _why_not(name: str, value: str) -> str | None:
    if reason := find_withheld_reason(name):
        return reason
    if not _is_plain(value):
        return "is longer than a variable should be, or holds what is no text"
    return "holds what looks like a secret" if is_secret_value(value) or is_random_value(value) else None


def _is_plain(value: str) -> bool:
    """No line breaks, nothing unseen, no function for a shell."""
    return value.isprintable() and len(value) <= _MAX_VALUE_CHARS and not value.lstrip().startswith("()")


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
    return {"USER": name, "LOGNAME": name} if _ACCOUNT.fullmatch(name) and not is_secret_value(name) else {}


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
    return _is_plain(value) and not is_secret_value(value) and usable(value)
