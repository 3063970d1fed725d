"""Globs of paths as regular expressions that never backtrack far, whatever the pattern and the path.

`*` and `?` stay within a name, `**` is any number of folders. A pattern without a slash is about a name at any depth,
`./name` only about the one at the top; `docs/` and `docs/**` are about everything below docs. A pattern that begins
with a slash is about an extra root, whose paths are absolute.
"""

import re


def split_pattern(pattern: str) -> tuple[str, ...]:
    """The names of a pattern; an absolute one begins with an empty name, just as its paths do when they are split."""
    if "/" not in pattern:
        return (pattern,) if pattern == "**" else ("**", pattern)
    spelled = f"{pattern}**" if pattern.endswith("/") else pattern
    parts = [part for part in spelled.split("/") if part not in {"", "."}]
    return ("", *parts) if pattern.startswith("/") else tuple(parts) or (".",)


def build_exact_regex(parts: tuple[str, ...]) -> str:
    """What just the paths match that the pattern names; the source of a regular expression without groups."""
    *before, last = _between_depths(parts)
    if last:
        return _joined(before) + (_ANY_DEPTH if before else "") + "/".join(map(_name, last))
    return _joined(before) + (".+" if any(before) else ".*")


def build_covering_regex(parts: tuple[str, ...]) -> str:
    """What the paths match that the pattern names, and everything below them."""
    while parts and parts[-1] == "**":
        parts = parts[:-1]
    return f"{build_exact_regex(parts)}(?:/.*)?" if parts else ".*"


_ANY_DEPTH = "(?:[^/]*/)*?"


def _between_depths(parts: tuple[str, ...]) -> list[list[str]]:
    """The runs of names before, between and behind the `**`."""
    runs: list[list[str]] = [[]]
    for part in parts:
        if part == "**":
            runs.append([])
        else:
            runs[-1].append(part)
    return runs


def _joined(runs: list[list[str]]) -> str:
    """All runs but the last. Of those between two `**` the first place that fits is as good as any later one: it
    leaves the most room for the rest, so the choice need never be taken back."""
    texts = ["".join(f"{_name(part)}/" for part in run) for run in runs]
    return "".join(f"(?>{_ANY_DEPTH}{text})" if n and text else text for n, text in enumerate(texts))


def _name(part: str) -> str:
    first, *others = (re.escape(piece).replace(r"\?", "[^/]") for piece in re.split(r"\*+", part))
    if not others:
        return first
    between = "".join(f"(?>[^/]*?{piece})" for piece in others[:-1])
    return f"{first}{between}[^/]*{others[-1]}"
