"""Reads git configuration files without running git, which would run what they configure."""

import re
from typing import NamedTuple

_HEADER = re.compile(r'[ \t]*\[[ \t]*([A-Za-z0-9.-]+)[ \t]*(?:"((?:[^"\\]|\\.)*)"[ \t]*)?\]')
_PLAIN_HEADER = re.compile(r'\[[A-Za-z0-9-]+(?: "[^"\\]*")?\]')
_SETTING = re.compile(r"[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=(.*))?", re.DOTALL)
_EMPTY = re.compile(r"[ \t]*(?:[#;].*)?", re.DOTALL)
_STRANGE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufeff]|\\\n|\\\Z")
_CONTINUED = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
_VALUE_PIECE = re.compile(r'"((?:[^"\\]|\\.)*)"?|(\\.)|([#;].*)|([^"\\#;]+)', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_CHARACTERS = {"n": "\n", "t": "\t", "b": "\b"}
_INCLUDED = re.compile(r"path[ \t]*=[ \t]*(.*)", re.IGNORECASE)


class GitSetting(NamedTuple):
    section: str
    part: str | None
    """`origin` of `[remote "origin"]`."""
    key: str
    written: str | None
    """The value as the file spells it. None if the line has no `=`."""

    @property
    def name(self) -> str:
        """`core.hookspath`, `filter.lfs.clean`."""
        return f"{self.section}.{self.key}" if self.part is None else f"{self.section}.{self.part}.{self.key}"

    @property
    def value(self) -> str:
        """The value without quotes, escapes or a trailing comment."""
        return _unquote(self.written or "")


class GitConfig(NamedTuple):
    settings: tuple[GitSetting, ...]
    is_understood: bool
    """Whether git surely reads the same settings: each line is a plain header, a setting, a comment or empty."""


def parse_git_config(text: str) -> GitConfig:
    """Lines that git would reject are skipped. Included files are not read."""
    settings: list[GitSetting] = []
    is_understood = _STRANGE.search(text) is None
    section, part = "", None
    for line in _CONTINUED.sub(r"\1", text.replace("\r\n", "\n")).split("\n"):
        header = _HEADER.match(line)
        rest = line[header.end() :] if header else line
        if header:
            is_understood = is_understood and _PLAIN_HEADER.fullmatch(line) is not None
            section, dot, old_part = header[1].lower().partition(".")
            part = old_part if dot else header[2] and _ESCAPE.sub(r"\1", header[2])
        setting = _SETTING.fullmatch(rest)
        if setting and section:
            written = setting[2] and setting[2].strip(" \t")
            settings.append(GitSetting(section, part, setting[1].lower(), written))
        elif not _EMPTY.fullmatch(rest):
            is_understood = False
    return GitConfig(tuple(settings), is_understood)


def list_included_paths(text: str) -> tuple[str, ...]:
    """The files that a configuration may include, as it spells them. Other settings named `…path` count too."""
    return tuple(filter(None, (_unquote(match[1]) for match in _INCLUDED.finditer(_CONTINUED.sub(r"\1", text)))))


def _unquote(written: str) -> str:
    text = ""
    for quoted, escaped, comment, bare in _VALUE_PIECE.findall(written):
        if comment:
            break
        text += _ESCAPE.sub(lambda match: _ESCAPED_CHARACTERS.get(match[1], match[1]), quoted + escaped) + bare
    return text.strip()


_ANY = r".*"
_BOOLEAN = r"true|false"
_NAME = r"\w[\w.+@-]*"
_BRANCH = rf"{_NAME}(?:/{_NAME})*"
_HARMLESS = {
    "core.repositoryformatversion": "0",  # from 1 on there are extensions
    "core.filemode": _BOOLEAN,
    "core.bare": "false",
    "core.logallrefupdates": _BOOLEAN,
    "core.ignorecase": _BOOLEAN,
    "core.precomposeunicode": _BOOLEAN,
    "core.symlinks": _BOOLEAN,
    "user.name": _ANY,
    "user.email": _ANY,
    "branch.*.remote": rf"{_NAME}|\.",  # a URL could stand there
    "branch.*.merge": rf"refs/heads/{_BRANCH}",
    "branch.*.rebase": _BOOLEAN,
    "pull.rebase": _BOOLEAN,
    "pull.ff": rf"{_BOOLEAN}|only",
}
"""Settings that neither run a program nor redirect git, and the values with which they are harmless."""
_HARMLESS_IN_CLONE = {
    **_HARMLESS,
    # No transport helper (`ext::sh -c …`), and nothing that a shell would split.
    "remote.*.url": r"(?!-)(?!.*::)[\w./@:~+%-]+",
    "remote.*.fetch": rf"\+refs/heads/(?:\*|{_BRANCH}):refs/remotes/{_NAME}/(?:\*|{_BRANCH})",
    "remote.*.tagopt": "--no-tags",
}


def find_unsafe_git_settings(text: str, *, clone: bool = False) -> tuple[GitSetting, ...] | None:
    """Settings that may run a program or redirect git. None: not understood. `clone`: they may name an origin."""
    config = parse_git_config(text)
    harmless = _HARMLESS_IN_CLONE if clone else _HARMLESS
    if not config.is_understood:
        return None
    return tuple(setting for setting in config.settings if not _is_harmless(setting, harmless))


def _is_harmless(setting: GitSetting, harmless: dict[str, str]) -> bool:
    values = harmless.get(setting.name if setting.part is None else f"{setting.section}.*.{setting.key}")
    return values is not None and setting.written is not None and re.fullmatch(values, setting.written) is not None


def compare_git_settings(old: str, new: str) -> tuple[str, ...] | None:
    """Names of unsafe settings that differ, also by order: the last of two holds. None: a text is not understood."""
    before, after = find_unsafe_git_settings(old), find_unsafe_git_settings(new)
    if before is None or after is None:
        return () if old == new else None
    if before == after:
        return ()
    changed = set(before) ^ set(after)
    return tuple(dict.fromkeys(setting.name for setting in (*after, *before) if setting in changed or not changed))


def is_new_config(text: str) -> bool:
    """Whether `git init` or `git clone` may have written a configuration: a core section, then harmless settings."""
    core, start, rest = text.partition("\n[")
    return is_core_config(core) and (not start or find_unsafe_git_settings(f"[{rest}", clone=True) == ())


def is_core_config(text: str) -> bool:
    """Whether a configuration is one core section of harmless settings, each once, without comments or empty lines."""
    first, *lines = text.removesuffix("\n").split("\n")
    keys = {setting.key for setting in parse_git_config(text).settings}
    return first == "[core]" and len(keys) == len(lines) and find_unsafe_git_settings(text) == ()


_DRIVER = re.compile(
    r'\[(filter|diff)(?:\.([a-z0-9.-]*))?(?:[ \t\r\v\f]+"((?:\\[^\n\0]|[^"\\\n\0])*)")?\]', re.IGNORECASE
)
_DISABLED = {"filter": {"clean": "", "smudge": "", "process": "", "required": "false"}, "diff": {"textconv": "cat"}}


def disable_drivers(text: str) -> tuple[tuple[str, str], ...]:
    """Settings, name and value, that disable every filter and text converter that a configuration may define.

    Any text like the header of such a section counts, even in a comment: git may read the text in another way.
    """
    values: dict[str, str] = {}
    disabled = _DISABLED if "textconv" in text.lower() else {**_DISABLED, "diff": {}}
    for section, old, new in (head.groups() for head in _DRIVER.finditer(text)):
        name = [*([old.lower()] if old else []), *([re.sub(r"\\(.)", r"\1", new)] if new is not None else [])]
        settings = disabled[section.lower()].items() if name else ()
        values |= {".".join((section.lower(), *name, key)): value for key, value in settings}
    return tuple(values.items())
