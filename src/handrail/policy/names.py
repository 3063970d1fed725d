"""Protected names in paths, in any spelling."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Literal

from handrail.policy.credential_names import (
    CREDENTIAL_ENDINGS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    CREDENTIAL_PLACES,
    ORDINARY_NAME,
    PLAIN_ENDINGS,
    PLAIN_FILES,
    PUBLIC_ENDINGS,
    TEMPLATES,
    VARIANTS,
)
from handrail.policy.protected_names import (
    GIT_INTERNALS,
    PACKAGE_FOLDERS,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    PROTECTED_PLACES,
    REPOSITORY_PARTS,
)

_Protection = Literal["credential", "protected"]
GIT_LOCK = "a lock that stays there blocks git until it is deleted"

_CREDENTIALS = CREDENTIAL_FOLDERS | CREDENTIAL_FILES | PLAIN_FILES
_CREDENTIAL_ENDINGS = (*CREDENTIAL_ENDINGS, *PLAIN_ENDINGS)
_PROTECTED = PROTECTED_FOLDERS | PROTECTED_FILES | GIT_INTERNALS | {".git"}
_BACKUP_ENDINGS = ("~", ".bak", ".old", ".orig", ".save", ".swp")
_ABOVE_CREDENTIALS = frozenset(
    "/".join(names[:n]) for names in (place.split("/") for place in CREDENTIAL_PLACES) for n in range(1, len(names))
)
_LAST_NAMES = frozenset(place.rpartition("/")[2] for place in CREDENTIAL_PLACES | PROTECTED_PLACES)


@lru_cache(maxsize=16_384)
def find_protection(path: str) -> _Protection | None:
    """The strictest protection of the names on a path."""
    parts = [_normalize_part(part) for part in path.split("/") if part not in {"", "."}]
    if any(_is_credential_part(part) for part in parts) or _contains_place(parts, CREDENTIAL_PLACES):
        return "credential"
    return "protected" if _has_protected_part(parts) or _contains_place(parts, PROTECTED_PLACES) else None


def is_credential(path: str, *, anywhere: bool = False) -> bool:
    """Whether the last name of a path is a credential. Cheaper than `find_protection` for a walk down a tree.

    `anywhere`: whether the name is one in some folder.
    """
    start = path.rfind("/") + 1
    if ORDINARY_NAME.fullmatch(path, start):
        return False
    name = _normalize_part(path[start:])
    return _is_credential_part(name) or (name in _LAST_NAMES and (anywhere or find_protection(path) == "credential"))


def can_hold_credentials(folder: str) -> bool:
    """Whether tools keep credentials below a folder of this name: `.config`, because of `.config/gh`."""
    path = "/".join(["", *(_normalize_part(part) for part in folder.split("/") if part)])
    return any(path.endswith(f"/{start}") for start in _ABOVE_CREDENTIALS)


def is_packaged(path: str) -> bool:
    """Whether a path is protected only because of a file in an installed package. Repositories are never packaged."""
    parts = path.split("/")
    at = next((n for n, part in enumerate(parts) if part in PACKAGE_FOLDERS), len(parts))
    if at == len(parts) or any(_normalize_part(part).endswith(".git") for part in parts[at:]):
        return False
    return find_protection("/".join(parts[: at + 1])) is None


def list_possible_repositories(path: str) -> tuple[tuple[str, str], ...]:
    """Folders on a path that may be repositories not called `.git`, each with the name that follows. Callers check."""
    names = [part for part in path.split("/") if part != "."]
    possible = [n for n, name in enumerate(names) if _normalize_part(name) in REPOSITORY_PARTS]
    positions = [n for n in possible if not n or not _normalize_part(names[n - 1]).endswith(".git")]
    return tuple(("/".join(names[:n]) or ("/" if path.startswith("/") else "."), names[n]) for n in positions)


def is_git_control_name(name: str) -> bool:
    """Whether a name in a repository's folder steers git. Everyday files such as the index do not."""
    return _normalize_part(name) in GIT_INTERNALS


def is_git_lock(path: str) -> bool:
    """Whether git takes a file for a lock. Git refuses to work while it exists."""
    *folders, name = (_normalize_part(part) for part in path.split("/"))
    return name.endswith(".lock") and any(folder.endswith(".git") for folder in folders)


def is_in_folder(path: str, folder: str) -> bool:
    """Whether a normalized path is a folder or lies in it."""
    return path == folder or path.startswith(f"{folder}/")


def _contains_place(parts: list[str], places: frozenset[str]) -> bool:
    if _LAST_NAMES.isdisjoint(parts):
        return False
    path = f"/{'/'.join(parts)}/"
    return any(f"/{place}/" in path for place in places)


