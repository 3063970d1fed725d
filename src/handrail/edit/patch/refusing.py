"""Why a hunk does not fit, in words that help: which one, what is there instead, what to do next."""

from collections.abc import Mapping, Sequence
from typing import Any

from handrail.edit.lines import format_line_range
from handrail.edit.matching import Span
from handrail.edit.omission.guard import find_placeholder
from handrail.edit.patch.fit import PatchTarget
from handrail.edit.patch.model import Hunk
from handrail.edit.patch.text_lines import TextLines
from handrail.protocol.error import ErrorCode, ToolError
from handrail.protocol.text import quote_text

_NOTHING = "Nothing was changed."
_MORE_CONTEXT = "Add lines around it, or an @@ line that names the function or class it is in."


def build_displaced_error(target: PatchTarget, hunk: Hunk, start: int, end: int) -> ToolError:
    """Old lines that are not where the hunk says."""
    if hunk.at_end:
        reason = "not at the end of the file, as *** End of File says"
    elif hunk.anchors:
        reason = "not in what belongs to its @@ line. Name what they are in, or leave that line out"
    else:
        reason = f"not behind hunk {hunk.number - 1}, and hunks go in the order of the file"
    message = f"its old lines are in {format_line_range(start + 1, end)}, which is {reason}."
    return _refusal("NO_MATCH", hunk, target.path, message, {"elsewhere": {"first": start + 1, "last": end}})


def build_repeated_error(target: PatchTarget, hunk: Hunk, places: Sequence[int], *, all_of_them: bool) -> ToolError:
    """Old lines that are there several times."""
    from handrail.edit.refusals.refusals import build_ambiguous_error  # noqa: PLC0415  as said

    starts, length = target.lines.starts, len(hunk.old)
    spans = [Span(starts[at], starts[min(at + length, len(starts) - 1)]) for at in places]
    _, readable = target.part(0, len(target.lines))
    return build_hunk_error(target, hunk, build_ambiguous_error(readable, "exact", spans, all_of_them=all_of_them))


def build_hunk_error(target: PatchTarget, hunk: Hunk, error: ToolError) -> ToolError:
    """What the engine of edit says of a hunk. The lines of an unclear place are named in few words."""
    if error.code == "AMBIGUOUS_MATCH":
        return _refusal(error.code, hunk, target.path, _places(error.named_details), error.named_details)
    return _refusal(error.code, hunk, target.path, _inner(error.message), error.named_details)


def refuse_placeholder(hunk: Hunk, path: str) -> None:
    """OMITTED_TEXT where real lines would go for one that says that they are left out."""
    found = find_placeholder(hunk.old_text, hunk.new_text, path)
    if found is None:
        return
    lost = "a line" if found.lost == 1 else f"{found.lost} lines"
    message = f"Line {found.line} of its new text is a placeholder ({found.text!r}): {lost} of the file would be lost."
    advice = "Send the real lines in its place. If the file is to have this one, add it in a hunk that removes none."
    details = {"line": found.line, "placeholder": found.text, "lost": found.lost}
    raise _refusal("OMITTED_TEXT", hunk, path, f"{message} {advice}", details)


def refuse_endings(hunk: Hunk, path: str) -> None:
    """INVALID_ARGUMENT for lines that are to end otherwise than those around them: they would end alike, unsaid."""
    around, gone, new = hunk.endings(" ", "-"), hunk.endings("-"), hunk.endings("+")
    only_endings = gone and new and gone != new and hunk.old == hunk.new
    if only_endings or (around and new - around):
        change = f"{'/'.join(sorted(gone or around))} to {'/'.join(sorted(new))}"
        message = f"it changes line endings ({change}), and a patch leaves those as the file has them."
        advice = "Use the file's own endings in it; to change them, write the whole file."
        raise _refusal("INVALID_ARGUMENT", hunk, path, f"{message} {advice}", {})


