"""Git repositories in a change set: one that `git init` just made steers nothing, and commits only add objects."""

import re
from collections.abc import Mapping

from handrail.protocol.change import Change

_NEW = re.compile(
    r"""HEAD|ORIG_HEAD|COMMIT_EDITMSG|description|config|index|packed-refs
    |hooks/[A-Za-z0-9-]+\.sample
    |info/exclude
    |objects/(?:[0-9a-f]{2}/[0-9a-f]{38,62}|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev))
    |(?:refs|logs/refs)/(?:heads|tags)(?:/[\w+@-][\w.+@-]*)+
    |logs/HEAD
    """,
    re.VERBOSE,
)
"""The files of a new repository: those that `git init`, `add` and `commit` make. Spelled just so, since `Hooks/` or
`config.` are the same as `hooks/` and `config` elsewhere."""
_NEW_FOLDER = re.compile(
    r"hooks|info|branches|objects(?:/(?:info|pack|[0-9a-f]{2}))?|(?:logs|refs|logs/refs)(?:/(?:heads|tags)(?:/[\w+@-][\w.+@-]*)*)?"
)
_OBJECT = re.compile(
    r"(?:.*/)?\.git/objects/(?:[0-9a-f]{2}(?:/[0-9a-f]{38,62})?|pack/pack-[0-9a-f]{40,64}\.(?:pack|idx|rev))", re.DOTALL
)
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


def new_repositories(changes: tuple[Change, ...], configs: Mapping[str, str]) -> tuple[str, ...]:
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


def _is_new_folder(change: Change) -> bool:
    return change.action == "created" and change.kind == "folder"


def _steers_nothing(folder: str, changes: tuple[Change, ...], config: str | None) -> bool:
    inside = [change for change in changes if change.path.startswith(f"{folder}/")]
    if config is None or not is_harmless_config(config):
        return False
    return all(_is_usual(change, change.path[len(folder) + 1 :]) for change in inside)


def _is_usual(change: Change, name: str) -> bool:
    expected = _NEW_FOLDER if _is_new_folder(change) else _NEW
    is_plain = change.action == "created" and change.kind != "link" and ".." not in name
    return is_plain and expected.fullmatch(name) is not None