def _has_protected_part(parts: list[str]) -> bool:
    if any(part in PROTECTED_FOLDERS for part in parts) or (parts and parts[-1] in PROTECTED_FILES):
        return True
    if parts and parts[-1] == ".git":  # as a file it names the repository, with its hooks and configuration
        return True
    return any(part.endswith(".git") and GIT_INTERNALS & set(parts[n + 1 : n + 2]) for n, part in enumerate(parts))


def _is_credential_part(part: str) -> bool:
    if part in _CREDENTIALS:
        return True
    if part.startswith(VARIANTS):
        return part.rpartition(".")[2] not in TEMPLATES
    if part.endswith(_CREDENTIAL_ENDINGS):
        return not part.endswith(PUBLIC_ENDINGS)
    return part.endswith(_BACKUP_ENDINGS) and _is_credential_backup(part)


def _is_credential_backup(part: str) -> bool:
    """`id_rsa.bak`, `.env~`, and `.id_rsa.swp`, to which vim adds the dot."""
    name = next(part.removesuffix(ending) for ending in _BACKUP_ENDINGS if part.endswith(ending))
    return bool(name) and (_is_credential_part(name) or (part.endswith(".swp") and _is_credential_part(name[1:])))


_INVISIBLE = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\ufffc\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""The default ignorable characters of Unicode, the blank of Braille, and the placeholder of an embedded object."""
_SHORT_NAME = r"(.{1,6})~[0-9]{1,6}(?:\.(.{0,3}))?"


def normalize_name(name: str) -> str:
    """One form for all spellings of a name that a file system may take for the same.

    Case and Unicode form are folded, as on macOS, Windows and ZFS. Invisible characters are removed, as by HFS+.
    """
    if name.isascii():
        return name.lower()
    visible = remove_invisible(unicodedata.normalize("NFD", name))
    # Twice, as Unicode demands: normalizing can produce letters that fold, and folding letters that normalize.
    once = unicodedata.normalize("NFKC", visible.casefold())
    twice = unicodedata.normalize("NFKC", once.casefold())
    return unicodedata.normalize("NFKC", remove_invisible(twice))


def remove_invisible(text: str) -> str:
    return text if text.isascii() else _compile_invisible().sub("", text)


def has_invisible(text: str) -> bool:
    return not text.isascii() and _compile_invisible().search(text) is not None


@cache
def _compile_invisible() -> re.Pattern[str]:
    """Compiled on first use, because that takes a while and most names are ASCII."""
    return re.compile(_INVISIBLE)


@lru_cache(maxsize=4096)
def _normalize_part(part: str) -> str:
    name = _trim(normalize_name(part)) or part
    return _expand_name(name) if ":" in name or "~" in name else name


def _trim(name: str) -> str:
    """Windows drops dots and blanks at the end. A name of nothing else stays."""
    return name.rstrip(". ") or name


def _expand_name(name: str) -> str:
    """The protected name for which an NTFS stream (`.git::$INDEX_ALLOCATION`) or a short name (`GIT~1`) stands."""
    if _is_credential_part(name):
        return name
    base = _trim(name.partition(":")[0])
    if base != name and (base in _PROTECTED or _is_credential_part(base)):
        return base
    short = re.fullmatch(_SHORT_NAME, base)
    if short is None:
        return name
    return ".env" if short[1] == "env" else _LONG_NAMES.get((short[1], short[2] or ""), name)


def _shorten(name: str) -> tuple[str, str]:
    """Stem and ending of the short name that Windows makes."""
    stem, _, ending = name.lstrip(". ").rpartition(".")
    stem, ending = (stem, ending) if stem else (ending, "")
    return stem.replace(".", "").replace(" ", "")[:6], ending[:3]


_LONG_NAMES = {
    **{_shorten(name): name for name in (*_PROTECTED, *_CREDENTIALS)},
    ("gi7eba", ""): ".gitmodules",  # made if four other names begin like it
    ("gi7d29", ""): ".gitattributes",
}

_MIN_FIXED_CHARS = 2
"""Characters of a name that a glob must fix to target it."""
_MAX_GLOB_CHARS = 64
"""A longer glob counts as one that targets a credential."""
_ANY = ""
_MANY = "*"
_ENV_VARIANT = ".env."
_GLOB_PIECE = r"(?s)\[([!^]?+.[^\]]*)\]|."
"""A set in brackets, or one character. The first character of a set may be a bracket."""
_NAMES = tuple(sorted(CREDENTIAL_FILES | CREDENTIAL_FOLDERS))

_Token = str
"""A fixed character, several alternatives, `_ANY` for any character, or `_MANY` for any text."""


@lru_cache(maxsize=1024)
def may_name_credential(pattern: str) -> bool:
    """Whether the fixed text of a shell glob targets a credential: `.env*`, `*.pem`, `id_r?a`, but not `*.json`."""
    parts = pattern.split("/")
    return find_protection(pattern) == "credential" or any(is_credential_glob(normalize_name(part)) for part in parts)


@lru_cache(maxsize=1024)
def is_credential_glob(component: str, *, hidden: bool = False) -> bool:
    """Whether a glob fixes enough of a credential's name. `hidden`: a wildcard may match a leading dot, as in git."""
    if not any(sign in component for sign in "*?["):
        return False
    if len(component) > _MAX_GLOB_CHARS:
        return True
    tokens = tuple(_tokenize(component))
    names = [name for name in _NAMES if hidden or _can_begin(tokens, name)]
    if any(_count_fixed(tokens, name, hidden=hidden) >= _MIN_FIXED_CHARS for name in names) or _targets_part(tokens):
        return True
    return any(_count_fixed(tokens, name) == len(name.partition(".")[0]) for name in PLAIN_FILES)


