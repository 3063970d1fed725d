"""What a repository's configuration says that steers git: runs programs, or leads it elsewhere.

Only what is known to do neither is let pass. A text is read line by line, and only if git reads it so too: one with
continued lines, or with anything that is no line of a configuration, is not understood.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = re.compile(r'\[([A-Za-z0-9-]+)(?: "([^"\\]*)")?\]')
_SETTING_LINE = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*?)[ \t]*)?")
_EMPTY = re.compile(r"[ \t]*(?:[#;].*)?")
_STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufeff]|\\\n|\\\Z")
_ANY = r".*"
_BOOLEAN_VALUE = r"true|false"
_NAME = r"\w[\w.+@-]*"
_BRANCH = rf"{_NAME}(?:/{_NAME})*"
_HARMLESS_SETTINGS = {
    name: re.compile(values)
    for name, values in {
        "core.repositoryformatversion": "0",  # from 1 on there are extensions
        "core.filemode": _BOOLEAN_VALUE,
        "core.bare": "false",
        "core.logallrefupdates": _BOOLEAN_VALUE,
        "core.ignorecase": _BOOLEAN_VALUE,
        "core.precomposeunicode": _BOOLEAN_VALUE,
        "core.symlinks": _BOOLEAN_VALUE,
        "user.name": _ANY,
        "user.email": _ANY,
        "branch.*.remote": rf"{_NAME}|\.",  # a URL could stand there
        "branch.*.merge": rf"refs/heads/{_BRANCH}",
        "branch.*.rebase": _BOOLEAN_VALUE,
        "pull.rebase": _BOOLEAN_VALUE,
        "pull.ff": rf"{_BOOLEAN_VALUE}|only",
    }.items()
}
_OF_A_CLONE = {
    name: re.compile(values)
    for name, values in {
        # No helper of its own (`ext::sh -c …`), nothing that a shell would take apart.
        "remote.*.url": r"(?!-)(?!.*::)[\w./@:~+%-]+",
        "remote.*.fetch": rf"\+refs/heads/(?:\*|{_BRANCH}):refs/remotes/{_NAME}/(?:\*|{_BRANCH})",
        "remote.*.tagopt": "--no-tags",
    }.items()
}


_DRIVER = re.compile(
    r'\[(filter|diff)(?:\.([a-z0-9.-]*))?(?:[ \t\r\v\f]+"((?:\\[^\n\0]|[^"\\\n\0])*)")?\]', re.IGNORECASE
)
_DISABLED = {"filter": {"clean": "", "smudge": "", "process": "", "required": "false"}, "diff": {"textconv": "cat"}}


class UnsafeGitSetting(NamedTuple):
    """A setting that may run a program or lead elsewhere."""

    name: str
    """`core.hookspath`, `filter.lfs.clean`."""
    value: str


def find_unsafe_git_settings(text: str, *, clone: bool = False) -> tuple[UnsafeGitSetting, ...] | None:
    """Such settings in their order; None where the text is not understood. `clone`: it is of a repository that was made
    just now, which may name where it came from."""
    if _STRANGE.search(text):
        return None
    found: list[UnsafeGitSetting] = []
    section = None
    for line in text.split("\n"):
        header, setting = _HEADER.fullmatch(line), _SETTING_LINE.fullmatch(line)
        if header:
            section = header.groups()
        elif setting and section:
            found += _judged(section[0].lower(), section[1], setting[1].lower(), setting[2], clone=clone)
        elif not _EMPTY.fullmatch(line):
            return None
    return tuple(found)


def compare_git_settings(old: str, new: str) -> tuple[str, ...] | None:
    """Names of the settings that steer git and came, went or became others; None where that cannot be told.

    Their order counts, since of two the later holds.
    """
    before, after = find_unsafe_git_settings(old), find_unsafe_git_settings(new)
    if before is None or after is None:
        return () if old == new else None
    if before == after:
        return ()
    changed = set(before) ^ set(after)
    return tuple(dict.fromkeys(one.name for one in (*after, *before) if one in changed or not changed))


def disable_drivers(text: str) -> tuple[tuple[str, str], ...]:
    """Settings, name and value, that disable every filter and text converter that a configuration may define.

    Whatever looks like the head of such a section counts, also in a comment: git may read the text in another way.
    """
    found: dict[str, str] = {}
    disabled = _DISABLED if "textconv" in text.lower() else {**_DISABLED, "diff": {}}
    for section, old, new in (head.groups() for head in _DRIVER.finditer(text)):
        name = [*([old.lower()] if old else []), *([re.sub(r"\\(.)", r"\1", new)] if new is not None else [])]
        settings = disabled[section.lower()].items() if name else ()
        found |= {".".join((section.lower(), *name, key)): value for key, value in settings}
    return tuple(found.items())


def _judged(section: str, part: str | None, key: str, value: str | None, *, clone: bool) -> Iterator[UnsafeGitSetting]:
    general = f"{section}.*.{key}" if part is not None else f"{section}.{key}"
    allowed = _HARMLESS_SETTINGS.get(general) or (_OF_A_CLONE.get(general) if clone else None)
    if allowed is None or value is None or not allowed.fullmatch(value):
        yield UnsafeGitSetting(f"{section}.{part}.{key}" if part is not None else f"{section}.{key}", value or "")
