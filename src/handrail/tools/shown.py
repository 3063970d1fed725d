"""How names, counts and changes are written for people and models."""

from handrail.edit.diff import Diff

_SHOWN = 3_000
"""Characters of a diff that the model is shown."""


def shown_name(path: str) -> str:
    """A name as text: bytes that are none, and control characters, are made visible."""
    if path.isprintable():
        return path
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in path)


def counted(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def changed_lines(diff: Diff) -> str:
    """A diff of one file without its header, as much of it as is worth reading."""
    hunks = diff.text.partition("\n+++ ")[2].partition("\n")[2] or diff.text
    if len(hunks) <= _SHOWN:
        return hunks
    end = hunks.rfind("\n", 0, _SHOWN) + 1
    return f"{hunks[:end]}…\n"


def found_but_for(strategy: str) -> str:
    """What was forgiven to find a place, so that who sent it can look at what was meant; empty where nothing was."""
    if strategy == "exact":
        return ""
    from handrail.edit.ladder.strategies import FORGIVEN  # noqa: PLC0415  loaded already, where it is not exact

    return f"found but for {FORGIVEN[strategy]}"
