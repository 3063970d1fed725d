"""Names that somebody may have meant."""

import itertools
import os

_LOOKED_AT = 2_000


def nearby(name: str, folder: int, count: int = 3) -> list[str]:
    """Up to `count` names in an open folder that resemble the one that is not there."""
    from difflib import get_close_matches  # noqa: PLC0415  costs start-up time, and most files are there

    with os.scandir(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, _LOOKED_AT) if entry.name.isprintable()]
    same = [found for found in names if found.casefold() == name.casefold()]
    close = get_close_matches(name[:255], names, n=count, cutoff=0.6)
    return list(dict.fromkeys(same + close))[:count]
