"""The file's characters for those of a text that look like them: curly quotes that were meant straight, and such."""

from collections.abc import Iterable

import msgspec

from handrail.edit.ladder.errors import UnsafeError
from handrail.edit.ladder.fitting import Candidate
from handrail.edit.ladder.typography import PLAIN_CHARACTERS, fold_typography

_TOGETHER = ({"'", '"'}, {",", "(", ")", ":", ";"})
"""Who curled some quotes curled them all, and who typed one sign in full width typed all of them so."""
_ODD_SPACES = [odd for odd, plain in PLAIN_CHARACTERS.items() if plain == " "]
_UNCLEAR = "the file has now one character, now another for U+{:04X} of {{old}}"


def normalize_spaces(fit: Candidate) -> Candidate:
    """The fit with plain spaces for no-break ones and such that both texts have and the place does not."""
    sent, wanted, there = ("".join(lines) for lines in (fit.reading.old, fit.reading.new, fit.lines))
    slips = [odd for odd in _ODD_SPACES if odd in wanted and sent.count(odd) not in {0, there.count(odd)}]
    for odd in slips:
        if odd in there:
            raise UnsafeError(_UNCLEAR.format(ord(odd)))
    plain = str.maketrans(dict.fromkeys(slips, " "))
    old, new = ([line.translate(plain) for line in lines] for lines in (fit.reading.old, fit.reading.new))
    return msgspec.structs.replace(fit, reading=fit.reading._replace(old=old, new=new)) if slips else fit


class CharacterMap:
    """What lines of an old text, beside the file's own, teach about odd characters."""

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self._known: dict[str, str | None] = {}
        for old, own in pairs:
            if not old.isascii():
                self._learn("".join(old.split()), "".join(own.split()))
        for signs in _TOGETHER:
            if not signs.isdisjoint(self._known.values()):
                self._known = {odd: plain for odd, plain in PLAIN_CHARACTERS.items() if plain in signs} | self._known

    def _learn(self, one: str, other: str) -> None:
        """Learns only of lines that say the same; None where the file has now this character, now that."""
        self._known |= {odd: "" for odd in set(one) - set(other) if PLAIN_CHARACTERS.get(odd) == ""}
        if len(one) != len(other) or fold_typography(one) != fold_typography(other):
            return
        for odd, own in zip(one, other, strict=True):
            if odd in PLAIN_CHARACTERS:
                self._known[odd] = own if self._known.get(odd, own) == own else None

    def to_file(self, text: str) -> str:
        """The text with the file's characters."""
        for odd, own in self._known.items():
            if odd in text and own is None:
                raise UnsafeError(_UNCLEAR.format(ord(odd)))
            text = text.replace(odd, own or "")
        return text
