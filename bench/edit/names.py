"""Names in a line of code: the same one slightly wrong, and a wholly different one."""

import difflib
import random
import re

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{2,}")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
        self def return class import from func function const let var new public private static void int char for while
        if else elif try except fn pub impl struct use match type interface package nil None null true false True False
        this not and raise async await switch case break continue default throw throws catch finally final extends
        implements lambda with yield pass assert mut where loop range defer chan unsigned long double float bool boolean
        string export typeof sizeof
        """,
    )
)
_UNLIKE = 0.45


def misspelt(line: str, chance: random.Random) -> str | None:
    """The line with one name slightly wrong."""
    found = [match for match in _NAME.finditer(line) if match[0] not in _KEYWORDS]
    if not found:
        return None
    match = chance.choice(found)
    name = match[0]
    other = name.upper() if name.islower() else name.lower()
    wrong = chance.choice([f"{name}s", f"{name}_", name[:-1], f"old_{name}", f"{name}2", other])
    return None if wrong == name or len(wrong) < 2 else line[: match.start()] + wrong + line[match.end() :]


def names_in(text: str) -> list[str]:
    """All names, each once, in the order in which they come."""
    return [name for name in dict.fromkeys(_NAME.findall(text)) if name not in _KEYWORDS]


def unlike(name: str, text: str, chance: random.Random) -> str | None:
    """Another name of the text that nobody takes for this one."""
    words = _words(name)
    others = [other for other in names_in(text) if _style(other) == _style(name) and not words & _words(other)]
    chance.shuffle(others)
    return next((other for other in others if _ratio(name, other) < _UNLIKE), None)


def renamed(line: str, name: str, other: str) -> str:
    """The line with one name in the place of another."""
    return re.sub(rf"\b{re.escape(name)}\b", other, line)


def _words(name: str) -> set[str]:
    return {word.lower() for word in _WORD.findall(name)}


def _style(name: str) -> tuple[bool, bool, bool]:
    return name[0].isupper(), name.islower(), len(name) > 3


def _ratio(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, one.lower(), other.lower()).ratio()
