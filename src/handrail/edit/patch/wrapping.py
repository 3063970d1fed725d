"""Peels what models put around a patch: the command that would apply it, quotes, fences."""

import re
from collections.abc import Iterator, Sequence

from handrail.edit.patch.model import build_patch_error
from handrail.protocol.text import quote_text

BEGIN = "*** Begin Patch"
END = "*** End Patch"
_BEGIN = re.compile(r"""(?:.*["'(])?(\s*)\*\*\* Begin Patch\s*""")
_MARKER = re.compile(r"\*\*\* (?:(Add|Update|Delete) File:|Move to:|End of File)")
_END = re.compile(r"""\*\*\* End Patch["')\s]*""")
_AROUND = re.compile(r"""```\w*|~~~\w*|["')\s;]*|[A-Za-z_]\w*["')\s]*""")
"""What may come behind the end: a fence, quotes, the word that ends a here-document."""


def is_envelope_start(line: str) -> bool:
    """Whether a line begins an envelope."""
    return _BEGIN.fullmatch(line) is not None


def unwrap_envelope(lines: Sequence[str], start: int) -> Sequence[str]:
    """The lines of an envelope that begins at a line, without its first and its last."""
    ends = [at for at in range(start + 1, len(lines)) if _END.fullmatch(lines[at].lstrip())]
    end = next((at for at in ends if lines[at].startswith("*")), ends[-1] if ends else None)
    if end is None:
        problem = f"the patch has no {END!r} line, so it may have been cut off. Send all of it, with that line last."
        raise build_patch_error(len(lines), problem)
    for at in range(end + 1, len(lines)):
        if not _AROUND.fullmatch(lines[at].strip()):
            problem = f"{quote_text(lines[at])} comes behind {END!r}. A call takes one patch, with all its files in it."
            raise build_patch_error(at + 1, problem)
    found = _BEGIN.fullmatch(lines[start])
    return list(_unindented(lines[start + 1 : end], found[1] if found else ""))


def _unindented(lines: Sequence[str], indent: str) -> Iterator[str]:
    """The lines without the indentation of the first marker, if all have it, or else with no white space before other
    markers. In the hunks of a file a marker must have that of the first one: else it is a line of the file."""
    if indent and all(line.startswith(indent) for line in lines if line.strip()):
        yield from (line.removeprefix(indent) for line in lines)
        return
    updates = False
    for line in lines:
        found = _MARKER.match(line.lstrip())
        is_marker = found is not None and (not updates or line.startswith(f"{indent}*"))
        if found and found[1] and is_marker:
            updates = found[1] == "Update"
        yield line.lstrip() if is_marker else line
