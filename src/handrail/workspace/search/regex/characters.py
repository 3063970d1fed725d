"""Sets of characters as Rust's expressions define them, asked one character at a time."""

import unicodedata
from collections.abc import Callable
from functools import lru_cache

Test = Callable[[str], bool]

_TABLES = (15, 0)
"""The version of Unicode that ripgrep 14 knows."""
_WORD = frozenset({"Lu", "Ll", "Lt", "Lm", "Lo", "Nl", "Mn", "Mc", "Me", "Nd", "Pc"})
_WORD_BESIDES = ((0x200C, 0x200D), (0x24B6, 0x24E9), (0x1F130, 0x1F149), (0x1F150, 0x1F169), (0x1F170, 0x1F189))
"""Joiners and letters in circles and squares: words are made of them, though their category says otherwise."""
_SPACE = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000").union(map(chr, range(0x2000, 0x200B)))
_NEW_IN_15 = (
    (0x0CF3, 0x0CF3), (0x0ECE, 0x0ECE), (0x10EFD, 0x10EFF), (0x1123F, 0x11241), (0x11B00, 0x11B09), (0x11F00, 0x11F59),
    (0x1342F, 0x13455), (0x1B132, 0x1B155), (0x1D2C0, 0x1D2D3), (0x1DF25, 0x1DF2A), (0x1E030, 0x1E08F),
    (0x1E4D0, 0x1E4F9), (0x1F6DC, 0x1F6DC), (0x1F774, 0x1F77F), (0x1F7D9, 0x1F7D9), (0x1FA75, 0x1FAF8),
    (0x2B739, 0x2B739), (0x31350, 0x323AF),
)  # fmt: skip
"""Where ripgrep's tables know characters that Python 3.11 does not."""
_NEWER = (
    (0x0897, 0x0897), (0x088F, 0x088F), (0x0C5C, 0x0C5C), (0x0CDC, 0x0CDC), (0x1ACF, 0x1AFF), (0x1C89, 0x1C8F),
    (0x20C1, 0x20CF), (0x2B96, 0x2B96), (0x2FFC, 0x2FFF), (0x31E4, 0x31EF), (0xA7CB, 0xA7CF), (0xA7D2, 0xA7D4),
    (0xA7DA, 0xA7F1), (0xFBC3, 0xFBD2), (0xFD90, 0xFD91), (0xFDC8, 0xFDCE), (0x10000, 0x1F2FF), (0x1F700, 0x1FFFF),
    (0x2A6E0, 0x10FFFF),
)  # fmt: skip
"""Where Unicode has grown since, roughly: what newer versions of Python say there is not believed."""
_POSIX = {
    "alnum": "09AZaz", "alpha": "AZaz", "ascii": "\0\x7f", "blank": "\t\t  ", "cntrl": "\0\x1f\x7f\x7f", "digit": "09",
    "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
    "word": "09AZ__az", "xdigit": "09AFaf",
}  # fmt: skip
"""The first and the last of each run."""
_CATEGORIES = frozenset(
    {
        "L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N", "Nd", "Nl", "No", "P", "Pc", "Pd", "Ps", "Pe",
        "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z", "Zs", "Zl", "Zp",
    }
)  # fmt: skip


def is_any(_: str) -> bool:
    """Any character; what is no character is never asked about."""
    return True


def is_word(character: str) -> bool:
    """`\\w`"""
    if character.isascii():
        return character.isalnum() or character == "_"
    return unicodedata.category(character) in _WORD or _within(ord(character), _WORD_BESIDES)


def is_digit(character: str) -> bool:
    """`\\d`"""
    return unicodedata.category(character) == "Nd"


def is_space(character: str) -> bool:
    """`\\s`"""
    return character in _SPACE


def find_posix_class(name: str) -> Test | None:
    """`[:name:]`, which is about ASCII only."""
    ends = _POSIX.get(name)
    if ends is None:
        return None
    return join_tests([build_range(low, high) for low, high in zip(ends[::2], ends[1::2], strict=True)])


def find_category(name: str) -> Test | None:
    """`\\p{Lu}` and its like; None for properties that Python has no tables of."""
    if name not in _CATEGORIES:
        return None
    return lambda character: unicodedata.category(character).startswith(name)


def is_doubtful(character: str) -> bool:
    """Whether Python's tables and Rust's may say different things about a character."""
    version = tuple(map(int, unicodedata.unidata_version.split(".")[:2]))
    if version < _TABLES:
        return unicodedata.category(character) == "Cn" and _within(ord(character), _NEW_IN_15)
    return version > _TABLES and _within(ord(character), _NEWER)


def negate(test: Test) -> Test:
    """All others."""
    return lambda character: not test(character)


def build_range(low: str, high: str) -> Test:
    """From one to another."""
    return lambda character: low <= character <= high


def join_tests(tests: list[Test]) -> Test:
    """Those in any of them."""
    return lambda character: any(test(character) for test in tests)


def ignore_case(test: Test) -> Test:
    """Those of which some other case is in a set."""
    return lambda character: any(map(test, list_cases(character)))


@lru_cache(maxsize=4096)
def list_cases(character: str) -> tuple[str, ...]:
    """A character and those that differ from it by case only, as one character each."""
    if character in "kK":
        return ("k", "K", "\u212a")
    if character in "sS":
        return ("s", "S", "\u017f")
    if character.isascii():
        return (character, character.swapcase())
    return _orbits().get(_folded(character), (character,))


@lru_cache(maxsize=1)
def _orbits() -> dict[str, tuple[str, ...]]:
    """Characters by what they fold to, where several do."""
    found: dict[str, set[str]] = {}
    for code in range(0x1EA00):
        character = chr(code)
        folded = _folded(character)
        if folded != character:
            found.setdefault(folded, {folded}).add(character)
    return {folded: tuple(sorted(members)) for folded, members in found.items()}


def _folded(character: str) -> str:
    """The simple folding, which is one character always."""
    for folded in (character.casefold(), character.lower()):
        if len(folded) == 1:
            return folded
    return character


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= code <= high for low, high in ranges)
