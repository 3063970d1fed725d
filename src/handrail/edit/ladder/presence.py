"""Whether it is worth looking for lines in a text at all."""

import re
from collections.abc import Sequence

from handrail.edit.ladder.nearness import count_tolerated_lines
from handrail.edit.ladder.typography import PLAIN_CHARACTERS
from handrail.edit.omission.marks import is_mark

_MAX_SCANNED_CHARS = 200_000_000
"""Characters that are searched at most."""
_UNSEEN = [odd for odd, plain in PLAIN_CHARACTERS.items() if not plain]


def may_be_in(text: str, old: Sequence[str]) -> bool:
    """False where so many words are not in the text that no strategy would find the lines."""
    if not text.isascii() and any(unseen in text for unseen in _UNSEEN):
        return True  # words may be cut by what nobody sees
    full = [line for line in old if line.strip() and not is_mark(line)]
    said = (re.findall(r"\w+", line) for line in full)
    longest = sorted((max(words, key=len) for words in said if words), key=len, reverse=True)
    left = count_tolerated_lines(len(full))
    for word in longest[: max(2, _MAX_SCANNED_CHARS // (len(text) + 1))]:
        left -= word not in text
        if left < 0:
            return False
    return True
