"""call: one tool call from the shell."""

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any, cast

from handrail.cli.exits import FAILED, INFRASTRUCTURE, LIMIT, OK, WAITING, Stop
from handrail.cli.given import given_json
from handrail.cli.output import answer, answer_json, note, warn
from handrail.cli.patience import saying_what_takes_long
from handrail.cli.place import workspace_of
from handrail.cli.preferences import has_servers, loaded_for
from handrail.protocol.decision import Mode
from handrail.protocol.error import ErrorInfo
from handrail.protocol.question import Question
from handrail.protocol.result import ToolResult
from handrail.protocol.tool import BASE_NAMES
from handrail.protocol.wire import encode
from handrail.rail import Handrail
from handrail.settings import Loaded

if TYPE_CHECKING:
    from handrail.runtime.sources import ToolSource

_EXITS = {
    "PERMISSION_REQUIRED": WAITING,
    "LIMIT_EXCEEDED": LIMIT,
    "TIMEOUT": LIMIT,
    "SANDBOX_UNAVAILABLE": INFRASTRUCTURE,
}


def run(options: Namespace) -> int:
    """Calls the tool and prints what came of it."""
    arguments = given_json(options.arguments)
    if not options.session:
        raise Stop("--session is empty; name one, or leave it out for the session cli. Nothing was run.")
    workspace = workspace_of(options)
    loaded = loaded_for(options, options.mode, workspace)
    unattended = options.unattended or bool(os.environ.get("CI"))
    with Handrail(
        workspace,
        session=options.session,
        unattended=unattended,
        settings=loaded,
        on_permission=_later,
        sources=() if options.tool in BASE_NAMES else _sources(options, loaded, workspace),
    ) as rail:
        with saying_what_takes_long(options, _what(options.tool, arguments)):
            result = rail.call(options.tool, arguments)
        asks = exit_of(result) == WAITING and not unattended and _can_ask(options)
        if asks:
            result = _asked(rail, result, options)
        why_off = rail.why_off(options.tool)
        question = _asked_by(rail, result)
    if options.json:
        answer_json(encode(result))
    elif question is not None:
        _print_question(question)
    elif asks and exit_of(result) == WAITING:
        _print_how_to_answer(result.error)
    else:
        show(result, options, loaded.settings.mode, why_off)
    return WAITING if question is not None else exit_of(result)


def _sources(options: Namespace, loaded: Loaded, workspace: str) -> "tuple[ToolSource, ...]":
    if not has_servers(loaded, workspace):
        return ()
    from handrail.cli.servers import sources_for  # noqa: PLC0415  few calls are another server's

    return sources_for(options, loaded, workspace, called=options.tool)


def _what(tool: str, arguments: Any) -> str:
    """The call in a few words."""
    named: Any = cast("dict[str, Any]", arguments).get("command") if isinstance(arguments, dict) else None
    return f"{tool} {named}" if isinstance(named, str) else tool


def _later(_: object) -> None:
    """Whoever may be asked is asked below, where more is known than the request."""


def _can_ask(options: Namespace) -> bool:
    from handrail.cli.asking import can_ask  # noqa: PLC0415  only where somebody has to be asked

    return can_ask(options)


def _asked(rail: Handrail, result: ToolResult[Any], options: Namespace) -> ToolResult[Any]:
    from handrail.cli.asking import asked, say_left  # noqa: PLC0415  only where somebody has to be asked

    try:
        return asked(rail, result, options)
    except KeyboardInterrupt:
        say_left()
        raise


def _asked_by(rail: Handrail, result: ToolResult[Any]) -> Question | None:
    """What the call asks the person, where it waits for the reply."""
    if result.error is None or result.error.code != "UNAVAILABLE":
        return None
    return next((one for one in rail.waiting_questions() if one.tool_call_id == result.tool_call_id), None)


def _print_question(question: Question) -> None:
    from handrail.cli.questions import how_to_reply, question_text  # noqa: PLC0415  few calls ask something

    answer(question_text(question))
    warn(how_to_reply(question))


def exit_of(result: ToolResult[Any]) -> int:
    """What the exit code says about a result."""
    return OK if result.error is None else _EXITS.get(result.error.code, FAILED)


def show(result: ToolResult[Any], options: Namespace, mode: Mode, why_off: str | None) -> None:
    """A result for a person."""
    waits = result.error is not None and result.error.code == "PERMISSION_REQUIRED"
    if result.error is not None and not waits:
        _print_error(result, result.error, why_off)
    for text in result.warnings:
        warn(f"warning: {text}")
    if result.error is None:
        answer(result.content)
        if result.meta.truncated:
            note(f"{result.summary}; {_how_to_go_on(result)}")
        if result.meta.undo is not None:
            note(f"to take it back: handrail undo {result.meta.undo}")
        if open_end := _not_covered(result):
            note(open_end)
        if process := getattr(result.data, "session_id", None):
            note(f"to look at it: handrail processes log {process}; to end it: handrail processes stop {process}")
    elif waits:
        _print_request(result.error, mode)
    else:
        _print_next_step(result.error, options, mode)
    if options.verbose:
        note(f"{result.title}: {result.summary} · {result.duration_ms:.1f} ms")


def _not_covered(result: ToolResult[Any]) -> str | None:
    if result.meta.sandbox is None:
        return None
    from handrail.cli.coverage import of_result  # noqa: PLC0415  only commands have something to say

    return of_result(result)


def _how_to_go_on(result: ToolResult[Any]) -> str:
    if result.meta.next_offset is not None:
        return f"go on with offset {result.meta.next_offset}"
    return f"read {result.meta.output} for all of it" if result.meta.output else "some of it is not shown"


def _print_error(result: ToolResult[Any], error: ErrorInfo, why_off: str | None) -> None:
    if result.content != error.message:
        answer(result.content)  # what there was before it failed
    warn(error.code if error.message in result.content != error.message else f"{error.code}: {error.message}")
    if why_off:
        warn(f"{why_off} (handrail config says which file)")
    if error.code == "UNKNOWN_TOOL":
        warn(f"The tools here: {', '.join(error.details)}.")


def _print_next_step(error: ErrorInfo, options: Namespace, mode: Mode) -> None:
    from handrail.cli.next_step import after_refusal  # noqa: PLC0415  only where policy has refused

    unattended = getattr(options, "unattended", False)
    step = after_refusal(error, mode, unattended=unattended)
    if step:
        note(step)


def _print_request(error: ErrorInfo, mode: Mode) -> None:
    from handrail.cli.next_step import after_request  # noqa: PLC0415  only where somebody has to be asked
    from handrail.cli.request import request_in, request_text  # noqa: PLC0415

    request = request_in(error.details)
    answer(request_text(request))
    warn(after_request(request, mode))
    _print_how_to_answer(error)


def _print_how_to_answer(error: ErrorInfo | None) -> None:
    from handrail.cli.next_step import how_to_answer  # noqa: PLC0415  only where somebody has to be asked
    from handrail.cli.request import request_in  # noqa: PLC0415

    if error is not None:
        warn(how_to_answer(request_in(error.details)))
