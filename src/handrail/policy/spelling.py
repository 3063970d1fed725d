"""The one form in which all spellings of a name are the same, whatever file system it is on.

Case and normal form are folded, as by macOS and Windows, and by ZFS on request; characters that are not seen are left
out, as HFS+ does; dots and blanks at the end are cut off, a stream's name (`.git::$INDEX_ALLOCATION`) and the short
name that Windows makes (`GIT~1`) are understood, as NTFS does. These are the traps that git too looks for in names.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping
from functools import cache

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
