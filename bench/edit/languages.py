"""The languages that cases are made of."""

import re
from typing import NamedTuple


class Language(NamedTuple):
    """Which files are written in it, how a comment begins, and where a definition says its name."""

    files: str
    comment: str
    definition: re.Pattern[str]


_STARTS = r"^\s*(?:(?:export|default|abstract|async|unsafe|pub(?:\([^)]*\))?) )*"
_METHOD = re.compile(r"^\s*(?:[\w<>\[\],.*&]+\s+)+\**(\w+)\s*\([^;]*$")
LANGUAGES = {
    "python": Language("*.py", "#", re.compile(r"^\s*(?:async )?(?:def|class) (\w+)")),
    "ts": Language("*.ts", "//", re.compile(rf"{_STARTS}(?:function|class|interface|type|enum) (\w+)")),
    "go": Language("*.go", "//", re.compile(r"^func (?:\([^)]*\) )?(\w+)|^type (\w+)")),
    "rust": Language("*.rs", "//", re.compile(rf"{_STARTS}(?:fn|struct|enum|trait) (\w+)")),
    "java": Language("*.java", "//", _METHOD),
    "c": Language("*.c", "//", _METHOD),
}
