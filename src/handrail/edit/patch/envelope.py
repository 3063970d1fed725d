"""Parses patches: the envelope from `*** Begin Patch` to `*** End Patch`, or else a unified diff."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from handrail.edit.diff_parser import parse_hunk_range
from handrail.edit.lines import normalize_newlines
from handrail.edit.patch.hunks import FilePatch, Hunk, build_hunk, build_patch_error, parse_anchor
from handrail.edit.patch.unified import is_diff_start, parse_unified_diff
from handrail.protocol.text import render_value

_BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_END_OF_FILE = "*** End of File"
_HEADERS = "*** Add File: PATH, *** Update File: PATH, *** Delete File: PATH"
_FORMATS = (
    f"It is either an envelope ({_BEGIN!r}, files, {_END!r}) or a unified diff (--- a/PATH, +++ b/PATH, @@ hunks)."
)
_BEGIN_LINE = re.compile(r"""(?:.*["'(])?(\s*)\*\*\* Begin Patch\s*""")
_END_LINE = re.compile(r"""\*\*\* End Patch["')\s]*""")
_BEHIND_END = re.compile(r"""```\w*|~~~\w*|["')\s;]*|[A-Za-z_]\w*["')\s]*""")
"""A fence, quotes, or the word that ends a here-document."""
_MARKER = re.compile(r"\*\*\* (?:(Add|Update|Delete) File:|Move to:|End of File)")
_FILE = re.compile(r"\*\*\* (Add|Update|Delete) File:(.*)")
_MOVE = re.compile(r"\*\*\* Move to:(.*)")
_HEADS = re.compile(r"(?m)^(?:.*\*\*\* Begin Patch|diff --git [^\r\n]*|\+\+\+ [^\r\n]*)(\r?)$")


@lru_cache(maxsize=1)  # a call parses its patch for the policy, for the preview and for the change
def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """Parse the files of a patch, in order. ToolError with the line that cannot be parsed."""
    lines = _normalize_own_newlines(text).split("\n")
    start = next((at for at, line in enumerate(lines) if _BEGIN_LINE.fullmatch(line) or is_diff_start(lines, at)), None)
    if start is not None and _BEGIN_LINE.fullmatch(lines[start]):
        inner = _unwrap_envelope(lines, start)
        first = next((at for at, line in enumerate(inner) if line.strip()), None)
        if first is not None and not _FILE.match(inner[first]) and is_diff_start(inner, first):
            return parse_unified_diff(inner, start + 2)
        return _parse_envelope(inner, start + 2)
    header = next((at for at, line in enumerate(lines) if _FILE.match(line.lstrip())), None)
    if start is None and header is not None:
        raise build_patch_error(header + 1, f"the line {_BEGIN!r} is missing. Put it first, and {_END!r} last.")
    files = parse_unified_diff(lines, 1)
    if not files:
        raise build_patch_error(1, f"this is not a valid patch.{_guess_problem(lines)} {_FORMATS}")
    return files


def _normalize_own_newlines(text: str) -> str:
    """Normalize newlines if the patch's own lines end with CRLF. Else only lines of an added file have them."""
    heads = _HEADS.findall(text) if "\r\n" in text else []
    return normalize_newlines(text) if heads and all(heads) else text


def _guess_problem(lines: list[str]) -> str:
    stars = (at for at, line in enumerate(lines[:-1]) if line.startswith("*** "))
    if any(lines[at + 1].startswith("--- ") for at in stars):
        return " Context diffs are not supported; send a unified diff (diff -u)."
    if any(line.startswith("@@") for line in lines):
        return " The hunks of the patch do not name a file."
    return ""


def _unwrap_envelope(lines: Sequence[str], start: int) -> Sequence[str]:
    """Return the lines of an envelope, without the command, quotes or fences that models put around it."""
    ends = [at for at in range(start + 1, len(lines)) if _END_LINE.fullmatch(lines[at].lstrip())]
    end = next((at for at in ends if lines[at].startswith("*")), ends[-1] if ends else None)
    if end is None:
        problem = f"the patch has no {_END!r} line, so it may have been cut off. Send all of it, with that line last."
        raise build_patch_error(len(lines), problem)
    for at in range(end + 1, len(lines)):
        if not _BEHIND_END.fullmatch(lines[at].strip()):
            problem = (
                f"{render_value(lines[at])} comes behind {_END!r}. A call takes one patch, with all its files in it."
            )
            raise build_patch_error(at + 1, problem)
    begin = _BEGIN_LINE.fullmatch(lines[start])
    return list(_unindent(lines[start + 1 : end], begin[1] if begin else ""))


def _unindent(lines: Sequence[str], indent: str) -> Iterator[str]:
    """Remove the indentation of the first marker if all lines have it, or else that of the other markers.

    In the hunks of a file a marker must have that of the first one. Otherwise it is a line of the file.
    """
    if indent and all(line.startswith(indent) for line in lines if line.strip()):
        yield from (line.removeprefix(indent) for line in lines)
        return
    is_update = False
    for line in lines:
        marker = _MARKER.match(line.lstrip())
        is_marker = marker is not None and (not is_update or line.startswith(f"{indent}*"))
        if marker and marker[1] and is_marker:
            is_update = marker[1] == "Update"
        yield line.lstrip() if is_marker else line


def _parse_envelope(lines: Sequence[str], first: int) -> tuple[FilePatch, ...]:
    """Parse the files of an envelope whose first line has the number `first` in the patch."""
    starts = [at for at, line in enumerate(lines) if _FILE.match(line)]
    before = next((at for at, line in enumerate(lines[: starts[0] if starts else None]) if line.strip()), None)
    if before is not None:
        problem = f"{render_value(lines[before])} is not a header. A file begins with one of {_HEADERS}."
        raise build_patch_error(first + before, problem)
    if not starts:
        raise build_patch_error(first, f"the patch has no file. A file begins with one of {_HEADERS}.")
    ends = (*starts[1:], len(lines))
    return tuple(_parse_file(lines[start:end], first + start) for start, end in zip(starts, ends, strict=True))


def _parse_file(lines: Sequence[str], number: int) -> FilePatch:
    header = _FILE.match(lines[0])
    path = header[2].strip() if header else ""
    if not path:
        raise build_patch_error(number, "a header without the path of a file.")
    action, body = (header[1] if header else ""), lines[1:]
    if action == "Add":
        return FilePatch(action="add", path=path, line=number, content=_parse_content(body, number + 1))
    if action == "Update":
        return _parse_update(path, body, number)
    for at, line in enumerate(body):
        if line.strip():
            raise build_patch_error(number + 1 + at, f"{render_value(line)}: nothing comes behind *** Delete File.")
    return FilePatch(action="delete", path=path, line=number)


def _parse_content(body: Sequence[str], number: int) -> str:
    """Parse the lines of a new file. Empty lines that lost their + count, except at the end."""
    end = len(body)
    while end and not body[end - 1].strip():
        end -= 1
    for at, line in enumerate(body[:end]):
        if line.rstrip("\r") and not line.startswith("+"):
            problem = f"every line of a new file must begin with +, but {render_value(line)} does not."
            raise build_patch_error(number + at, problem)
    return "".join(f"{line[1:]}\n" for line in body[:end])


def _parse_update(path: str, body: Sequence[str], number: int) -> FilePatch:
    start = next((at for at, line in enumerate(body) if line.strip()), len(body))
    move = _MOVE.match(body[start]) if start < len(body) else None
    target = move[1].strip() if move else None
    if target == "":
        raise build_patch_error(number + 1 + start, "*** Move to: without a path.")
    start += move is not None
    hunks = _parse_hunks(path, body[start:], number + 1 + start)
    if not hunks and target is None:
        problem = f"the update of {path} has no hunks. Give lines that begin with space, - and +."
        raise build_patch_error(number, problem)
    action = "update" if target is None else "move"
    return FilePatch(action=action, path=path, target=target, line=number, hunks=tuple(hunks))


def _parse_hunks(path: str, lines: Sequence[str], number: int) -> list[Hunk]:
    hunks: list[Hunk] = []
    at = 0
    while at < len(lines):
        start, at = at, _find_body(lines, at)
        heads = [line for line in lines[start:at] if line.startswith("@@")]
        body = at
        while at < len(lines) and not lines[at].startswith(("@@", "*** ")):
            at += 1
        at_end = at < len(lines) and lines[at].rstrip() == _END_OF_FILE
        if at < len(lines) and lines[at].startswith("*** ") and not at_end:
            problem = f"{render_value(lines[at])} has no meaning here. After hunks comes {_HEADERS}."
            raise build_patch_error(number + at, problem)
        full = [line for line in lines[body:at] if line.rstrip("\r")]
        if full:
            anchors = tuple(name for line in heads for name in parse_anchor(line))
            stated = next((stated for line in reversed(heads) if (stated := parse_hunk_range(line))), None)
            appends = not anchors and stated is None and all(line.startswith("+") for line in full)
            hunk = build_hunk(
                lines[body:at],
                number=len(hunks) + 1,
                line=number + start,
                body_line=number + body,
                path=path,
                anchors=anchors,
                stated=stated,
                at_end=at_end or appends,
            )
            hunks.append(hunk)
        elif heads or at_end:
            raise build_patch_error(number + start, f"hunk {len(hunks) + 1} of {path} has no lines.")
        at += at_end
    return hunks


def _find_body(lines: Sequence[str], at: int) -> int:
    """Return where the lines of a hunk start: behind its last `@@` line. Empty lines may come before that."""
    body = at
    while at < len(lines) and (lines[at].startswith("@@") or not lines[at].rstrip("\r")):
        at += 1
        if lines[at - 1].startswith("@@"):
            body = at
    return body
