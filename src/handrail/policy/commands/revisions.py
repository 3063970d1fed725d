"""The paths in what git takes as operands: revisions, `revision:path`, and paths with git's own patterns."""

import re
from collections.abc import Iterator

from handrail.policy.commands.reading import Use
from handrail.policy.names import may_name_credential, protection
from handrail.policy.tables.form import Parsed

_RANGE = re.compile(r"\.{2,3}(?!/)")
_LONG_MAGIC = re.compile(r":\(([^)]*)\)(.*)", re.DOTALL)


def read_paths(parsed: Parsed) -> tuple[Use, ...]:
    """What a git command that shows contents reads. A word that may be a branch as well as a file is uncertain, but for
    one that leads elsewhere or has a credential's name."""
    return tuple(dict.fromkeys(_uses(parsed)))


def named_paths(parsed: Parsed) -> tuple[Use, ...]:
    """What a git command that shows only names looks at: whether `.env` is ignored is no secret."""
    return tuple(use for use in read_paths(parsed) if use.certain and _elsewhere(use.path))


def _uses(parsed: Parsed) -> Iterator[Use]:
    for name, value in parsed.options:
        if name == "-L" and value:  # log -L10,20:src/a.py
            for path in _behind_colons(value):
                yield from _reads(path)
    for place, text in enumerate(parsed.operands):
        if place in parsed.globs:  # a pattern of bash's is counted already
            continue
        if parsed.ended is not None and place >= parsed.ended:
            yield from _limit(text)
        else:
            yield from _either(text)


def _limit(text: str) -> Iterator[Use]:
    """An operand behind `--`: a path, or a pattern that git itself compares with paths."""
    path = _without_magic(text) if text.startswith(":") else text
    if path:
        yield from _reads(path)


def _either(text: str) -> Iterator[Use]:
    if text.startswith(":"):
        yield from _limit(text)
        if text[1:2] in {"", "/", "(", "!", "^"}:
            return
    behind = [path for piece in _RANGE.split(text) for path in _behind_colons(piece)]
    for path in behind:
        yield from _reads(path)
    if not behind and _is_pattern(text):
        yield from _reads(text)
    elif not behind:
        yield Use(text, "read", certain=_elsewhere(text) or protection(text) == "credential")


def _behind_colons(text: str) -> Iterator[str]:
    """What stands behind each colon, as in `HEAD:a.py` and `:2:a.py`; one in braces belongs to a date or a message."""
    depth = 0
    for place, letter in enumerate(text):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth = max(0, depth - 1)
        elif letter == ":" and not depth and text[place + 1 :]:
            yield text[place + 1 :]


def _without_magic(text: str) -> str:
    """The path of `:(top)src`, `:/src` and `:src`; empty where the words say what is left out, as in `:!src`."""
    long = _LONG_MAGIC.fullmatch(text)
    if long:
        return "" if "exclude" in long[1].split(",") else long[2]
    path = text[1:].lstrip("/!^")
    signs = text[1 : len(text) - len(path)]
    return "" if "!" in signs or "^" in signs else path.removeprefix(":")


def _reads(path: str) -> Iterator[Use]:
    """A path, and for a pattern what the shell's would not match: git's also stands for a dot in front."""
    yield Use(path, "read", _is_pattern(path))
    folder, slash, name = path.rpartition("/")
    if name[:1] in {"*", "?"}:
        rest = name.lstrip("*?")
        for hidden in (rest, f".{rest}"):
            if may_name_credential(hidden):
                yield Use(folder + slash + hidden, "read", _is_pattern(hidden))


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")


def _elsewhere(path: str) -> bool:
    return path.startswith(("/", "~")) or ".." in path.split("/")