def build_unknown_anchor_error(target: PatchTarget, hunk: Hunk, anchor: str) -> ToolError:
    """An `@@` line that names nothing."""
    inside = f" in what belongs to {quote_text(hunk.anchors[0].strip())}" if anchor is not hunk.anchors[0] else ""
    behind = f" behind line {target.low}, where hunk {hunk.number - 1} ends" if target.low else ""
    near = _nearest(target.lines, anchor)
    hint = f" Near: line {near + 1}, {quote_text(target.lines.lines[near].strip())}." if near is not None else ""
    message = f"there is no line {quote_text(anchor.strip())}{inside}{behind}, which its @@ line names.{hint}"
    message = f"{message} Give a line of the file as it is."
    return _refusal("NO_MATCH", hunk, target.path, message, {"anchor": anchor[:200]})


def build_ambiguous_anchor_error(hunk: Hunk, path: str, places: Sequence[int]) -> ToolError:
    """An `@@` line that names several places."""
    numbers = ", ".join(str(at + 1) for at in places[:3]) + (", …" if len(places) > 3 else "")
    message = f"its @@ line is there {len(places)} times: lines {numbers}. Add lines around what it adds."
    return _refusal("AMBIGUOUS_MATCH", hunk, path, message, {"count": len(places)})


def build_passed_anchor_error(hunk: Hunk, path: str, anchor: int) -> ToolError:
    """An `@@` line that new lines cannot go behind any more."""
    message = f"its @@ line is line {anchor + 1}, before hunk {hunk.number - 1}, and hunks go in the order of the file."
    return _refusal("NO_MATCH", hunk, path, f"{message} Add lines around what it adds.", {"anchor": anchor + 1})


def build_missing_position_error(target: PatchTarget, hunk: Hunk) -> ToolError:
    """New lines without any around them."""
    if hunk.stated is not None:
        message = f"it adds lines behind line {hunk.stated}, and {target.path} has {len(target.lines)}."
    else:
        message = "it only adds lines, and nothing says where."
    advice = "Add a line before or after them, an @@ line that they go behind, or *** End of File."
    return _refusal("INVALID_ARGUMENT", hunk, target.path, f"{message} {advice}", {})


def build_inexact_error(hunk: Hunk, path: str, most: int) -> ToolError:
    """Too much of a patch is not as the file is."""
    message = f"{most} hunks before it do not match the file exactly. Read it, and make the patch anew."
    return _refusal("LIMIT_EXCEEDED", hunk, path, message, {})


def _places(details: Mapping[str, Any]) -> str:
    places: list[dict[str, Any]] = details.get("places") or []
    count = f"{'' if details.get('all', True) else 'more than '}{details.get('count', len(places))} times"
    where = ", ".join(dict.fromkeys(str(place["line"]) for place in places))
    more = ", …" if details.get("count", 0) > len(places) else ""
    return f"its old lines are there {count} (lines {where}{more}). {_MORE_CONTEXT}"


def _inner(message: str) -> str:
    """A message as it goes on behind the name of the hunk."""
    return f"{message[:1].lower()}{message[1:]}".replace(f" {_NOTHING}", "")


def _refusal(code: ErrorCode, hunk: Hunk, path: str, message: str, details: Mapping[str, Any]) -> ToolError:
    named = {"path": path, "hunk": hunk.number, "patchLine": hunk.line}
    if hunk.unsigned is not None and code == "NO_MATCH":
        message = f"{message} Line {hunk.unsigned} of the patch begins with none of space, - and +."
    whole = f"Hunk {hunk.number} of {path} (line {hunk.line} of the patch): {message} {_NOTHING}"
    return ToolError(code, whole, details={**details, **named})


def _nearest(lines: TextLines, anchor: str) -> int | None:
    """The first line that has what an anchor has, whatever is around it."""
    wanted = anchor.strip()
    return next((at for at, line in enumerate(lines.lines) if wanted and wanted in line), None)
