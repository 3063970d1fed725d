"""`handrail call`: one tool call from the shell."""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

from msgspec.structs import replace

from handrail.api import Handrail
from handrail.cli.context import add_dialect_option, find_server_sources, load_settings, resolve_workspace
from handrail.cli.exits import FAILED, INFRASTRUCTURE, LIMIT, NOT_RUN, OK, WAITING, CommandFailed
from handrail.cli.output import print_diff, print_json, print_note, print_out, print_slow_notice, warn
from handrail.cli.parser import (
    Command,
    add_json_option,
    add_mode_option,
    add_plain_option,
    add_workspace_option,
)
from handrail.cli.stdin import read_json_argument
from handrail.protocol.decisions import Mode
from handrail.protocol.errors import ErrorInfo, HandrailError
from handrail.protocol.events import Display, Event, format_display
from handrail.protocol.permissions import Question
from handrail.protocol.results import ToolResult
from handrail.protocol.tool_spec import BASE_NAMES
from handrail.protocol.wire import encode, to_dict
from handrail.settings import LoadedSettings

if TYPE_CHECKING:
    from argparse import ArgumentParser

_EXITS = {
    "PERMISSION_REQUIRED": WAITING,
    "LIMIT_EXCEEDED": LIMIT,
    "TIMEOUT": LIMIT,
    "SANDBOX_UNAVAILABLE": INFRASTRUCTURE,
}
_CALL_FIELDS = ("name", "args", "tool_call_id", "version", "trace_id", "requested_permissions")
CALL_EXITS = {
    FAILED: "the result is an error",
    WAITING: "needs permission; your files are untouched",
    LIMIT: "a limit ended it",
}


def add_arguments(parser: "ArgumentParser") -> None:
    parser.add_argument("tool", metavar="NAME", help="the tool, or a whole call as --dialect writes it")
    parser.add_argument(
        "arguments", metavar="JSON", nargs="?", help="its arguments, one JSON object; - reads it from stdin"
    )
    parser.add_argument("--exit-code", action="store_true", help="exit with the code of the command (only for exec)")
    add_dialect_option(parser)
    add_call_options(parser)


def add_call_options(parser: "ArgumentParser") -> None:
    """Adds the options of every command that makes a call."""
    add_mode_option(parser)
    add_workspace_option(parser)
    parser.add_argument("--session", metavar="ID", default="cli", help="the session (cli)")
    parser.add_argument("--unattended", action="store_true", help="deny requests for approval (as with CI set)")
    add_plain_option(parser)
    add_json_option(parser, "print the whole result; never asks")


def run(options: SimpleNamespace) -> int:
    if options.exit_code and options.tool != "exec":
        raise CommandFailed("--exit-code works only with exec. Nothing was run.")
    if options.arguments is None:
        call = _read_call(options)
        return run_tool(options, call.pop("name"), call.pop("args"), details=call)
    if options.exit_code:
        return run_command(options, lambda: read_json_argument(options.arguments, options.tool))
    return run_tool(options, options.tool, read_json_argument(options.arguments, options.tool))


def _read_call(options: SimpleNamespace) -> dict[str, Any]:
    """A whole call in the form of the dialect: its name, arguments and details."""
    from handrail.dialects.dialect import load_dialect  # noqa: PLC0415  few calls come whole

    unwrap = load_dialect(options.dialect).unwrap if options.dialect else None
    given: Any = read_json_argument(options.tool, "") if unwrap is not None and options.tool[:1] in {"{", "-"} else None
    if unwrap is None or not isinstance(given, dict):
        raise CommandFailed("the JSON with the tool's arguments is missing. Nothing was run.")
    call: dict[str, Any] = {"args": {}, **unwrap(cast("dict[str, Any]", given))}
    if not isinstance(call.get("name"), str):
        raise CommandFailed(f"the call names no tool of {options.dialect}. Nothing was run.")
    return {name: call[name] for name in _CALL_FIELDS if name in call}


def run_command(options: SimpleNamespace, build_arguments: Callable[[], Any]) -> int:
    """Calls exec. Returns the exit code of the command, or NOT_RUN."""
    try:
        return run_tool(options, "exec", build_arguments(), exit_code=True)
    except (CommandFailed, HandrailError) as error:
        from handrail.cli.errors import describe_error  # noqa: PLC0415  most calls succeed

        text, then, _ = describe_error(error)
        raise CommandFailed(text, NOT_RUN, then=then) from None


