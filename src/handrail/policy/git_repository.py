"""Git settings and routine maintenance in a change set."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from handrail.protocol.changes import Change

# § [policy.git_settings] What a repository's configuration says that steers git: runs programs, or leads it
# § elsewhere.  Only what is known to do neither is let pass. A text is read line by line, and only if git reads it
# § so too: one with continued lines, or with anything that is no line of a configuration, is not understood.

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


# § [policy.repository] Git repositories in a change set: what git does to them every day is no harm, though it is
# § done to what steers it.  A repository that was just made steers nothing, commits only add objects, and `git gc`
# § packs them and removes what it packed.

_NEW = re.compile(
    r"""HEAD|ORIG_HEAD|COMMIT_EDITMSG|description|config|index|packed-refs|shallow
    |hooks/[A-Za-z0-9-]+\.sample
    |info/(?:exclude|refs)
    |objects/info/(?:packs|commit-graph|commit-graphs/[\w-]+(?:\.graph)?)
    |objects/(?:[0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|mtimes|bitmap))
    |(?:refs|logs/refs)/(?:stash|(?:heads|tags|remotes)(?:/[\w+@-][\w.+@-]*)+)
    |logs/HEAD
    """,
    re.VERBOSE,
)
"""The files of a new repository: those that `git init`, `add`, `commit` and `clone` make. Spelled just so, since
`Hooks/` or `config.` are the same as `hooks/` and `config` elsewhere."""
_NEW_FOLDER = re.compile(
    r"hooks|info|branches|objects(?:/(?:info|info/commit-graphs|pack|[0-9a-f]{2}))?|(?:logs|refs|logs/refs)(?:/(?:heads|tags|remotes)(?:/[\w+@-][\w.+@-]*)*)?"
)
_OBJECT = re.compile(
    r"((?:.*/)?\.git)/objects/"
    r"(?:[0-9a-f]{2}(?:/[0-9a-f]{38,62})?|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev|mtimes|bitmap))",
    re.DOTALL,
)
_LISTS = re.compile(
    r"(?:.*/)?\.git/(?:info/refs|objects/info(?:/packs|/commit-graph|/commit-graphs(?:/[\w-]+(?:\.graph)?)?)?"
    r"|objects/pack/multi-pack-index)",
    re.DOTALL,
)
"""What git writes down of its objects, so that it finds them sooner."""
_REFERENCE = re.compile(r"((?:.*/)?\.git)/(?:logs/)?refs/.*", re.DOTALL)
_SETTING = re.compile(r"[ \t]*([A-Za-z]+)[ \t]*=[ \t]*([a-z0-9]+)[ \t]*")
_BOOLEAN = frozenset({"true", "false"})
_HARMLESS: Mapping[str, frozenset[str]] = {
    "repositoryformatversion": frozenset({"0"}),  # from 1 on there are extensions
    "filemode": _BOOLEAN,
    "bare": frozenset({"false"}),
    "logallrefupdates": _BOOLEAN,
    "ignorecase": _BOOLEAN,
    "precomposeunicode": _BOOLEAN,
    "symlinks": _BOOLEAN,
}


class GitMaintenance(NamedTuple):
    """What git did to its own files in a change set, and nobody has to be asked about."""

    made: tuple[str, ...]
    """The `.git` folders that were made just now and steer nothing."""
    packed: frozenset[str]
    """Those that got a new pack: the objects that are gone are in it."""
    listed: frozenset[str]
    """Those whose references were written into one list: the files that are gone are in it."""
    configured: frozenset[str]
    """Configurations in which nothing changed that steers git."""

    def covers(self, change: Change) -> bool:
        """Whether a change is protected by its name alone."""
        if is_new_object(change) or change.path in self.configured or self.is_in_new(change.path):
            return True
        if change.kind == "link" or change.replaces is not None:
            return False
        return self.is_packed_away(change) or _LISTS.fullmatch(change.path) is not None

    def is_packed_away(self, change: Change) -> bool:
        """Whether a file is gone because git put it together with others."""
        found = _OBJECT.fullmatch(change.path) if change.action == "deleted" else None
        return found is not None and found[1] in self.packed

    def counts(self, change: Change) -> bool:
        """Whether a change is one of many, where many ask: objects are no files of anybody's."""
        if is_new_object(change) or self.is_packed_away(change):
            return False
        found = _REFERENCE.fullmatch(change.path) if change.action == "deleted" else None
        return found is None or found[1] not in self.listed

    def is_in_new(self, path: str) -> bool:
        """Whether a path is in a repository that was made just now."""
        return any(f"{path}/".startswith(f"{folder}/") for folder in self.made)


