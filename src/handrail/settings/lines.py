"""On which line of a TOML text a key stands."""

import re

_NAME = r"([A-Za-z0-9_.-]++)"
_HEADER = re.compile(rf"[ \t]*+\[\[?[ \t]*+{_NAME}[ \t]*+\]")
_ASSIGNMENT = re.compile(rf"[ \t]*+{_NAME}[ \t]*+=")


def find_key_lines(text: str) -> dict[str, int]:
    """The line of each dotted key, as far as it is certain; tomllib does not tell."""
    lines: dict[str, int] = {}
    for number, name in _places(text):
        _note(lines, name, number)
    return lines


def find_table_lines(text: str, array: str, count: int) -> list[dict[str, int]]:
    """For each of the `count` tables written `[[array]]`, the line of each of its keys; `""` has that of the table."""
    found: list[dict[str, int]] = []
    for number, name in _places(text):
        first, _, rest = name.partition(".")
        if name == array:
            found.append({"": number})
        elif first == array and found:
            found[-1].setdefault(rest.partition(".")[0], number)
    if len(found) == count:
        return found
    line = find_key_lines(text).get(array)  # written as a list, or not all in the usual form
    return [{"": line} if line else {} for _ in range(count)]


def find_lines_below(text: str, table: str) -> dict[str, int]:
    """For each name right below a dotted name, the line where it stands first."""
    found: dict[str, int] = {}
    for number, name in _places(text):
        if name.startswith(f"{table}."):
            found.setdefault(name.removeprefix(f"{table}.").partition(".")[0], number)
    return found


def _places(text: str) -> list[tuple[int, str]]:
    """Every header and every assignment: its line and its dotted name."""
    if '"""' in text or "'''" in text:  # a line inside such a string can look like a key
        return []
    places: list[tuple[int, str]] = []
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if header := _HEADER.match(line):
            places.append((number, header[1]))
            table = f"{header[1]}."
        elif assignment := _ASSIGNMENT.match(line):
            places.append((number, table + assignment[1]))
    return places


def _note(lines: dict[str, int], name: str, number: int) -> None:
    """A problem is reported by section or by setting, so only the first two parts are of use."""
    section, *rest = name.split(".", 2)
    lines.setdefault(section, number)
    if rest:
        lines.setdefault(f"{section}.{rest[0]}", number)
