"""What the grammar does not see in a shell text, found by its signs alone: a little too much rather than too little."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice

_BACKTICK = re.compile(r"(?<!\\)`")
_PARENTHESIS = re.compile(r"[()]")
_SIGN = r"[\w./~@%+:,*-]"
_NAME = r"(?:[A-Za-z_]\w*|[@*])"
_ASSIGNED = re.compile(
    rf"(?<![\w$./-])([A-Za-z_]\w*)=(?:'([^']*)'|\"([^\"$`\\]*)\"|\(([^()$`]*)\)|({_SIGN}+))(?=[\s;&|)]|\Z)"
)
_LOOPED = re.compile(r"\bfor\s+([A-Za-z_]\w*)\s+in\s+([^;\n$`]+)[;\n]")
_SET = re.compile(r"\bset\s+--\s+([^;\n&|]*)")
_USED = re.compile(
    rf"(?P<quote>\"?)\$(?:(?P<plain>{_NAME})|\{{(?P<name>{_NAME})(?:\[[@*]\]|:?[-=](?P<default>{_SIGN}*))?\}})"
    rf"(?P<rest>{_SIGN}*)(?P=quote)"
)
_BLANK = re.compile(r"\$(?:IFS(?!\w)|\{IFS\})(?:\$9)?")
_BRACES = re.compile(rf"(?<![$\\\w./~-])([\w./~-]*)\{{({_SIGN}*)\}}([\w./~*-]*)")
_MAX_NESTED_BRACES = 3


def list_backtick_texts(text: str) -> list[str]:
    """What stands between each two backticks, with those inside freed of their backslash."""
    pieces = _BACKTICK.split(text)
    return [piece.replace("\\`", "`") for piece in pieces[1::2]]


def list_substitution_texts(text: str, most: int) -> list[str]:
    """What stands in each `$( )`, as far as parentheses can be counted without knowing of quotes; one more than `most`
    where there are more."""
    return [text[start : _end(text, start)] for start in islice(_starts(text), most + 1)]


def expand_known_variables(text: str, most: int) -> str | None:
    """The text with what its own words say put in place of variables, braces and blanks; None where that is too long.

    A variable with several values becomes them all. What is in single quotes is changed as well: nobody runs this text.
    """
    if "$" not in text and "{" not in text:
        return text
    known = _values(text)
    if sum(len(values) for values in known.values()) * text.count("$") > most:
        return None
    spelled = _USED.sub(lambda use: _put(use, known), _BLANK.sub(" ", text))
    for _ in range(_MAX_NESTED_BRACES):
        spelled = _BRACES.sub(_apart, spelled)
    return spelled


def _starts(text: str) -> Iterator[int]:
    at = text.find("$(")
    while at >= 0:
        yield at + 2
        at = text.find("$(", at + 2)


def _end(text: str, start: int) -> int:
    depth = 1
    for sign in _PARENTHESIS.finditer(text, start):
        depth += 1 if sign[0] == "(" else -1
        if depth == 0:
            return sign.start()
    return len(text)


def _values(text: str) -> dict[str, str]:
    """The values that each variable is given somewhere in the text, separated by blanks."""
    known: dict[str, str] = {}
    for name, *spellings in _ASSIGNED.findall(text):
        known[name] = f"{known.get(name, '')} {' '.join(spellings).strip()}".strip()
    for name, values in _LOOPED.findall(text):
        known[name] = f"{known.get(name, '')} {values}".strip()
    for values in _SET.findall(text):
        known["@"] = known["*"] = values
    return known


def _put(use: re.Match[str], known: Mapping[str, str]) -> str:
    values = known.get(use["plain"] or use["name"], use["default"] or "").replace('"', "").replace("'", "")
    if not values:
        return use[0]
    return " ".join(f"{value}{use['rest']}" for value in values.split())


def _apart(braces: re.Match[str]) -> str:
    before, inside, behind = braces.groups()
    return " ".join(f"{before}{one}{behind}" for one in inside.split(",")) if "," in inside else braces[0]
