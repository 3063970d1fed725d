"""Whether a glob aims at a credential's name: by how many characters that it fixes, not by all that it could match."""

from collections.abc import Iterator, Sequence
from functools import lru_cache

from handrail.policy.name_tables import CREDENTIAL_ENDINGS, CREDENTIAL_FILES, CREDENTIAL_FOLDERS, PLAIN_FILES

_MIN_FIXED_CHARS = 2
"""Characters that a glob fixes of a name before it counts as aimed at it."""
_MAX_GLOB_CHARS = 64
"""Of a glob; a longer one is taken to aim at something."""
_ANY = ""
_MANY = "*"
_FIRST_OF_SETTINGS = ".env."

_Token = str
"""A character that is fixed, several of which one is, `_ANY` for any character, `_MANY` for any text."""


@lru_cache(maxsize=1024)
def is_credential_glob(component: str, *, hidden: bool = False) -> bool:
    """Whether a glob of one name, folded, fixes enough of a credential's; `hidden` where it may stand for a dot in
    front, as it does to git and not to the shell."""
    if not any(sign in component for sign in "*?["):
        return False
    if len(component) > _MAX_GLOB_CHARS:
        return True
    tokens = tuple(_tokens(component))
    names = [name for name in _NAMES if hidden or _can_begin(tokens, name)]
    if any(_fixed(tokens, name, hidden=hidden) >= _MIN_FIXED_CHARS for name in names) or _aims_at_part(tokens):
        return True
    return any(_fixed(tokens, name) == len(name.partition(".")[0]) for name in PLAIN_FILES)


_NAMES = tuple(sorted(CREDENTIAL_FILES | CREDENTIAL_FOLDERS))


def _aims_at_part(tokens: Sequence[_Token]) -> bool:
    """At an ending, or at a beginning, whatever the rest of the name is."""
    tails = [tokens[n:] for n in range(len(tokens))]
    if any(_fixed(tail, ending) >= _MIN_FIXED_CHARS for ending in CREDENTIAL_ENDINGS for tail in tails):
        return True
    heads = [tokens[: n + 1] for n in range(len(tokens))] if _can_begin(tokens, _FIRST_OF_SETTINGS) else []
    return any(_fixed(head, _FIRST_OF_SETTINGS) >= _MIN_FIXED_CHARS for head in heads)


def _can_begin(tokens: Sequence[_Token], name: str) -> bool:
    """To the shell a dot in front is matched by a dot only."""
    return not name.startswith(".") or tokens[0] == "."


def _fixed(tokens: Sequence[_Token], name: str, *, hidden: bool = False) -> int:
    """How many characters of a name the glob fixes at most when it matches, -1 when it does not. The ending of a name
    that is a file of an ordinary kind (`.json`) does not count, unless a dot in front was matched by one."""
    ending = name.rfind(".", 1) if hidden or not name.startswith(".") else -1
    counted = len(name) if ending < 0 else ending
    best = [0, *[-1] * len(name)]
    for token in tokens:
        best = list(_after(token, best, name, counted))
    return best[-1]


def _after(token: _Token, best: list[int], name: str, counted: int) -> Iterator[int]:
    """The same table one token later: at each place of the name the most that was fixed on the way there."""
    if token == _MANY:
        most = -1
        for here in best:
            most = max(most, here)
            yield most
        return
    yield -1
    for at, character in enumerate(name):
        if best[at] < 0 or (token != _ANY and character not in token):
            yield -1
        else:
            yield best[at] + (token != _ANY and at < counted)


def _tokens(component: str) -> Iterator[_Token]:
    at = 0
    while at < len(component):
        sign = component[at]
        end = _end_of_set(component, at) if sign == "[" else -1
        if end > 0:
            yield _one_of(component[at + 1 : end])
            at = end
        else:
            yield _ANY if sign == "?" else sign
        at += 1


def _end_of_set(component: str, at: int) -> int:
    first = at + 2 if component[at + 1 : at + 2] in {"!", "^"} else at + 1
    return component.find("]", first + 1)


def _one_of(text: str) -> _Token:
    """The characters of a set. One that is a range, a class or a negation fixes nothing."""
    return _ANY if text[0] in "!^" or "-" in text[1:-1] or "[" in text else text
