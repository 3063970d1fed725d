"""On which line of a TOML text a key stands."""

import re

_NAME = r"([A-Za-z0-9_.-]++)"
_HEADER = re.compile(rf"[ \t]*+\[\[?[ \t]*+{_NAME}[ \t]*+\]")
_ASSIGNMENT = re.compile(rf"[ \t]*+{_NAME}[ \t]*+=")


def key_lines(text: str) -> dict[str, int]:
    """The line of each dotted key, as far as it is certain; tomllib does not tell."""
    if '"""' in text or "'''" in text:  # a line inside such a string can look like a key
        return {}
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            table = f"{header[1]}."
            _note(lines, header[1], number)
        elif assignment := _ASSIGNMENT.match(line):
            _note(lines, table + assignment[1], number)
    return lines


def _note(lines: dict[str, int], name: str, number: int) -> None:
    """A problem is reported by section or by setting, so only the first two parts are of use."""
    section, *rest = name.split(".", 2)
    lines.setdefault(section, number)
    if rest:
        lines.setdefault(f"{section}.{rest[0]}", number)
