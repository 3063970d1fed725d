"""The paths in what git takes as operands: revisions, `revision:path`, and paths with git's own patterns."""

import re
from collections.abc import Iterator

from handrail.policy.aiming import is_credential_glob
from handrail.policy.commands.reading import PathUse
from handrail.policy.names import find_protection, may_name_credential
from handrail.policy.spelling import normalize_name
from handrail.policy.tables.form import ParsedArgs

_RANGE = re.compile(r"\.{2,3}(?!/)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WILD = re.compile(r"[*?]|\[[!^]?.[^\]]*\]", re.DOTALL)
_LONG_MAGIC = re.compile(r":\(([^)]*)\)(.*)", re.DOTALL)


def list_content_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """What a git command that shows contents reads. A word that may be a branch as well as a file is uncertain, but for
    one that leads elsewhere or has a credential's name."""
    return tuple(dict.fromkeys(_uses(parsed)))


def list_named_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """What a git command that shows only names looks at: whether `.env` is ignored is no secret."""
    return tuple(use for use in list_content_paths(parsed) if use.is_certainly_path and _elsewhere(use.path))


def _uses(parsed: ParsedArgs) -> Iterator[PathUse]:
    for name, value in parsed.options:
        if name == "-L" and value:  # log -L10,20:src/a.py
            for colon in re.finditer(":", value):  # braces in front of it may be anything
                yield from _reads(value[colon.end() :])
    # A pattern of bash's too: where it stands for no file, git gets it as it is.
    for place, text in enumerate(parsed.operands):
        if parsed.ended is not None and place >= parsed.ended:
            yield from _limit(text)
        else:
            yield from _either(text)


def _limit(text: str) -> Iterator[PathUse]:
    """An operand behind `--`: a path, or a pattern that git itself compares with paths."""
    path = _without_magic(text) if text.startswith(":") else text
    if path:
        yield from _reads(path)


def _either(text: str) -> Iterator[PathUse]:
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
        yield PathUse(text, "read", is_certainly_path=_elsewhere(text) or find_protection(text) == "credential")


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


def _reads(path: str) -> Iterator[PathUse]:
    """A path; in git's patterns a backslash makes the next sign mean itself."""
    if path:
        for text in dict.fromkeys((path, _ESCAPE.sub(r"\1", path))):
            yield PathUse(text, "read", _is_pattern(text))
            yield from list_hidden_uses(text)


def list_hidden_uses(path: str) -> Iterator[PathUse]:
    """The credentials that the shell's pattern would not match: git's also stands for a dot in front."""
    names = path.split("/")
    for place, name in enumerate(names):
        if not _WILD.match(name):
            continue
        rest = name.lstrip("*?")
        aimed = [hidden for hidden in (rest, f".{rest}") if may_name_credential(hidden)]
        if not aimed and is_credential_glob(normalize_name(name), hidden=True):
            aimed = [_WILD.sub(".*", name)]
        for hidden in aimed:
            spelled = "/".join([*names[:place], hidden, *names[place + 1 :]])
            yield PathUse(spelled, "read", _is_pattern(spelled))


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")


def _elsewhere(path: str) -> bool:
    return path.startswith(("/", "~")) or ".." in path.split("/")
