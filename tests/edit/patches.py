"""Patches of one file, as tests write them."""

import pytest

from handrail.edit.newlines import replaced
from handrail.edit.patch.fitting import Fitted, fitted
from handrail.edit.patch.parsing import parsed
from handrail.protocol.error import ToolError

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


def fit(text: str, *lines: str) -> Fitted:
    [file] = parsed("\n".join(["*** Begin Patch", "*** Update File: a", *lines, "*** End Patch"]))
    return fitted(text, file.hunks, "a")


def made(text: str, *lines: str) -> str:
    return replaced(text, fit(text, *lines).replacements)


def by_diff(text: str, *lines: str) -> str:
    [file] = parsed("\n".join(["--- a/a", "+++ b/a", *lines, ""]))
    return replaced(text, fitted(text, file.hunks, "a").replacements)


def refusal(text: str, *lines: str) -> ToolError:
    with pytest.raises(ToolError) as refused:
        fit(text, *lines)
    return refused.value