def run_tool(
    options: SimpleNamespace,
    tool: str,
    arguments: object,
    *,
    exit_code: bool = False,
    enable: bool = False,
    details: dict[str, Any] | None = None,
    finds: str = "",
) -> int:
    """Makes a call, asks at a terminal, and prints the result. Returns the exit code.

    `exit_code`: that of the command of exec, whose output is then all that stdout gets. `enable`: offer the tool
    even if the settings do not enable it. `details`: of the call, such as its id. `finds`: the field of the result that
    is empty if the command succeeded.
    """
    if not options.session:
        raise CommandFailed("--session is empty. Nothing was run.")
    workspace = resolve_workspace(options)
    loaded = _load_call_settings(options, workspace, tool if enable else "")
    spoken = loaded.settings.dialect is not None
    unattended = options.unattended or bool(os.environ.get("CI"))
    is_base = tool in BASE_NAMES
    with Handrail(
        workspace,
        session=options.session,
        unattended=unattended,
        settings=loaded,
        on_permission="park",
        sources=() if is_base else find_server_sources(options, loaded, workspace, called=tool),
    ) as rail:
        if tool == "display":
            rail.subscribe(_print_display, kinds={Display})
        with print_slow_notice(options, _describe_call(tool, arguments)):
            result = rail.call(tool, arguments, **(details or {}))
        asks = get_exit_code(result) == WAITING and not unattended and _load_permission().can_ask(options)
        told = False  # whether the line of the prompt has the outcome
        if asks:
            result, told = _load_permission().ask_until_answered(rail, result, options)
        why_off = rail.why_off(tool)
        question = _find_question(rail, result)
    if options.json:
        print_json(encode(result.data if spoken else result))
    elif question is not None:
        _load_permission().print_question(question)
    elif asks and result.error is not None and get_exit_code(result) == WAITING:
        _load_permission().print_answer_commands(result.error)
    else:
        shown, rest = (_end_line(result), "") if spoken else _split_output(result) if exit_code else (result, "")
        print_result(shown, options, loaded.settings.mode, arguments, why_off, told=told)
        if rest and not told:
            print_note(rest)
    if exit_code:
        return NOT_RUN if result.error is not None else to_dict(result.data).get("exitCode") or OK
    if question is not None:
        return WAITING
    return get_exit_code(result) or (FAILED if finds and getattr(result.data, finds, ()) else OK)


COMMANDS = {
    "call": Command(
        run,
        add_arguments,
        (
            """handrail call exec '{"command": "make test"}'""",
            "handrail call write - --mode auto --json < arguments.json",
        ),
        {**CALL_EXITS, NOT_RUN: "with --exit-code: the command did not run"},
    ),
}


def get_exit_code(result: ToolResult[Any]) -> int:
    return OK if result.error is None else _EXITS.get(result.error.code, FAILED)


def print_result(
    result: ToolResult[Any],
    options: SimpleNamespace,
    mode: Mode,
    arguments: object = None,
    why_off: str | None = None,
    *,
    told: bool = False,
) -> None:
    """Prints a result for a person. `told`: without the facts that the line of the prompt has."""
    for text in result.warnings:
        warn(f"warning: {text}")
    if result.error is None:
        _print_success(_split_output(result)[0] if told else result, told=told)
    elif result.error.code == "PERMISSION_REQUIRED":
        _load_permission().print_request(result.error, mode)
    elif not (told and _is_denial(result.error)):
        unattended = getattr(options, "unattended", False)
        step = _load_permission().suggest_after_denial(result.error, mode, unattended=unattended)
        _print_error(result, result.error, arguments, options, why_off or step)
    if options.verbose:
        print_note(f"{result.title}: {result.summary} · {result.duration_ms:.1f} ms")


def _load_call_settings(options: SimpleNamespace, workspace: str, enabled: str) -> LoadedSettings:
    """The settings with the dialect of --dialect. A command of its own calls the canonical tool, `enabled` if given.

    `options.dialect` is then the one that holds.
    """
    if hasattr(options, "dialect"):
        loaded = load_settings(options, options.mode, workspace, flags={"dialect": options.dialect})
        options.dialect = loaded.settings.dialect
        return loaded
    loaded = load_settings(options, options.mode, workspace)
    loaded = replace(loaded, settings=replace(loaded.settings, dialect=None))
    return _enable(loaded, enabled) if enabled else loaded


