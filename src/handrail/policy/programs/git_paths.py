"""Finds the paths among the operands of git."""

import re
from collections.abc import Iterator

from handrail.policy.names import find_protection, is_credential_glob, may_name_credential, normalize_name
from handrail.policy.programs.spec import ParsedArgs, PathUse

_RANGE = re.compile(r"\.{2,3}(?!/)")
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_WILDCARD = re.compile(r"[*?]|\[[!^]?.[^\]]*\]", re.DOTALL)
_LONG_MAGIC = re.compile(r":\(([^)]*)\)(.*)", re.DOTALL)


def list_content_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """The paths that a git command with contents in its output reads.

    A word that may be a branch or a file is uncertain, unless it leads elsewhere or names a credential.
    """
    return tuple(dict.fromkeys(_list_uses(parsed)))


def list_named_paths(parsed: ParsedArgs) -> tuple[PathUse, ...]:
    """The paths that a git command reads to print names only. Whether `.env` is ignored is no secret."""
    return tuple(use for use in list_content_paths(parsed) if use.is_certainly_path and _leads_elsewhere(use.path))


def _list_uses(parsed: ParsedArgs) -> Iterator[PathUse]:
    for name, value in parsed.options:
        if name == "-L" and value:  # log -L10,20:src/a.py
            for colon in re.finditer(":", value):  # the regular expression before it may hold colons
                yield from _list_pattern_uses(value[colon.end() :])
    # Globs too: if no file matches, git gets the glob itself.
    for place, text in enumerate(parsed.operands):
        if parsed.ended is not None and place >= parsed.ended:
            yield from _list_pathspec_uses(text)
        else:
            yield from _list_revision_uses(text)


def _list_pathspec_uses(text: str) -> Iterator[PathUse]:
    """An operand after `--` is a path or a pattern of git."""
    path = _strip_magic(text) if text.startswith(":") else text
    if path:
        yield from _list_pattern_uses(path)


def _list_revision_uses(text: str) -> Iterator[PathUse]:
    if text.startswith(":"):
        yield from _list_pathspec_uses(text)
        if text[1:2] in {"", "/", "(", "!", "^"}:
            return
    behind = [path for piece in _RANGE.split(text) for path in _split_colons(piece)]
    for path in behind:
        yield from _list_pattern_uses(path)
    if not behind and _is_pattern(text):
        yield from _list_pattern_uses(text)
    elif not behind:
        yield PathUse(text, "read", is_certainly_path=_leads_elsewhere(text) or find_protection(text) == "credential")


def _split_colons(text: str) -> Iterator[str]:
    """The text after each colon, as in `HEAD:a.py` and `:2:a.py`. A colon in braces is part of a date or message."""
    depth = 0
    for place, letter in enumerate(text):
        if letter == "{":
            depth += 1
        elif letter == "}":
            depth = max(0, depth - 1)
        elif letter == ":" and not depth and text[place + 1 :]:
            yield text[place + 1 :]


def _strip_magic(text: str) -> str:
    """The path of `:(top)src`, `:/src` and `:src`. Empty for an exclusion such as `:!src`."""
    long = _LONG_MAGIC.fullmatch(text)
    if long:
        return "" if "exclude" in long[1].split(",") else long[2]
    path = text[1:].lstrip("/!^")
    signs = text[1 : len(text) - len(path)]
    return "" if "!" in signs or "^" in signs else path.removeprefix(":")


def _list_pattern_uses(path: str) -> Iterator[PathUse]:
    """A path, also without the backslashes that quote signs in git's patterns."""
    if path:
        for text in dict.fromkeys((path, _ESCAPE.sub(r"\1", path))):
            yield PathUse(text, "read", _is_pattern(text))
            yield from list_hidden_uses(text)


def list_hidden_uses(path: str) -> Iterator[PathUse]:
    """The hidden credentials that a pattern of git matches. A glob of the shell would not match the leading dot."""
    names = path.split("/")
    for place, name in enumerate(names):
        if not _WILDCARD.match(name):
            continue
        rest = name.lstrip("*?")
        aimed = [hidden for hidden in (rest, f".{rest}") if may_name_credential(hidden)]
        if not aimed and is_credential_glob(normalize_name(name), hidden=True):
            aimed = [_WILDCARD.sub(".*", name)]
        for hidden in aimed:
            spelled = "/".join([*names[:place], hidden, *names[place + 1 :]])
            yield PathUse(spelled, "read", _is_pattern(spelled))


def _is_pattern(path: str) -> bool:
    return any(letter in path for letter in "*?[")


def _leads_elsewhere(path: str) -> bool:
    return path.startswith(("/", "~")) or ".." in path.split("/")