def _targets_part(tokens: Sequence[_Token]) -> bool:
    """Whether a glob targets a credential's ending, or the start of a `.env.` name."""
    tails = [tokens[n:] for n in range(len(tokens))]
    if any(_count_fixed(tail, ending) >= _MIN_FIXED_CHARS for ending in CREDENTIAL_ENDINGS for tail in tails):
        return True
    heads = [tokens[: n + 1] for n in range(len(tokens))] if _can_begin(tokens, _ENV_VARIANT) else []
    return any(_count_fixed(head, _ENV_VARIANT) >= _MIN_FIXED_CHARS for head in heads)


def _can_begin(tokens: Sequence[_Token], name: str) -> bool:
    """In the shell only a dot matches a leading dot."""
    return not name.startswith(".") or tokens[0] == "."


def _count_fixed(tokens: Sequence[_Token], name: str, *, hidden: bool = False) -> int:
    """The most characters of a name that a matching glob fixes, or -1 if it does not match.

    An ordinary ending (`.json`) does not count, unless a dot matched the leading dot.
    """
    if tokens[-1] not in {_ANY, _MANY} and name[-1] not in tokens[-1]:
        return -1  # most globs end in the ending of an ordinary kind
    ending = name.rfind(".", 1) if hidden or not name.startswith(".") else -1
    counted = len(name) if ending < 0 else ending
    best = [0, *[-1] * len(name)]
    for token in tokens:
        best = list(_advance(token, best, name, counted))
    return best[-1]


def _advance(token: _Token, best: list[int], name: str, counted: int) -> Iterator[int]:
    """One more token: for each position in the name, the most characters fixed up to it."""
    if token == _MANY:
        most = -1
        for count in best:
            most = max(most, count)
            yield most
        return
    yield -1
    for at, character in enumerate(name):
        if best[at] < 0 or (token != _ANY and character not in token):
            yield -1
        else:
            yield best[at] + (token != _ANY and at < counted)


def _tokenize(component: str) -> Iterator[_Token]:
    for match in re.finditer(_GLOB_PIECE, component):
        yield _ANY if match[0] == "?" else match[0] if match[1] is None else _read_set(match[1])


def _read_set(text: str) -> _Token:
    """The characters of a set. A range, a class or a negation fixes nothing."""
    return _ANY if text[0] in "!^" or "-" in text[1:-1] or "[" in text else text


_MAX_ENDING_CHARS = 3
"""Characters at the end of a name that tell a template. `find_protection` tells longer ones."""


def list_secret_globs() -> tuple[str, ...]:
    """Case-insensitive globs for search programs. They match only names that `find_protection` calls credentials.

    They miss some: trailing dots and blanks, letters that fold, names that nearly are a template's. So callers ask
    `find_protection` as well. There are few globs, because a search program compiles them at each start.
    """
    exact = [*sorted(_CREDENTIALS)]
    endings: list[str] = []
    for ending in _CREDENTIAL_ENDINGS:
        public = [end.removesuffix(ending) for end in PUBLIC_ENDINGS if end.endswith(ending)]
        pieces = list(_list_other_endings(public))
        exact += [f"{suffix}{ending}" for suffix, _ in pieces]
        endings += [f"[!{before}]{suffix}{ending}" for suffix, before in pieces] or [ending]
    # The last character must not be one that `find_protection` strips, because the glob would match another name.
    templates = _list_other_endings(f".{word}" for word in TEMPLATES)
    variants = [f"[!{before}{'' if suffix else '. '}]{suffix}" for suffix, before in templates]
    return f"{{{','.join(exact)}}}", f"*{{{','.join(endings)}}}", f"{{{','.join(VARIANTS)}}}*{{{','.join(variants)}}}"


def _list_other_endings(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Endings of texts that end in none of the words: a suffix, and the characters that must not precede it."""
    before: dict[str, set[str]] = {}
    for word in words:
        for start in range(max(0, len(word) - _MAX_ENDING_CHARS - 1), len(word)):
            before.setdefault(word[start + 1 :], set()).add(word[start])
    for suffix in sorted(before):
        yield suffix, "".join(sorted(before[suffix]))
