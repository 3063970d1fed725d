"""The line that stays after an answer."""

from typing import Any

from handrail.protocol.permission import Answer, PermissionRequest
from handrail.protocol.result import ToolResult
from handrail.terminal.cells import cells, cut
from handrail.terminal.changed import files, gist
from handrail.terminal.request import subject
from handrail.terminal.tried import is_tried
from handrail.terminal.visible import exact_line, one_line


def is_kept(request: PermissionRequest, answer: Answer) -> bool:
    """Whether the answer keeps what a trial made: what came of that is known only when it has been done."""
    return is_tried(request) and answer.kind in {"once", "session", "workspace"}


def told(request: PermissionRequest, answer: Answer, *, width: int, plain: bool) -> str:
    """What was answered."""
    if answer.kind == "deny":
        done = "dropped" if is_tried(request) else "denied"
        said = f": {exact_line(answer.reason)}" if answer.reason else ""
        room = max(20, width - cells(said) - 15)
        return cut(f"{f'{done}:' if plain else '⊘'} You {done} {cut(subject(request), room)}{said}", width)
    done = "took only the output of" if answer.kind == "output" else "allowed"
    how = "; its changes are dropped" if answer.kind == "output" else _how(request, answer)
    room = max(20, width - cells(how) - cells(done) - 8)
    return f"{'ok:' if plain else '✓'} You {done} {cut(subject(request), room)}{how}"


def told_kept(
    request: PermissionRequest, answer: Answer, result: ToolResult[Any] | None, *, width: int, plain: bool
) -> str:
    """What was kept, and the number that takes it back; or why it was not. Without a result, it waits for others."""
    if result is not None and result.error is not None:
        why = f": {one_line(result.error.message)}"
        room = max(20, width - cells(why) - 14)
        return cut(f"{'error:' if plain else '✗'} Not kept: {cut(subject(request), room)}{why}", width)
    between = ", " if plain else " · "
    facts = [_changed(request), *_undo(result), *_granted(request, answer)]
    facts += ["kept when all of its batch is answered"] if result is None else []
    how = "".join(f"{between}{fact}" for fact in facts)
    done = "kept" if result is not None else "said yes to"
    room = max(20, width - cells(how) - cells(done) - 8)
    return f"{'ok:' if plain else '✓'} You {done} {cut(subject(request), room)}{how}"


def folders(request: PermissionRequest) -> str:
    """The folders that a yes opens."""
    return ", ".join(map(exact_line, request.pattern[::2]))


def classes(request: PermissionRequest) -> str:
    """The classes of commands that a yes for longer stops the asking for."""
    return ", ".join(f"`{exact_line(name)}`" for name in request.grants)


def _changed(request: PermissionRequest) -> str:
    tried = request.preview.tried if request.preview is not None else None
    return gist(tried).partition(",")[0] if tried is not None else files(0)


def _undo(result: ToolResult[Any] | None) -> list[str]:
    return [f"undo {result.meta.undo}"] if result is not None and result.meta.undo is not None else []


def _granted(request: PermissionRequest, answer: Answer) -> list[str]:
    return [f"{classes(request)} in this {answer.kind}"] if answer.kind in {"session", "workspace"} else []


def _how(request: PermissionRequest, answer: Answer) -> str:
    if answer.kind not in {"session", "workspace"}:
        return " once"
    if request.kind == "external_directory":
        return f", and opened {folders(request)} to this {answer.kind}"
    return f", and {classes(request)} in this {answer.kind}"
