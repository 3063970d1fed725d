"""Files that are not plain UTF-8: what the edit does not mean must keep its bytes."""

import random
import re

import msgspec

from bench.edit.case import Splice
from bench.edit.hunk import Draft, Hunk, Step, UnfitError, sent, texts_of
from bench.edit.kinds.plain import usual_site
from bench.edit.lines import joined
from bench.edit.slips import trailing

_ACCENTS = str.maketrans("aeiou", "àéïöü")
_WORD = re.compile(r"\b[a-z]{4,}\b")
_STRAY = "\udcff"
"""How a byte that is no UTF-8 is written in a text until it becomes bytes."""


def byte_order_mark(hunk: Hunk, chance: random.Random) -> Draft:
    return msgspec.structs.replace(_slipped(hunk, chance), encoding="utf-8-sig")


def utf_16(hunk: Hunk, chance: random.Random) -> Draft:
    draft = _slipped(accented(hunk, chance), chance)
    return msgspec.structs.replace(draft, encoding=chance.choice(["utf-16-le", "utf-16-be"]))


def latin_1(hunk: Hunk, chance: random.Random) -> Draft:
    if not hunk.before.isascii():
        raise UnfitError
    draft = _slipped(accented(hunk, chance), chance)
    try:
        (draft.new + draft.file).encode("latin-1")
    except UnicodeEncodeError:
        raise UnfitError from None
    return msgspec.structs.replace(draft, encoding="latin-1")


def stray_byte(hunk: Hunk, chance: random.Random) -> Draft:
    """UTF-8 with one byte that is none, at the end of a line that the edit does not touch."""
    hunk = accented(hunk, chance)
    lines = hunk.before.split("\n")
    last = hunk.first + sum(step.tag != "+" for step in hunk.steps)
    among = [number for number in range(len(lines) - 1) if not hunk.first <= number < last]
    if not among:
        raise UnfitError
    lines[chance.choice(among)] += _STRAY
    draft = _slipped(msgspec.structs.replace(hunk, before=joined(lines)), chance)
    return _as_bytes(draft)


def accented(hunk: Hunk, chance: random.Random) -> Hunk:
    """The file with accents on one of its words, wherever that is."""
    old = joined(texts_of(hunk.steps).old)
    words = sorted({word for word in _WORD.findall(old) if set(word) & set("aeiou")})
    if not words:
        raise UnfitError
    word = chance.choice(words)
    other = word.translate(_ACCENTS)
    steps = tuple(Step(tag, _renamed(line, word, other)) for tag, line in hunk.steps)
    return msgspec.structs.replace(hunk, before=_renamed(hunk.before, word, other), steps=steps)


def _renamed(text: str, word: str, other: str) -> str:
    return re.sub(rf"\b{word}\b", other, text)


def _slipped(hunk: Hunk, chance: random.Random) -> Draft:
    """Half of the edits as they should be, half with white space that the file does not have."""
    site = usual_site(hunk, chance)
    old = trailing(site.texts.old, chance) if chance.random() < 0.5 else site.texts.old
    return sent(site, joined(old), site.new, exact=True)


def _as_bytes(draft: Draft) -> Draft:
    """A character of the file for each of its bytes."""

    def moved(position: int) -> int:
        return len(draft.file[:position].encode("utf-8", "surrogateescape"))

    def read(text: str) -> str:
        return text.encode("utf-8", "surrogateescape").decode("latin-1")

    right = tuple(
        tuple(Splice(moved(start), moved(end), read(text)) for start, end, text in splices) for splices in draft.right
    )
    return msgspec.structs.replace(draft, file=read(draft.file), right=right, encoding="latin-1")
