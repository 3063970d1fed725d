"""Protected names, however they are spelled."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal

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

# § [policy.spelling] The one form in which all spellings of a name are the same, whatever file system it is on.
# § Case and normal form are folded, as by macOS and Windows, and by ZFS on request; characters that are not seen
# § are left out, as HFS+ does; dots and blanks at the end are cut off, a stream's name (`.git::$INDEX_ALLOCATION`)
# § and the short name that Windows makes (`GIT~1`) are understood, as NTFS does. These are the traps that git too
# § looks for in names.

_UNSEEN = (
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What Unicode calls default ignorable."""
_SHORT_NAME = re.compile(r"(.{1,6})~[0-9]{1,6}(?:\.(.{0,3}))?")


def normalize_name(name: str) -> str:
    """The form in which two spellings of one name are the same."""
    return name.lower() if name.isascii() else _folded(name)


def _folded(name: str) -> str:
    unseen = _unseen()
    seen = unseen.sub("", unicodedata.normalize("NFD", name))
    # Twice each, as Unicode asks for: to normalise can bring forth letters that fold, and to fold such that normalise.
    once = unicodedata.normalize("NFKC", seen.casefold())
    twice = unicodedata.normalize("NFKC", once.casefold())
    return unicodedata.normalize("NFKC", unseen.sub("", twice))


def remove_invisible(text: str) -> str:
    """The text without the characters that are not seen."""
    return text if text.isascii() else _unseen().sub("", text)


@cache
def _unseen() -> re.Pattern[str]:
    """Compiled when the first name needs it: most are plain, and it takes a while."""
    return re.compile(_UNSEEN)


def trim_name(name: str) -> str:
    """Without the dots and blanks at the end that Windows drops; a name of nothing else stays as it is."""
    return name.rstrip(". ") or name


def remove_stream(name: str) -> str:
    """The file's own name, where a stream of it is named."""
    return trim_name(name.partition(":")[0])


def parse_short_name(name: str) -> tuple[str, str] | None:
    """The first six letters and the ending that a name made by Windows was made of; None for other names."""
    found = _SHORT_NAME.fullmatch(name)
    return (found[1], found[2] or "") if found else None


def index_short_names(names: Iterable[str]) -> Mapping[tuple[str, str], str]:
    """The names by what Windows would make their short names of."""
    return {_shortened(name): name for name in names}


def _shortened(name: str) -> tuple[str, str]:
    stem, _, ending = name.lstrip(". ").rpartition(".")
    stem, ending = (stem, ending) if stem else (ending, "")
    return stem.replace(".", "").replace(" ", "")[:6], ending[:3]


# § [policy.aiming] Whether a glob aims at a credential's name: by how many characters that it fixes, not by all
# § that it could match.

_MIN_FIXED_CHARS = 2
"""Characters that a glob fixes of a name before it counts as aimed at it."""
_MAX_GLOB_CHARS = 64
"""Of a glob; a longer one is taken to aim at something."""
_ANY = ""
_MANY = "*"
_FIRST_OF_SETTINGS = ".env."

_Token = str
"""A character that is fixed, several of which one is, `_ANY` for any character, `_MANY` for any text."""


@lru_cache(maxsize=1024)
def is_credential_glob(component: str, *, hidden: bool = False) -> bool:
    """Whether a glob of one name, folded, fixes enough of a credential's; `hidden` where it may stand for a dot in
    front, as it does to git and not to the shell."""
    if not any(sign in component for sign in "*?["):
        return False
    if len(component) > _MAX_GLOB_CHARS:
        return True
    tokens = tuple(_tokens(component))
    names = [name for name in _NAMES if hidden or _can_begin(tokens, name)]
    if any(_fixed(tokens, name, hidden=hidden) >= _MIN_FIXED_CHARS for name in names) or _aims_at_part(tokens):
        return True
    return any(_fixed(tokens, name) == len(name.partition(".")[0]) for name in PLAIN_FILES)


_NAMES = tuple(sorted(CREDENTIAL_FILES | CREDENTIAL_FOLDERS))


def _aims_at_part(tokens: Sequence[_Token]) -> bool:
    """At an ending, or at a beginning, whatever the rest of the name is."""
    tails = [tokens[n:] for n in range(len(tokens))]
    if any(_fixed(tail, ending) >= _MIN_FIXED_CHARS for ending in CREDENTIAL_ENDINGS for tail in tails):
        return True
    heads = [tokens[: n + 1] for n in range(len(tokens))] if _can_begin(tokens, _FIRST_OF_SETTINGS) else []
    return any(_fixed(head, _FIRST_OF_SETTINGS) >= _MIN_FIXED_CHARS for head in heads)


