"""How a command went that was tried in a copy, or why it was not: what a yes would commit, or do."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from handrail.protocol.changes import ONLY_LOOKS, Preview, PreviewRun
from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.results import OVERLAY_TIER
from handrail.protocol.text import escape_exact_line, format_age, to_one_line, truncate
from handrail.terminal.changed import MAX_FILE_ROWS, render_changes

_UNTOUCHED = "Your files are untouched."
_STOPPED = {
    "timeout": "took too long",
    "memory": "needed too much memory",
    "processes": "started too many processes",
    "output": "printed too much",
    "cancelled": "was cancelled",
}
_NO_NETWORK = "the network is off in the copy, so this may differ for real"
_MAX_NAMED_PATHS = 3
AGAIN = "r try again"
_MAX_LINE_CHARS = 120
_JUST_NOW = timedelta(seconds=10)


def has_preview_run(request: PermissionRequest) -> bool:
    """Whether a yes commits what a preview changed, and runs nothing."""
    return request.preview is not None and request.preview.tried is not None


def render_preview_run(
    request: PermissionRequest,
    width: int | None,
    *,
    outdated: tuple[str, ...] = (),
    again: str = AGAIN,
    plain: bool = False,
    most: int | None = MAX_FILE_ROWS,
) -> Iterator[str]:
    """How it went, what it would change and what it printed; or why it was not tried, and what a yes does then."""
    tried = request.preview.tried if request.preview is not None else None
    if tried is None:
        yield describe_missing_preview(request)
        return
    how = _how(tried) if not outdated else f"{describe_outdated(outdated, again)} {_UNTOUCHED}"
    yield f"{how} {describe_preview_age(request)}".rstrip()
    yield from render_changes(tried, width, plain=plain, most=most)
    yield from (f"! Cannot be kept: {to_one_line(one)}" for one in tried.unkept)
    yield _beside(tried)


def describe_outdated(paths: tuple[str, ...], again: str = AGAIN) -> str:
    """Why a preview can no longer be committed, and what to do then."""
    from handrail.runtime.permission_request import GONE  # noqa: PLC0415  few previews are

    if GONE in paths:
        return f"Out of date: {GONE}. {again}."
    more = f" and {len(paths) - _MAX_NAMED_PATHS} more" if len(paths) > _MAX_NAMED_PATHS else ""
    named = ", ".join(map(escape_exact_line, paths[:_MAX_NAMED_PATHS]))
    return f"Out of date: {named}{more} changed since. {again}."


def describe_preview_age(request: PermissionRequest) -> str:
    """How old the preview is, as a sentence; nothing if that is not known."""
    made = request.preview.time if request.preview is not None else None
    if made is None:
        return ""
    age = datetime.now(UTC) - made
    return f"Preview from {'just now' if age < _JUST_NOW else f'{format_age(age)} ago'}."


def describe_missing_preview(request: PermissionRequest) -> str:
    """Why it was not tried, and what a yes means then."""
    why = _why_not(request.preview)
    told = "Not tried" if not why else f"Not tried: {to_one_line(why).rstrip('.')}"
    return f"{told}. Nothing has run. Yes runs it for real{_undone(request, why)}."


def _how(tried: PreviewRun) -> str:
    seconds = format_duration(tried.duration_ms)
    if tried.ending != "exit":
        why = _STOPPED.get(tried.ending, f"was stopped ({to_one_line(tried.ending)})")
        return f"Tried in a throw-away copy: it {why}, and was stopped after {seconds}; no change is kept. {_UNTOUCHED}"
    if tried.exit_code:
        return f"Tried, failed: exit {tried.exit_code} in {seconds} — {_NO_NETWORK}. {_UNTOUCHED}"
    return f"Tried in a throw-away copy: exit 0 in {seconds}. {_UNTOUCHED}"


def _beside(tried: PreviewRun) -> str:
    """What else it did: whom it tried to reach, and what it printed."""
    reached = f"Tried to reach {', '.join(map(to_one_line, tried.blocked))} (blocked). " if tried.blocked else ""
    lines = "1 line" if tried.lines == 1 else f"{tried.lines} lines"
    if not tried.lines and not tried.last_line:
        return f"{reached}Printed nothing."
    shown = truncate(to_one_line(tried.last_line.strip()), _MAX_LINE_CHARS)
    return f'{reached}Printed {lines}, last: "{shown}"' if shown else f"{reached}Printed {lines}."


def _why_not(preview: Preview | None) -> str:
    return preview.text if preview is not None and preview.kind == "none" else ""


def _undone(request: PermissionRequest, why: str) -> str:
    """What undo covers of a command that runs for real, as far as that is known before."""
    if why == ONLY_LOOKS:
        return ""
    if request.background:
        return "; it is not covered by undo"
    if request.hosts:
        return "; what it sends cannot be undone"
    if request.tier == OVERLAY_TIER:
        return "; undo takes back what it changes"
    return "; its result says what undo covers"


def format_duration(milliseconds: float) -> str:
    """A duration: `0.05 s`, `1.2 s`, `2 min 3 s`."""
    seconds = milliseconds / 1000
    if seconds < 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"