def _enable(loaded: LoadedSettings, tool: str) -> LoadedSettings:
    """The settings with the tool enabled, unless the managed file lists other tools."""
    managed, tools = loaded.managed.get("tools.enable"), loaded.settings.tools
    if isinstance(managed, list | tuple) and tool not in managed:
        return loaded
    return replace(loaded, settings=replace(loaded.settings, tools=replace(tools, enable=(*tools.enable, tool))))


def _end_line(result: ToolResult[Any]) -> ToolResult[Any]:
    """The result of a dialect, whose text may have no newline at its end."""
    is_message = result.error is not None and result.content == result.error.message
    ends = result.content.endswith("\n") or is_message
    return result if ends else replace(result, content=f"{result.content}\n")


def _print_display(event: Event) -> None:
    if isinstance(event, Display):
        warn(f"{event.level}: {format_display(event.title, event.content)}")


def _split_output(result: ToolResult[Any]) -> tuple[ToolResult[Any], str]:
    """The result with the bare output of its command as content, and the lines after the output."""
    output = to_dict(result.data).get("output")
    if result.error is not None or output is None or not result.content.startswith(output):
        return result, ""
    return replace(result, content=output), result.content[len(output) :].strip()


def _is_denial(error: ErrorInfo) -> bool:
    """Whether a person denied the call."""
    return to_dict(error.details).get("answer") == "deny"


def _print_success(result: ToolResult[Any], *, told: bool) -> None:
    if result.meta.undo is None or "output" in to_dict(result.data):
        print_out(result.content)
    elif not told:
        print_diff(f"{result.content.rstrip()}\n")
    if result.meta.truncated:
        print_note(f"{result.summary}; {_describe_rest(result)}")
    if result.meta.answered_by is not None:
        from handrail.terminal.call_lines import describe_unasked  # noqa: PLC0415  few calls need it

        print_note(describe_unasked(result.meta.answered_by, changed=result.meta.undo is not None))
    if result.meta.undo is not None and not told:
        print_note(f"to undo: handrail undo {result.meta.undo}")
    if result.meta.sandbox is not None:
        from handrail.cli.format import render_undo_gaps  # noqa: PLC0415  only commands have gaps
        from handrail.terminal.call_lines import list_undo_gaps  # noqa: PLC0415

        if gaps := list_undo_gaps(result):
            print_note(render_undo_gaps(gaps))
    if process := getattr(result.data, "session_id", None):
        print_note(f"to see its output: handrail processes log {process}; to end it: handrail processes stop {process}")


def _describe_rest(result: ToolResult[Any]) -> str:
    if result.meta.next_offset is not None:
        return f"continue with offset {result.meta.next_offset}"
    return f"read {result.meta.output} for all of it" if result.meta.output else "some output is not shown"


def _print_error(
    result: ToolResult[Any], error: ErrorInfo, arguments: object, options: SimpleNamespace, advice: str
) -> None:
    from handrail.cli.errors import print_dialect_error, print_tool_error  # noqa: PLC0415  most calls succeed

    if dialect := getattr(options, "dialect", None):
        if error.message not in result.content:
            print_out(result.content)
        print_dialect_error(error, dialect, advice=advice)
        return
    data = to_dict(result.data)
    if error.message not in result.content or data.get("output"):
        print_out(data.get("output", result.content))  # the output before the failure
    print_tool_error(error, result.name, arguments, advice=advice, mode=getattr(options, "mode", None))


def _describe_call(tool: str, arguments: Any) -> str:
    command = to_dict(arguments).get("command")
    return f"{tool} {command}" if isinstance(command, str) else tool


def _find_question(rail: Handrail, result: ToolResult[Any]) -> Question | None:
    """The question to the person that the call waits for."""
    if result.error is None or result.error.code != "UNAVAILABLE":
        return None
    return next((one for one in rail.waiting_questions() if one.tool_call_id == result.tool_call_id), None)


def _load_permission():  # the type is that of the module
    from handrail.cli import permission  # noqa: PLC0415  most calls need no approval

    return permission
