"""The names of files in the headers of a diff."""

import re

from handrail.edit.patch.model import build_patch_error
from handrail.protocol.text import quote_text

_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.DOTALL)
_TIME = re.compile(r"\s\d{4}-\d\d-\d\d[ T]\d\d:\d\d\S*(?: [+-]\d{4})?$")
_PREFIXES = frozenset(("ab", "iw", "ci", "cw", "ow", "oi", "ba"))
"""What git puts before the two names: a/ and b/, or letters for index, work tree, commit and object."""
NOWHERE = "/dev/null"
_MAX_NAME_CHARS = 20_000
"""Characters of a name and what follows it: the system takes 4,095 bytes, each of them perhaps as an octal number."""


def parse_header_name(text: str, line: int) -> str:
    """The name behind `---` and `+++`, without the time that may follow it."""
    if len(text) > _MAX_NAME_CHARS:
        raise build_patch_error(line, f"the name {quote_text(text)} is longer than any file can have.")
    if not text.startswith('"'):
        name, tab, _ = text.partition("\t")  # git puts one behind a name with spaces
        return name if tab else _TIME.sub("", name.rstrip()).rstrip()
    return parse_whole_name(text, line)


def parse_whole_name(text: str, line: int) -> str:
    """The name behind `rename from` and its like, where nothing follows."""
    if text.startswith('"'):
        found = _QUOTED.match(text)
        if found is None:
            raise build_patch_error(line, f"the name {quote_text(text)} has no quote at its end.")
        return _unquoted(found[1], line)
    return text


def parse_git_names(text: str, line: int) -> tuple[str, str] | None:
    """Both names behind `diff --git`, with their prefixes; None where they cannot be told apart."""
    if len(text) > 2 * _MAX_NAME_CHARS:
        raise build_patch_error(line, f"the names {quote_text(text)} are longer than any file can have.")
    first = _QUOTED.match(text)
    if first is not None:
        return _unquoted(first[1], line), parse_whole_name(text[first.end() + 1 :], line)
    if text.endswith('"') and ' "' in text:
        left, _, right = text.partition(' "')
        return left, parse_whole_name(f'"{right}', line)
    middle = len(text) // 2  # nearly always both are the same but for a prefix
    if text[middle : middle + 1] == " " and _prefixes(text[:middle], text[middle + 1 :]) is not None:
        return text[:middle], text[middle + 1 :]
    left, found, right = text.partition(" b/")
    if found and " b/" not in right:
        return left, f"b/{right}"
    old, _, new = text.partition(" ")
    return (old, new) if text.count(" ") == 1 else None


def strip_prefixes(
    old: str | None, new: str | None, git: tuple[str, str] | None = None
) -> tuple[str | None, str | None]:
    """Two names without what git puts before them, as the names of `diff --git` tell it, or else if it is `a/` and `b/`
    or like that; None stands for no file."""
    known = _prefixes(*git) if git is not None else None
    if known is None:
        known = _usual(old, new)
    before_old, before_new = known
    if not ((old or before_old).startswith(before_old) and (new or before_new).startswith(before_new)):
        return old, new
    return old and old.removeprefix(before_old), new and new.removeprefix(before_new)


def is_same_name(name: str | None, said: str) -> bool:
    """Whether a name that may have a prefix is one that has none."""
    return name is not None and said in {name, name.partition("/")[2]}


def _prefixes(old: str, new: str) -> tuple[str, str] | None:
    """What two names of the same file begin with; None where they are not the same without one folder each."""
    if old == new:
        return "", ""
    one, _, old_rest = old.partition("/")
    other, _, new_rest = new.partition("/")
    return (f"{one}/", f"{other}/") if old_rest and old_rest == new_rest else None


def _usual(old: str | None, new: str | None) -> tuple[str, str]:
    if old is None:
        return ("", "b/") if new is not None and new.startswith("b/") else ("", "")
    if new is None:
        return ("a/", "") if old.startswith("a/") else ("", "")
    is_prefix = old[1:2] == new[1:2] == "/" and old[0] + new[0] in _PREFIXES
    return (old[:2], new[:2]) if is_prefix else ("", "")


def _unquoted(text: str, line: int) -> str:
    """A name as C writes it, with octal numbers for bytes."""
    raw = _ESCAPE.sub(_byte, text.encode("utf-8", "surrogatepass"))
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise build_patch_error(
            line, f"the name {quote_text(text)} is not UTF-8, and files are named by text here."
        ) from None


def _byte(found: re.Match[bytes]) -> bytes:
    escaped = found[1].decode("latin-1")
    if len(escaped) == 3:
        return bytes((int(escaped, 8) & 255,))
    return bytes((_ESCAPES.get(escaped, found[1][0]),))
