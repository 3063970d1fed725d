"""The line that stays after an answer."""

from typing import Any

from handrail.protocol.permissions import Answer, PermissionRequest
from handrail.protocol.results import ToolResult
from handrail.protocol.text import escape_exact_line, measure_width, to_one_line, truncate_to_width
from handrail.terminal.changed import format_file_count, summarize_changes
from handrail.terminal.request import describe_subject
from handrail.terminal.tried import has_preview_run


def is_kept(request: PermissionRequest, answer: Answer) -> bool:
    """Whether the answer commits what a preview changed: what came of that is known only when it has been done."""
    return has_preview_run(request) and answer.kind in {"once", "session", "workspace"}


def render_answer_line(request: PermissionRequest, answer: Answer, *, width: int, plain: bool) -> str:
    """What was answered."""
    if answer.kind == "deny":
        done = "dropped" if has_preview_run(request) else "denied"
        said = f": {escape_exact_line(answer.reason)}" if answer.reason else ""
        room = max(20, width - measure_width(said) - 15)
        subject = truncate_to_width(describe_subject(request), room)
        return truncate_to_width(f"{f'{done}:' if plain else '⊘'} You {done} {subject}{said}", width)
    done = "took only the output of" if answer.kind == "output" else "allowed"
    how = "; its changes are dropped" if answer.kind == "output" else _how(request, answer)
    room = max(20, width - measure_width(how) - measure_width(done) - 8)
    return f"{'ok:' if plain else '✓'} You {done} {truncate_to_width(describe_subject(request), room)}{how}"


def render_kept_line(
    request: PermissionRequest, answer: Answer, result: ToolResult[Any] | None, *, width: int, plain: bool
) -> str:
    """What was committed, and the number to undo it; or why it was not. Without a result, it waits for others."""
    if result is not None and result.error is not None:
        why = f": {to_one_line(result.error.message)}"
        room = max(20, width - measure_width(why) - 14)
        subject = truncate_to_width(describe_subject(request), room)
        return truncate_to_width(f"{'error:' if plain else '✗'} Not kept: {subject}{why}", width)
    between = ", " if plain else " · "
    facts = [_changed(request), *_undo(result), *_granted(request, answer)]
    facts += ["kept when all of its batch is answered"] if result is None else []
    how = "".join(f"{between}{fact}" for fact in facts)
    done = "kept" if result is not None else "said yes to"
    room = max(20, width - measure_width(how) - measure_width(done) - 8)
    return f"{'ok:' if plain else '✓'} You {done} {truncate_to_width(describe_subject(request), room)}{how}"


def format_folders(request: PermissionRequest) -> str:
    """The folders that a yes opens."""
    return ", ".join(map(escape_exact_line, request.pattern[::2]))


def format_command_classes(request: PermissionRequest) -> str:
    """The classes of commands that a yes for longer stops the asking for."""
    return ", ".join(f"`{escape_exact_line(name)}`" for name in request.grants)


def _changed(request: PermissionRequest) -> str:
    tried = request.preview.tried if request.preview is not None else None
    return summarize_changes(tried).partition(",")[0] if tried is not None else format_file_count(0)


def _undo(result: ToolResult[Any] | None) -> list[str]:
    return [f"undo {result.meta.undo}"] if result is not None and result.meta.undo is not None else []


def _granted(request: PermissionRequest, answer: Answer) -> list[str]:
    return (
        [f"{format_command_classes(request)} in this {answer.kind}"] if answer.kind in {"session", "workspace"} else []
    )


def _how(request: PermissionRequest, answer: Answer) -> str:
    if answer.kind not in {"session", "workspace"}:
        return " once"
    if request.kind == "external_directory":
        return f", and opened {format_folders(request)} to this {answer.kind}"
    return f", and {format_command_classes(request)} in this {answer.kind}"
