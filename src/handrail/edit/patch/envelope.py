"""Parses patches, in the envelope form too."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from handrail.edit.lines import normalize_newlines
from handrail.edit.patch.model import FilePatch, Hunk, build_patch_error
from handrail.edit.patch.unified import (
    HunkHead,
    build_hunk,
    is_diff_start,
    parse_anchor,
    parse_hunk_range,
    parse_unified_diff,
)
from handrail.protocol.text import quote_text

# § [edit.patch.wrapping] Peels what models put around a patch: the command that would apply it, quotes, fences.

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


# § [edit.patch.envelope] Reads what stands between `*** Begin Patch` and `*** End Patch`.

_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_END_OF_FILE = "*** End of File"
_KNOWN = "*** Add File: PATH, *** Update File: PATH, *** Delete File: PATH"


def is_header(line: str) -> bool:
    """Whether a line begins a file of an envelope."""
    return _FILE.match(line) is not None


def parse_envelope(lines: Sequence[str], first: int) -> tuple[FilePatch, ...]:
    """The files of an envelope, whose first line has a number."""
    starts = [at for at, line in enumerate(lines) if is_header(line)]
    before = next((at for at, line in enumerate(lines[: starts[0] if starts else None]) if line.strip()), None)
    if before is not None:
        raise build_patch_error(
            first + before, f"{quote_text(lines[before])} is no header. A file begins with one of {_KNOWN}."
        )
    if not starts:
        raise build_patch_error(first, f"there is no file in the patch. A file begins with one of {_KNOWN}.")
    ends = (*starts[1:], len(lines))
    return tuple(_file(lines[start:end], first + start) for start, end in zip(starts, ends, strict=True))


def _file(lines: Sequence[str], number: int) -> FilePatch:
    found = _FILE.match(lines[0])
    path = found[2].strip() if found else ""
    if not path:
        raise build_patch_error(number, "a header without the path of a file.")
    action, body = (found[1] if found else ""), lines[1:]
    if action == "Add":
        return FilePatch(action="add", path=path, line=number, content=_content(body, number + 1))
    if action == "Delete":
        _refuse_more(body, number + 1, "nothing comes behind *** Delete File")
        return FilePatch(action="delete", path=path, line=number)
    return _update(path, body, number)


def _content(body: Sequence[str], number: int) -> str:
    """The lines of a new file. Empty ones whose + was lost count, but for those at the end."""
    end = len(body)
    while end and not body[end - 1].strip():
        end -= 1
    for at, line in enumerate(body[:end]):
        if line.rstrip("\r") and not line.startswith("+"):
            raise build_patch_error(
                number + at, f"every line of a new file begins with +, and {quote_text(line)} does not."
            )
    return "".join(f"{line[1:]}\n" for line in body[:end])


def _update(path: str, body: Sequence[str], number: int) -> FilePatch:
    start = next((at for at, line in enumerate(body) if line.strip()), len(body))
    moved = _MOVE.match(body[start]) if start < len(body) else None
    target = moved[1].strip() if moved else None
    if target == "":
        raise build_patch_error(number + 1 + start, "*** Move to: without a path.")
    start += moved is not None
    hunks = _hunks(path, body[start:], number + 1 + start)
    if not hunks and target is None:
        raise build_patch_error(
            number, f"the update of {path} has no hunks. Give lines that begin with space, - and +."
        )
    action = "update" if target is None else "move"
    return FilePatch(action=action, path=path, target=target, line=number, hunks=tuple(hunks))


def _hunks(path: str, lines: Sequence[str], number: int) -> list[Hunk]:
    hunks: list[Hunk] = []
    at = 0
    while at < len(lines):
        start, at = at, _body(lines, at)
        heads = [line for line in lines[start:at] if line.startswith("@@")]
        body = at
        while at < len(lines) and not lines[at].startswith(("@@", "*** ")):
            at += 1
        at_end = at < len(lines) and lines[at].rstrip() == _END_OF_FILE
        if at < len(lines) and lines[at].startswith("*** ") and not at_end:
            raise build_patch_error(
                number + at, f"{quote_text(lines[at])} has no meaning here. After hunks comes {_KNOWN}."
            )
        head = HunkHead(
            number=len(hunks) + 1,
            line=number + start,
            body=number + body,
            path=path,
            anchors=tuple(name for line in heads for name in parse_anchor(line)),
            said=next((said for line in reversed(heads) if (said := parse_hunk_range(line))), None),
        )
        full = [line for line in lines[body:at] if line.rstrip("\r")]
        if full:
            appends = not head.anchors and head.said is None and all(line.startswith("+") for line in full)
            hunks.append(build_hunk(head, lines[body:at], at_end=at_end or appends))
        elif heads or at_end:
            raise build_patch_error(number + start, f"hunk {head.number} of {path} has no lines.")
        at += at_end
    return hunks


def _body(lines: Sequence[str], at: int) -> int:
    """Where the lines of a hunk begin: behind its last `@@` line. Empty lines may come before that."""
    full = at
    while full < len(lines) and (lines[full].startswith("@@") or not lines[full].rstrip("\r")):
        full += 1
        if lines[full - 1].startswith("@@"):
            at = full
    return at


def _refuse_more(lines: Sequence[str], number: int, rule: str) -> None:
    for at, line in enumerate(lines):
        if line.strip():
            raise build_patch_error(number + at, f"{quote_text(line)}: {rule}.")


# § [edit.patch.parsing] What a patch says: an envelope or a diff, with whatever is around it.

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
