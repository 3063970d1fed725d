"""Patches of one file, as tests write them."""

import pytest

from handrail.edit.lines import apply_replacements
from handrail.edit.patch.apply import AppliedHunks, apply_hunks
from handrail.edit.patch.envelope import parse_patch
from handrail.protocol.errors import ToolError

CLASSES = """\
class A:
    def first(self):
        return 1

    def second(self):
        return 1


class B:
    def first(self):
        return 1
"""


def fit(text: str, *lines: str) -> AppliedHunks:
    [file] = parse_patch("\n".join(["*** Begin Patch", "*** Update File: a", *lines, "*** End Patch"]))
    return apply_hunks(text, file.hunks, "a")


def made(text: str, *lines: str) -> str:
    return apply_replacements(text, fit(text, *lines).replacements)


def by_diff(text: str, *lines: str) -> str:
    [file] = parse_patch("\n".join(["--- a/a", "+++ b/a", *lines, ""]))
    return apply_replacements(text, apply_hunks(text, file.hunks, "a").replacements)


def refusal(text: str, *lines: str) -> ToolError:
    with pytest.raises(ToolError) as refused:
        fit(text, *lines)
    return refused.value
