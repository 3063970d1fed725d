"""How a command went that was tried in a copy, or why it was not: what a yes would keep, or do."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from handrail.protocol.decision import LAYERED
from handrail.protocol.permission import ONLY_LOOKS, PermissionRequest, Preview, Tried
from handrail.terminal.changed import MOST_ROWS, change_lines
from handrail.terminal.visible import exact_line, one_line

_UNTOUCHED = "Your files are untouched."
_STOPPED = {
    "timeout": "took too long",
    "memory": "needed too much memory",
    "processes": "started too many processes",
    "output": "printed too much",
    "cancelled": "was cancelled",
}
_NO_NETWORK = "the network is off in the copy, so this may differ for real"
_NAMED = 3
AGAIN = "r try again"
_LONGEST = 120
_JUST_NOW = timedelta(seconds=10)


def is_tried(request: PermissionRequest) -> bool:
    """Whether a yes keeps what a trial made, and runs nothing."""
    return request.preview is not None and request.preview.tried is not None


def tried_lines(
    request: PermissionRequest,
    width: int | None,
    *,
    outdated: tuple[str, ...] = (),
    again: str = AGAIN,
    plain: bool = False,
    most: int | None = MOST_ROWS,
) -> Iterator[str]:
    """How it went, what it would change and what it printed; or why it was not tried, and what a yes does then."""
    tried = request.preview.tried if request.preview is not None else None
    if tried is None:
        yield not_tried(request)
        return
    how = _how(tried) if not outdated else f"{out_of_date(outdated, again)} {_UNTOUCHED}"
    yield f"{how} {preview_age(request)}".rstrip()
    yield from change_lines(tried, width, plain=plain, most=most)
    yield from (f"! Cannot be kept: {one_line(one)}" for one in tried.unkept)
    yield _beside(tried)


def out_of_date(paths: tuple[str, ...], again: str = AGAIN) -> str:
    """Why a trial can no longer be kept, and what to do then."""
    from handrail.runtime.outdating import GONE  # noqa: PLC0415  few trials are

    if GONE in paths:
        return f"Out of date: {GONE}. {again}."
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    named = ", ".join(map(exact_line, paths[:_NAMED]))
    return f"Out of date: {named}{more} changed since. {again}."


def preview_age(request: PermissionRequest) -> str:
    """How old the preview is, as a sentence; nothing if that is not known."""
    made = request.preview.time if request.preview is not None else None
    if made is None:
        return ""
    return f"Preview from {'just now' if datetime.now(UTC) - made < _JUST_NOW else f'{age(made)} ago'}."


def age(moment: datetime) -> str:
    """How long ago something was, in its largest unit."""
    seconds = max(0, int((datetime.now(UTC) - moment).total_seconds()))
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


def not_tried(request: PermissionRequest) -> str:
    """Why it was not tried, and what a yes means then."""
    why = _why_not(request.preview)
    told = "Not tried" if not why else f"Not tried: {one_line(why).rstrip('.')}"
    return f"{told}. Nothing has run. Yes runs it for real{_undone(request, why)}."


def _how(tried: Tried) -> str:
    seconds = duration(tried.duration_ms)
    if tried.ending != "exit":
        why = _STOPPED.get(tried.ending, f"was stopped ({one_line(tried.ending)})")
        return f"Tried in a throw-away copy: it {why}, and was stopped after {seconds}; no change is kept. {_UNTOUCHED}"
    if tried.exit_code:
        return f"Tried, failed: exit {tried.exit_code} in {seconds} — {_NO_NETWORK}. {_UNTOUCHED}"
    return f"Tried in a throw-away copy: exit 0 in {seconds}. {_UNTOUCHED}"


def _beside(tried: Tried) -> str:
    """What else it did: whom it tried to reach, and what it printed."""
    reached = f"Tried to reach {', '.join(map(one_line, tried.blocked))} (blocked). " if tried.blocked else ""
    lines = "1 line" if tried.lines == 1 else f"{tried.lines} lines"
    if not tried.lines and not tried.last_line:
        return f"{reached}Printed nothing."
    last = one_line(tried.last_line.strip())
    shown = last if len(last) <= _LONGEST else f"{last[: _LONGEST - 1]}…"
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
    if request.tier == LAYERED:
        return "; undo takes back what it changes"
    return "; its result says what undo covers"


def duration(milliseconds: float) -> str:
    """A time as people read it."""
    seconds = milliseconds / 1000
    if seconds < 0.1:
        return f"{seconds:.2f} s"
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds // 60)} min {int(seconds % 60)} s"
