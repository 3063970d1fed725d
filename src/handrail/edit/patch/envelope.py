"""Reads what stands between `*** Begin Patch` and `*** End Patch`."""

import re
from collections.abc import Sequence

from handrail.edit.patch.hunk_header import parse_anchor, parse_hunk_range
from handrail.edit.patch.hunk_lines import HunkHead, build_hunk
from handrail.edit.patch.model import FilePatch, Hunk, build_patch_error
from handrail.protocol.text import quote_text

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
