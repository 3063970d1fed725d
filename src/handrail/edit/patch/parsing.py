"""What a patch says: an envelope or a diff, with whatever is around it."""

import re
from functools import lru_cache

from handrail.edit.newlines import normalize_newlines
from handrail.edit.patch.envelope import is_header, parse_envelope
from handrail.edit.patch.model import FilePatch, build_patch_error
from handrail.edit.patch.unified import is_diff_start, parse_unified_diff
from handrail.edit.patch.wrapping import BEGIN, END, is_envelope_start, unwrap_envelope

_HEADS = re.compile(r"(?m)^(?:.*\*\*\* Begin Patch|diff --git [^\r\n]*|\+\+\+ [^\r\n]*)(\r?)$")
_HOW = f"It is either an envelope ({BEGIN!r}, files, {END!r}) or a unified diff (--- a/PATH, +++ b/PATH, @@ hunks)."


@lru_cache(maxsize=1)  # a call asks what it touches, shows what would change, and does it
def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """The files of a patch, in order; ToolError with the line where it cannot be read."""
    lines = _in_plain_lines(text).split("\n")
    start = next((at for at, line in enumerate(lines) if is_envelope_start(line) or is_diff_start(lines, at)), None)
    if start is not None and is_envelope_start(lines[start]):
        inner = unwrap_envelope(lines, start)
        first = next((at for at, line in enumerate(inner) if line.strip()), None)
        if first is not None and not is_header(inner[first]) and is_diff_start(inner, first):
            return parse_unified_diff(inner, start + 2)
        return parse_envelope(inner, start + 2)
    header = next((at for at, line in enumerate(lines) if is_header(line.lstrip())), None)
    if start is None and header is not None:
        raise build_patch_error(header + 1, f"the line {BEGIN!r} is missing. Put it first, and {END!r} last.")
    files = parse_unified_diff(lines, 1)
    if not files:
        raise build_patch_error(1, f"this is no patch that can be read.{_hint(lines)} {_HOW}")
    return files


def _in_plain_lines(text: str) -> str:
    """The patch with plain newlines, if its own lines have others: those of a file that it adds may have some too."""
    heads = _HEADS.findall(text) if "\r\n" in text else []
    return normalize_newlines(text) if heads and all(heads) else text


def _hint(lines: list[str]) -> str:
    if any(line.startswith("*** ") and at + 1 < len(lines) and lines[at + 1].startswith("--- ")
           for at, line in enumerate(lines)):  # fmt: skip
        return " Context diffs are not read; make a unified one (diff -u)."
    if any(line.startswith("@@") for line in lines):
        return " Its hunks name no file."
    return ""
