"""call: one tool call from the shell."""

import os
import sys
from argparse import Namespace
from typing import Any

import msgspec

from handrail.cli.exits import FAILED, INFRASTRUCTURE, LIMIT, OK, WAITING, Stop
from handrail.cli.output import answer, answer_json, note
from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.protocol.error import ErrorInfo
from handrail.protocol.result import ToolResult
from handrail.protocol.wire import encode
from handrail.rail import Handrail

_LARGEST_BYTES = 64 * 1024 * 1024
_EXITS = {"PERMISSION_REQUIRED": WAITING, "LIMIT_EXCEEDED": LIMIT, "SANDBOX_UNAVAILABLE": INFRASTRUCTURE}


def run(options: Namespace) -> int:
    """Calls the tool and prints what came of it."""
    arguments = _arguments(options.arguments)
    if not options.session:
        raise Stop("--session is empty; name one, or leave it out for the session cli. Nothing was run.")
    workspace = workspace_of(options)
    loaded = loaded_for(options, options.mode, workspace)
    unattended = options.unattended or bool(os.environ.get("CI"))
    with Handrail(workspace, session=options.session, unattended=unattended, settings=loaded) as rail:
        result = rail.call(options.tool, arguments)
        why_off = rail.why_off(options.tool)
    _print(result, options, loaded.settings.mode, why_off)
    return OK if result.error is None else _EXITS.get(result.error.code, FAILED)


def _arguments(text: str) -> Any:
    data = _stdin() if text == "-" else os.fsencode(text)
    if not data.strip():
        raise Stop("the arguments are empty; without any, pass {}. Nothing was run.")
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Stop(f"the arguments are not JSON: {error}. Nothing was run.") from None


def _stdin() -> bytes:
    if sys.stdin is None:
        raise Stop("the arguments cannot be read: stdin is closed. Nothing was run.")
    if sys.stdin.isatty():
        note("waiting for the arguments as JSON; end with Ctrl-D")
    data = sys.stdin.buffer.read(_LARGEST_BYTES + 1)
    if len(data) > _LARGEST_BYTES:
        raise Stop("the arguments are larger than 64 MiB. Nothing was run.")
    return data


def _print(result: ToolResult[Any], options: Namespace, mode: str, why_off: str | None) -> None:
    if options.json:
        answer_json(encode(result))
        return
    for text in result.warnings:
        note(f"warning: {text}")
    if result.error is None:
        answer(result.content)
        if result.meta.truncated and not options.quiet:
            note(f"{result.summary}; {_how_to_go_on(result)}")
        if result.meta.undo is not None and not options.quiet:
            note(f"to take it back: handrail undo {result.meta.undo}")
    elif result.error.code == "PERMISSION_REQUIRED":
        _print_request(result.error, mode)
    else:
        _print_error(result, result.error, why_off)
    if options.verbose:
        note(f"{result.title}: {result.summary} · {result.duration_ms:.1f} ms")


def _how_to_go_on(result: ToolResult[Any]) -> str:
    if result.meta.next_offset is not None:
        return f"go on with offset {result.meta.next_offset}"
    return f"read {result.meta.output} for all of it" if result.meta.output else "some of it is not shown"


def _print_error(result: ToolResult[Any], error: ErrorInfo, why_off: str | None) -> None:
    if result.content != error.message:
        answer(result.content)  # what there was before it failed
    note(f"{error.code}: {error.message}")
    if why_off:
        note(f"{why_off} (handrail config says which file)")
    if error.code == "UNKNOWN_TOOL":
        note(f"The tools here: {', '.join(error.details)}.")


def _print_request(error: ErrorInfo, mode: str) -> None:
    from handrail.cli.request import asks_no_more, request_text  # noqa: PLC0415  only where somebody has to be asked

    answer(request_text(error.details))
    looser = "auto" if mode == "ask" and asks_no_more(error.details["rule"]) else "full"
    note(f"Nothing was run. To let it run without being asked, add --mode {looser}.")
    session, request = error.details["sessionId"], error.details["id"]
    note(f'To answer it, in Python: Handrail(WORKSPACE, session="{session}").answer("{request}", "once")')
