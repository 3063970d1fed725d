"""Names that somebody may have meant."""

import itertools
import os

_MAX_SEEN_NAMES = 2_000


def list_similar_names(name: str, folder: int, count: int = 3) -> list[str]:
    """Up to `count` names in an open folder that resemble the one that is not there."""
    from difflib import get_close_matches  # noqa: PLC0415  costs start-up time, and most files are there

    with os.scandir(folder) as entries:
        names = [entry.name for entry in itertools.islice(entries, _MAX_SEEN_NAMES) if entry.name.isprintable()]
    same = [found for found in names if found.casefold() == name.casefold()]
    close = get_close_matches(name[:255], names, n=count, cutoff=0.6)
    return list(dict.fromkeys(same + close))[:count]
