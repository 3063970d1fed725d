"""Peels what models put around a patch: the command that would apply it, quotes, fences."""

import re
from collections.abc import Sequence

from handrail.edit.patch.model import malformed, quoted

BEGIN = "*** Begin Patch"
END = "*** End Patch"
_BEGIN = re.compile(r"""(?:.*["'(]\s*)?\*\*\* Begin Patch\s*""")
_END = re.compile(r"""\*\*\* End Patch["')\s]*""")
_AROUND = re.compile(r"""```\w*|~~~\w*|["')\s;]*|[A-Za-z_]\w*["')\s]*""")
"""What may come behind the end: a fence, quotes, the word that ends a here-document."""


def begins(line: str) -> bool:
    """Whether a line begins an envelope."""
    return _BEGIN.fullmatch(line) is not None


def unwrapped(lines: Sequence[str], start: int) -> Sequence[str]:
    """The lines of an envelope that begins at a line, without its first and its last."""
    end = next((at for at in range(start + 1, len(lines)) if _END.fullmatch(lines[at])), None)
    if end is None:
        problem = f"the patch has no {END!r} line, so it may have been cut off. Send all of it, with that line last."
        raise malformed(len(lines), problem)
    for at in range(end + 1, len(lines)):
        if not _AROUND.fullmatch(lines[at].strip()):
            problem = f"{quoted(lines[at])} comes behind {END!r}. A call takes one patch, with all its files in it."
            raise malformed(at + 1, problem)
    return lines[start + 1 : end]
