r"""Words: what they may be made of, and what they say once quotes and backslashes are taken off.

Everything here is a sign that means itself where it stands, a sign that quoting makes mean itself, or a glob. Some that
look dangerous are not, in a shell that nobody types into:
- `!`: history is not expanded, and as a program it is refused.
- A backslash before a printable sign: that sign. Between double quotes it stays, but before `$`, a backtick, `"`, `\`.
- `{}`, `@{upstream}`, `HEAD^{tree}`: braces expand around a comma or two dots. Each closes what it opened, with neither
  inside, so none of them can come to stand around those of the rest of the word.
- `$` at the end of a word, and between double quotes before the last of them, a blank, `|` or `)`: it names nothing.
- `~` and `#` behind a letter or the like: they are active at the start of a word, and `~` behind `=` and `:`.
- `[` without a `]` behind it and `]` without a `[` before it: no globs.
"""

import re

from handrail.policy.shell.refused import UnsupportedSyntax
from handrail.policy.shell.script import Word

_QUOTES = "'\""
_OPTION = "-+"
_NAME = r"A-Za-z0-9_\-"
_CONTROL = r"\x00-\x08\x0b-\x1f\x7f"
PLAIN = rf"[{_NAME}./,:=+@%^!]++"
"""Signs that mean themselves wherever they stand in an operand."""
_INNER = rf"(?<=[{_NAME}./,+@%^!~#}}])[~#]|(?<=[=:])[#]"
_BRACES = rf"\{{\}}|(?<=[@^])\{{[{_NAME}]++(?:\.[{_NAME}]++)*\}}"
INSIDE_DOUBLE = rf'(?:[^"\\$`{_CONTROL}]++|\\[ -~]|\$(?=[ "|)]))*'
INSIDE_SINGLE = rf"[^'{_CONTROL}]*+"
_SET = rf"[!^]?[{_NAME}.]++\]"
# Every piece begins with a sign that no other begins with, or looks at what follows: there is one way to take a word
# apart, and going back over it finds nothing. (Possessive groups would say so too; Python 3.11.2 matches them wrongly.)
_PIECES = {
    "literal": rf"{PLAIN}|{_INNER}|{_BRACES}|\$(?=[ \t\n]|\Z)",
    "single": f"'{INSIDE_SINGLE}'",
    "double": rf'"{INSIDE_DOUBLE}"',
    "escaped": r"\\[ -~]",
    "wild": r"[*?]",
    "bracket": rf"\[{_SET}",
    "lone": rf"\[(?!{_SET})|\]",
}
MAX_WORD_PARTS = 100
WORD = f"(?:{'|'.join(_PIECES.values())}){{1,{MAX_WORD_PARTS}}}"
"""A word, or as much of it as is looked at."""

_PIECE = re.compile("|".join(f"({pattern})" for pattern in _PIECES.values()))
_LITERAL, _SINGLE, _DOUBLE, _ESCAPED, _WILD = range(1, 6)
_TAKEN_APART = re.compile(r"""['"\\\[\]]""")
_WILDCARD = re.compile(r"[*?]")
_HIDDEN = re.compile(r"(?:^|/)\.[^/]*[*?\[]")


def parse_word(raw: str, at: int) -> tuple[Word, int]:
    """What a word in the form of `WORD` says, and how many parts it was read from; `at` is where it begins."""
    first = raw[0]
    if first in _QUOTES:
        if raw.find(first, 1) == len(raw) - 1 and (first == "'" or "\\" not in raw):
            return Word(raw[1:-1]), 0
    elif not _TAKEN_APART.search(raw):
        globs = [] if first in _OPTION else [match.start() for match in _WILDCARD.finditer(raw)]
        return (_pattern(raw, globs, at), len(globs) + 1) if globs else (Word(raw), 0)
    return _put_together(raw, at)


def _put_together(raw: str, at: int) -> tuple[Word, int]:
    text, globs, opened, parts = "", list[int](), False, 2  # such a word takes as long as two more parts would
    for match in _PIECE.finditer(raw):
        kind, part = match.lastindex or 0, match[0]
        if kind == _WILD:
            globs.append(len(text))
        elif kind > _WILD:
            globs += _bracket(part, len(text), opened, at + match.start())
            opened = opened or part == "["
        elif kind != _LITERAL:
            part = _taken_off(kind, part)
        text += part
        parts += 1
    return _pattern(text, globs, at) if globs else Word(text), parts


def _taken_off(kind: int, part: str) -> str:
    """A quoted part without its quotes."""
    if kind == _ESCAPED:
        return part[1]
    if kind == _SINGLE or "\\" not in part:
        return part[1:-1]
    # Pairs of backslashes first: what is left of a row of them belongs to the sign behind.
    pairs = part[1:-1].split("\\\\")
    return "\\".join(piece.replace('\\"', '"').replace("\\$", "$").replace("\\`", "`") for piece in pairs)


def _bracket(part: str, place: int, opened: bool, at: int) -> tuple[int, ...]:
    """The globs of `[a-z]`; a bracket that stands alone is none, unless another one makes a pair of them after all."""
    if opened and part[-1] == "]":
        raise UnsupportedSyntax("uses [ ] with signs between them that shells take in different ways", at)
    return (place, place + len(part) - 1) if len(part) > 1 else ()


def _pattern(text: str, globs: list[int], at: int) -> Word:
    """A pattern, so that no name that matches it can be an option, a hidden file or a way up.

    - `-x*`, `--include=*.py`: only a file whose name begins like that option could match, and nobody means that. The
      word is what it is without such a file: itself.
    - `*.py`: a file called `-rf` would become an option. `./*.py` matches the same files, under names that are paths.
    """
    if text[0] in _OPTION:
        return Word(text)
    if "/." in text or text[0] == ".":
        _check_dots(text, globs[0], at)
    if globs[0] == 0:
        return Word(f"./{text}", tuple([place + 2 for place in globs]))
    return Word(text, tuple(globs))


def _check_dots(text: str, first: int, at: int) -> None:
    if _HIDDEN.search(text):
        raise UnsupportedSyntax("uses a pattern that hidden files or the folder above can match", at)
    if text.find("/../", first) >= 0 or text.endswith("/.."):
        raise UnsupportedSyntax("goes up (..) from a folder that a pattern stands for", at)
