"""How names, counts and changes are written for people and models."""

from handrail.edit.diff import Diff

_MAX_DIFF_CHARS = 3_000
"""Characters of a diff that the model is shown."""


def format_count(number: int, noun: str) -> str:
    """1 file, 2,000 files, 3 matches."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun}{'es' if noun.endswith('ch') else 's'}"


def render_diff_body(diff: Diff) -> str:
    """A diff of one file without its header, as much of it as is worth reading."""
    hunks = diff.text.partition("\n+++ ")[2].partition("\n")[2] or diff.text
    if len(hunks) <= _MAX_DIFF_CHARS:
        return hunks
    end = hunks.rfind("\n", 0, _MAX_DIFF_CHARS) + 1
    return f"{hunks[:end]}…\n"


def describe_tolerance(strategy: str) -> str:
    """What was forgiven to find a place, so that who sent it can look at what was meant; empty where nothing was."""
    if strategy == "exact":
        return ""
    from handrail.edit.fuzzy.strategies import FORGIVEN  # noqa: PLC0415  loaded already, where it is not exact

    return f"found but for {FORGIVEN[strategy]}"
