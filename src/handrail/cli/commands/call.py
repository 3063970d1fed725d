"""Runs `handrail call`."""

import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any, cast

from handrail.api import Handrail
from handrail.cli.context import find_server_sources, load_settings, read_json_argument, resolve_workspace
from handrail.cli.exits import FAILED, INFRASTRUCTURE, LIMIT, OK, WAITING, CommandFailed
from handrail.cli.output import print_json, print_note, print_out, print_slow_notice, warn
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import ErrorInfo
from handrail.protocol.permissions import Question
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.protocol.wire import encode
from handrail.settings import LoadedSettings

if TYPE_CHECKING:
    from handrail.runtime.foreign.source import ToolSource


_EXITS = {
    "PERMISSION_REQUIRED": WAITING,
    "LIMIT_EXCEEDED": LIMIT,
    "TIMEOUT": LIMIT,
    "SANDBOX_UNAVAILABLE": INFRASTRUCTURE,
}


def run(options: Namespace) -> int:
    """Calls the tool and prints what came of it."""
    arguments = read_json_argument(options.arguments)
    if not options.session:
        raise CommandFailed("--session is empty; name one, or leave it out for the session cli. Nothing was run.")
    workspace = resolve_workspace(options)
    loaded = load_settings(options, options.mode, workspace)
    unattended = options.unattended or bool(os.environ.get("CI"))
    with Handrail(
        workspace,
        session=options.session,
        unattended=unattended,
        settings=loaded,
        on_permission=_later,
        sources=() if options.tool in BASE_NAMES else _sources(options, loaded, workspace),
    ) as rail:
        with print_slow_notice(options, _what(options.tool, arguments)):
            result = rail.call(options.tool, arguments)
        asks = get_exit_code(result) == WAITING and not unattended and _can_ask(options)
        if asks:
            result = _asked(rail, result, options)
        why_off = rail.why_off(options.tool)
        question = _asked_by(rail, result)
    if options.json:
        print_json(encode(result))
    elif question is not None:
        _print_question(question)
    elif asks and get_exit_code(result) == WAITING:
        _print_how_to_answer(result.error)
    else:
        show(result, options, loaded.settings.mode, why_off)
    return WAITING if question is not None else get_exit_code(result)


def _sources(options: Namespace, loaded: LoadedSettings, workspace: str) -> "tuple[ToolSource, ...]":
    return find_server_sources(options, loaded, workspace, options.tool)


def _what(tool: str, arguments: Any) -> str:
    """The call in a few words."""
    named: Any = cast("dict[str, Any]", arguments).get("command") if isinstance(arguments, dict) else None
    return f"{tool} {named}" if isinstance(named, str) else tool


def _later(_: object) -> None:
    """Whoever may be asked is asked below, where more is known than the request."""


def _can_ask(options: Namespace) -> bool:
    from handrail.cli.permission import can_ask  # noqa: PLC0415  only where somebody has to be asked

    return can_ask(options)


def _asked(rail: Handrail, result: ToolResult[Any], options: Namespace) -> ToolResult[Any]:
    from handrail.cli.permission import ask_until_answered, say_left  # noqa: PLC0415  only where somebody has to be asked

    try:
        return ask_until_answered(rail, result, options)
    except KeyboardInterrupt:
        say_left()
        raise


def _asked_by(rail: Handrail, result: ToolResult[Any]) -> Question | None:
    """What the call asks the person, where it waits for the reply."""
    if result.error is None or result.error.code != "UNAVAILABLE":
        return None
    return next((one for one in rail.waiting_questions() if one.tool_call_id == result.tool_call_id), None)


def _print_question(question: Question) -> None:
    from handrail.cli.permission import describe_reply_command, render_question  # noqa: PLC0415  few calls ask something

    print_out(render_question(question))
    warn(describe_reply_command(question))


def get_exit_code(result: ToolResult[Any]) -> int:
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
        print_out(result.content)
        if result.meta.truncated:
            print_note(f"{result.summary}; {_how_to_go_on(result)}")
        if result.meta.undo is not None:
            print_note(f"to take it back: handrail undo {result.meta.undo}")
        if open_end := _not_covered(result):
            print_note(open_end)
        if process := getattr(result.data, "session_id", None):
            print_note(f"to look at it: handrail processes log {process}; to end it: handrail processes stop {process}")
    elif waits:
        _print_request(result.error, mode)
    else:
        _print_next_step(result.error, options, mode)
    if options.verbose:
        print_note(f"{result.title}: {result.summary} · {result.duration_ms:.1f} ms")


def _not_covered(result: ToolResult[Any]) -> str | None:
    if result.meta.sandbox is None:
        return None
    from handrail.cli.format import describe_result_gap  # noqa: PLC0415  only commands have something to say

    return describe_result_gap(result)


def _how_to_go_on(result: ToolResult[Any]) -> str:
    if result.meta.next_offset is not None:
        return f"go on with offset {result.meta.next_offset}"
    return f"read {result.meta.output} for all of it" if result.meta.output else "some of it is not shown"


def _print_error(result: ToolResult[Any], error: ErrorInfo, why_off: str | None) -> None:
    if result.content != error.message:
        print_out(result.content)  # what there was before it failed
    warn(error.code if error.message in result.content != error.message else f"{error.code}: {error.message}")
    if why_off:
        warn(f"{why_off} (handrail config says which file)")
    if error.code == "UNKNOWN_TOOL":
        warn(f"The tools here: {', '.join(error.details)}.")


def _print_next_step(error: ErrorInfo, options: Namespace, mode: Mode) -> None:
    from handrail.cli.permission import suggest_after_denial  # noqa: PLC0415  only where policy has refused

    unattended = getattr(options, "unattended", False)
    step = suggest_after_denial(error, mode, unattended=unattended)
    if step:
        print_note(step)


def _print_request(error: ErrorInfo, mode: Mode) -> None:
    from handrail.cli.permission import (  # noqa: PLC0415
        parse_request,
        render_request_text,
        suggest_after_request,
    )

    request = parse_request(error.details)
    print_out(render_request_text(request))
    warn(suggest_after_request(request, mode))
    _print_how_to_answer(error)


def _print_how_to_answer(error: ErrorInfo | None) -> None:
    from handrail.cli.permission import describe_answer_commands, parse_request  # noqa: PLC0415

    if error is not None:
        warn(describe_answer_commands(parse_request(error.details)))
