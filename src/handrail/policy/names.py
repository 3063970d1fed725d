"""Names that policy treats apart, whichever way they are spelled."""

from functools import lru_cache
from typing import Literal

from handrail.policy.aiming import is_credential_glob
from handrail.policy.name_tables import (
    CREDENTIAL_ENDINGS,
    CREDENTIAL_FILES,
    CREDENTIAL_FOLDERS,
    CREDENTIAL_PLACES,
    GIT_INTERNALS,
    PACKAGE_FOLDERS,
    PLAIN_ENDINGS,
    PLAIN_FILES,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    PROTECTED_PLACES,
    PUBLIC_ENDINGS,
    REPOSITORY_PARTS,
    TEMPLATES,
    VARIANTS,
)
from handrail.policy.spelling import index_short_names, normalize_name, parse_short_name, remove_stream, trim_name

Protection = Literal["credential", "protected"]

_CREDENTIALS = CREDENTIAL_FOLDERS | CREDENTIAL_FILES | PLAIN_FILES
_ENDINGS = (*CREDENTIAL_ENDINGS, *PLAIN_ENDINGS)
_STEERING = PROTECTED_FOLDERS | PROTECTED_FILES | GIT_INTERNALS | {".git"}
_SHORT = {
    **index_short_names(_STEERING),
    **index_short_names(_CREDENTIALS),
    ("gi7eba", ""): ".gitmodules",  # made where four others begin like it
    ("gi7d29", ""): ".gitattributes",
}
_COPIES = ("~", ".bak", ".old", ".orig", ".save", ".swp")
"""What editors and people add to the name of a file when they keep it as it was."""
_STARTS = frozenset(
    "/".join(names[:n]) for names in (place.split("/") for place in CREDENTIAL_PLACES) for n in range(1, len(names))
)
_LAST_NAMES = frozenset(place.rpartition("/")[2] for place in CREDENTIAL_PLACES | PROTECTED_PLACES)


@lru_cache(maxsize=16_384)
def find_protection(path: str) -> Protection | None:
    """How the names on a path are protected; the strictest counts."""
    parts = [_compared(part) for part in path.split("/") if part not in {"", "."}]
    if any(_credential(part) for part in parts) or _passes(parts, CREDENTIAL_PLACES):
        return "credential"
    return "protected" if _protected(parts) or _passes(parts, PROTECTED_PLACES) else None


def is_packaged(path: str) -> bool:
    """Whether a path owes its protection only to what an installed package brought with it; a repository steers git
    wherever it is."""
    parts = path.split("/")
    at = next((n for n, part in enumerate(parts) if part in PACKAGE_FOLDERS), len(parts))
    if at == len(parts) or any(_compared(part).endswith(".git") for part in parts[at:]):
        return False
    return find_protection("/".join(parts[: at + 1])) is None


def is_credential(path: str) -> bool:
    """Whether the last name of a path is one of a credential: `protection`, for who walks down a tree."""
    name = _compared(path.rpartition("/")[2])
    return _credential(name) or (name in _LAST_NAMES and find_protection(path) == "credential")


@lru_cache(maxsize=1024)
def may_name_credential(pattern: str) -> bool:
    """Whether a glob of the shell aims at a credential by the text that is fixed in it: `.env*`, `*.pem`, `id_r?a`.

    One that just takes everything, or every file of an ordinary kind, aims at none (`*`, `*.py`, `*.json`).
    """
    parts = pattern.split("/")
    return find_protection(pattern) == "credential" or any(is_credential_glob(normalize_name(part)) for part in parts)


def list_possible_repositories(path: str) -> tuple[tuple[str, str], ...]:
    """The folders on a path that may be git repositories, whatever they are called, each with the name that follows:
    one that repositories have. Whether they are, somebody has to look."""
    names = [part for part in path.split("/") if part != "."]
    found = [n for n, name in enumerate(names) if _compared(name) in REPOSITORY_PARTS and not _is_git(names[n - 1 : n])]
    return tuple(("/".join(names[:n]) or ("/" if path.startswith("/") else "."), names[n]) for n in found)


def is_git_control_name(name: str) -> bool:
    """Whether a name in a repository's folder steers git, rather than being its everyday work."""
    return _compared(name) in GIT_INTERNALS


def is_git_lock(path: str) -> bool:
    """Whether git takes a file of this name for a lock: while it is there, git refuses to work."""
    *folders, name = (_compared(part) for part in path.split("/"))
    return name.endswith(".lock") and any(folder.endswith(".git") for folder in folders)


def can_hold_credentials(folder: str) -> bool:
    """Whether tools keep credentials somewhere in a folder of this name: `.config`, of which `.config/gh` is one."""
    way = "/".join(["", *(_compared(part) for part in folder.split("/") if part)])
    return any(way.endswith(f"/{start}") for start in _STARTS)


def _is_git(before: list[str]) -> bool:
    return bool(before) and _compared(before[0]).endswith(".git")


def _passes(parts: list[str], places: frozenset[str]) -> bool:
    if _LAST_NAMES.isdisjoint(parts):
        return False
    way = f"/{'/'.join(parts)}/"
    return any(f"/{place}/" in way for place in places)


@lru_cache(maxsize=4096)
def _compared(part: str) -> str:
    plain = trim_name(normalize_name(part)) or part
    return _long_name(plain) if ":" in plain or "~" in plain else plain


def _long_name(name: str) -> str:
    """The name that a stream or a short name stands for, where it is one of ours."""
    if _credential(name):
        return name
    own = remove_stream(name)
    if own != name and (own in _STEERING or _credential(own)):
        return own
    short = parse_short_name(own)
    if short is None:
        return name
    return ".env" if short[0] == "env" else _SHORT.get(short, name)


def _credential(part: str) -> bool:
    if part in _CREDENTIALS:
        return True
    if part.startswith(VARIANTS):
        return part.rpartition(".")[2] not in TEMPLATES
    if part.endswith(_ENDINGS):
        return not part.endswith(PUBLIC_ENDINGS)
    return part.endswith(_COPIES) and _is_copy(part)


def _is_copy(part: str) -> bool:
    """Of a credential: `id_rsa.bak`, `.env~`, and `.id_rsa.swp`, to which vim adds a dot in front."""
    kept = next(part.removesuffix(ending) for ending in _COPIES if part.endswith(ending))
    return bool(kept) and (_credential(kept) or (part.endswith(".swp") and _credential(kept[1:])))


def _protected(parts: list[str]) -> bool:
    if any(part in PROTECTED_FOLDERS for part in parts) or (parts and parts[-1] in PROTECTED_FILES):
        return True
    if parts and parts[-1] == ".git":  # as a file it says where the repository is, with hooks and configuration
        return True
    return any(part.endswith(".git") and GIT_INTERNALS & set(parts[n + 1 : n + 2]) for n, part in enumerate(parts))