def _can_begin(tokens: Sequence[_Token], name: str) -> bool:
    """To the shell a dot in front is matched by a dot only."""
    return not name.startswith(".") or tokens[0] == "."


def _fixed(tokens: Sequence[_Token], name: str, *, hidden: bool = False) -> int:
    """How many characters of a name the glob fixes at most when it matches, -1 when it does not. The ending of a name
    that is a file of an ordinary kind (`.json`) does not count, unless a dot in front was matched by one."""
    ending = name.rfind(".", 1) if hidden or not name.startswith(".") else -1
    counted = len(name) if ending < 0 else ending
    best = [0, *[-1] * len(name)]
    for token in tokens:
        best = list(_after(token, best, name, counted))
    return best[-1]


def _after(token: _Token, best: list[int], name: str, counted: int) -> Iterator[int]:
    """The same table one token later: at each place of the name the most that was fixed on the way there."""
    if token == _MANY:
        most = -1
        for here in best:
            most = max(most, here)
            yield most
        return
    yield -1
    for at, character in enumerate(name):
        if best[at] < 0 or (token != _ANY and character not in token):
            yield -1
        else:
            yield best[at] + (token != _ANY and at < counted)


def _tokens(component: str) -> Iterator[_Token]:
    at = 0
    while at < len(component):
        sign = component[at]
        end = _end_of_set(component, at) if sign == "[" else -1
        if end > 0:
            yield _one_of(component[at + 1 : end])
            at = end
        else:
            yield _ANY if sign == "?" else sign
        at += 1


def _end_of_set(component: str, at: int) -> int:
    first = at + 2 if component[at + 1 : at + 2] in {"!", "^"} else at + 1
    return component.find("]", first + 1)


def _one_of(text: str) -> _Token:
    """The characters of a set. One that is a range, a class or a negation fixes nothing."""
    return _ANY if text[0] in "!^" or "-" in text[1:-1] or "[" in text else text


# § [policy.names] Names that policy treats apart, whichever way they are spelled.

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


def is_in_folder(path: str, folder: str) -> bool:
    """Whether a path is a folder or lies in it. Both are normalized, and both are relative or both absolute."""
    return path == folder or path.startswith(f"{folder}/")


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


# § [policy.secret_globs] The credential names of policy as globs: never broader than `protection`, so that nothing
# § else is passed over.

_MAX_ENDING_CHARS = 3
"""Characters at the end of a name that tell a template; names alike in more than these are left to `protection`."""


def list_secret_globs() -> tuple[str, ...]:
    """Globs of names, to be compared in any case, that `protection` calls credentials.

    What a glob cannot say well (dots or spaces at the end, letters that only case-folding makes equal, names that
    nearly are a template's) is left out: who uses these globs asks `protection` as well. They are few, since a search
    program builds them anew each time it starts.
    """
    exact = [*sorted(CREDENTIAL_FOLDERS | CREDENTIAL_FILES | PLAIN_FILES)]
    endings: list[str] = []
    for ending in (*CREDENTIAL_ENDINGS, *PLAIN_ENDINGS):
        public = [end.removesuffix(ending) for end in PUBLIC_ENDINGS if end.endswith(ending)]
        pieces = list(_other_endings(public))
        exact += [f"{suffix}{ending}" for suffix, _ in pieces]
        endings += [f"[!{before}]{suffix}{ending}" for suffix, before in pieces] or [ending]
    # The last character must not be one that `protection` strips: it would then be about another name.
    environments = [
        f"[!{before}{'' if suffix else '. '}]{suffix}" for suffix, before in _other_endings(f".{w}" for w in TEMPLATES)
    ]
    return _either("", exact), _either("*", endings), _either(f"{{{','.join(VARIANTS)}}}*", environments)


def _either(start: str, ends: list[str]) -> str:
    return f"{start}{{{','.join(ends)}}}"


def _other_endings(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    """How texts end that end in none of the words: a piece, and the characters that do not stand before it."""
    before: dict[str, set[str]] = {}
    for word in words:
        for start in range(max(0, len(word) - _MAX_ENDING_CHARS - 1), len(word)):
            before.setdefault(word[start + 1 :], set()).add(word[start])
    for suffix in sorted(before):
        yield suffix, "".join(sorted(before[suffix]))
