"""The names of files in the headers of a diff."""

import re

from handrail.edit.patch.model import malformed, quoted

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_TIME = re.compile(r"\s+\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*(?: [+-]\d{4})?\s*$")
_PREFIXES = frozenset(("ab", "iw", "ci", "cw", "ow", "oi", "ba"))
"""What git puts before the two names: a/ and b/, or letters for index, work tree, commit and object."""
NOWHERE = "/dev/null"
_LONGEST = 20_000
"""Characters of a name and what follows it: the system takes 4,095 bytes, each of them perhaps as an octal number."""


def header_name(text: str, line: int) -> str:
    """The name behind `---` and `+++`, without the time that may follow it."""
    if len(text) > _LONGEST:
        raise malformed(line, f"the name {quoted(text)} is longer than any file can have.")
    if not text.startswith('"'):
        name, tab, _ = text.partition("\t")  # git puts one behind a name with spaces
        return name if tab else _TIME.sub("", name).rstrip()
    return whole_name(text, line)


def whole_name(text: str, line: int) -> str:
    """The name behind `rename from` and its like, where nothing follows."""
    if text.startswith('"'):
        found = _QUOTED.match(text)
        if found is None:
            raise malformed(line, f"the name {quoted(text)} has no quote at its end.")
        return _unquoted(found[1], line)
    return text


def git_names(text: str, line: int) -> tuple[str, str] | None:
    """Both names behind `diff --git`; None where they cannot be told apart."""
    first = _QUOTED.match(text)
    if first is not None:
        return _unquoted(first[1], line), whole_name(text[first.end() + 1 :], line)
    if text.endswith('"') and ' "' in text:
        left, _, right = text.partition(' "')
        return left, whole_name(f'"{right}', line)
    middle = len(text) // 2  # nearly always both are the same but for a prefix
    old, new = text[:middle], text[middle + 1 :]
    if text[middle : middle + 1] == " " and (old == new or old[2:] == new[2:]):
        return old, new
    left, found, right = text.partition(" b/")
    return (left, f"b/{right}") if found and " b/" not in right else None


def without_prefixes(old: str | None, new: str | None) -> tuple[str | None, str | None]:
    """Two names without git's `a/` and `b/`, if they have them; None stands for no file."""
    has_old = old is None or old[1:2] == "/"
    has_new = new is None or new[1:2] == "/"
    if not (has_old and has_new and _prefixes(old, new) in _PREFIXES):
        return old, new
    return old[2:] if old is not None else None, new[2:] if new is not None else None


def _prefixes(old: str | None, new: str | None) -> str:
    if old is None:
        return "ab" if new is not None and new[0] == "b" else ""
    if new is None:
        return "ab" if old[0] == "a" else ""
    return old[0] + new[0]


def _unquoted(text: str, line: int) -> str:
    """A name as C writes it, with octal numbers for bytes."""
    raw = _ESCAPE.sub(_byte, text.encode("utf-8", "surrogatepass"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise malformed(line, f"the name {quoted(text)} is not UTF-8, and files are named by text here.") from None


def _byte(found: re.Match[bytes]) -> bytes:
    escaped = found[1].decode("latin-1")
    if len(escaped) == 3:
        return bytes((int(escaped, 8) & 255,))
    return bytes((_ESCAPES.get(escaped, found[1][0]),))