def find_git_maintenance(changes: tuple[Change, ...], configs: Mapping[str, str]) -> GitMaintenance:
    """`configs`: texts of changed `.git/config` files by path, and those that they had before by their hash."""
    created = [change for change in changes if change.action == "created"]
    packs = {
        found[1] for change in created if change.path.endswith(".pack") and (found := _OBJECT.fullmatch(change.path))
    }
    written = {change.path for change in changes if change.action in {"created", "modified"}}
    lists = {path.removesuffix("/packed-refs") for path in written if path.endswith(".git/packed-refs")}
    known = {change.path for change in changes if find_changed_settings(change, configs) == ()}
    return GitMaintenance(list_new_repositories(changes, configs), frozenset(packs), frozenset(lists), frozenset(known))


def find_changed_settings(change: Change, configs: Mapping[str, str]) -> tuple[str, ...] | None:
    """Which settings that steer git a changed configuration of a repository changes; None where it is none, or that
    cannot be told."""
    if change.path.split("/")[-2:] != [".git", "config"] or change.kind != "file" or change.replaces is not None:
        return None
    new, old = configs.get(change.path), configs.get(change.before) if change.before is not None else ""
    if change.action not in {"created", "modified"} or new is None or old is None:
        return None
    return compare_git_settings(old, new)


def list_new_repositories(changes: tuple[Change, ...], configs: Mapping[str, str]) -> tuple[str, ...]:
    """The `.git` folders that were made just now and steer nothing. `configs`: the text of each new `.git/config`."""
    gone = {change.path for change in changes if change.action == "deleted"}  # what was there before steered something
    made = [change.path for change in changes if _is_new_folder(change) and change.path.rpartition("/")[2] == ".git"]
    found = [folder for folder in made if folder not in gone]
    return tuple(folder for folder in found if _steers_nothing(folder, changes, configs.get(f"{folder}/config")))


def is_new_object(change: Change) -> bool:
    """Whether a change just adds to what a repository keeps, under a name that says what is in it."""
    return change.action == "created" and change.kind != "link" and _OBJECT.fullmatch(change.path) is not None


def is_harmless_config(text: str) -> bool:
    """Whether a repository's configuration has a core section only, with nothing in it that runs or leads elsewhere.

    All that git would read in another way than line by line is refused: comments, quotes, continued lines, a setting
    beside its section.
    """
    first, *lines = text.removesuffix("\n").split("\n")
    seen: set[str] = set()
    for line in lines:
        setting = _SETTING.fullmatch(line)
        name = setting[1].lower() if setting else ""
        if setting is None or name in seen or setting[2] not in _HARMLESS.get(name, frozenset()):
            return False
        seen.add(name)
    return first == "[core]"


def is_config_of_new(text: str) -> bool:
    """Whether the configuration of a repository that was made just now is harmless: a clone says where it came from."""
    core, start, rest = text.partition("\n[")
    return is_harmless_config(core) and (not start or find_unsafe_git_settings(f"[{rest}", clone=True) == ())


def _is_new_folder(change: Change) -> bool:
    return change.action == "created" and change.kind == "folder"


def _steers_nothing(folder: str, changes: tuple[Change, ...], config: str | None) -> bool:
    inside = [change for change in changes if change.path.startswith(f"{folder}/")]
    if config is None or not is_config_of_new(config):
        return False
    return all(_is_usual(change, change.path[len(folder) + 1 :]) for change in inside)


def _is_usual(change: Change, name: str) -> bool:
    expected = _NEW_FOLDER if _is_new_folder(change) else _NEW
    is_plain = change.action == "created" and change.kind != "link" and ".." not in name
    return is_plain and expected.fullmatch(name) is not None
