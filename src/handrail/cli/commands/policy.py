"""`handrail policy`: the decisions of the policy."""

import os
import shlex
import sys
from argparse import ArgumentParser
from types import SimpleNamespace
from typing import Any

import msgspec

from handrail.cli.context import load_settings, open_state_folder, resolve_workspace, resolve_workspace_session
from handrail.cli.errors import print_tool_error
from handrail.cli.exits import FAILED, OK, USAGE, WAITING, CommandFailed
from handrail.cli.format import format_time
from handrail.cli.output import can_show, print_json, print_note, print_out, render_table, warn
from handrail.cli.parser import Command, add_json_option, add_mode_option, add_place_options, add_workspace_option
from handrail.cli.stdin import read_json_argument, read_stdin_lines
from handrail.cli.usage import parse_number, parse_past_time
from handrail.inspection import (
    MODE_TABLE,
    DecisionChange,
    PolicyInspector,
    PolicyReplay,
    PolicyTest,
    list_remarks,
)
from handrail.protocol.decisions import MODES, Decision, Facts, Mode
from handrail.protocol.errors import ToolError
from handrail.protocol.text import clip_text, format_count, truncate
from handrail.protocol.wire import Json, encode, get_json_decoder
from handrail.terminal.decision_text import name_decision, render_call, render_decision
from handrail.terminal.style import measure_columns

_SCHEMA = "handrail.policy/1"
_EXITS = {"allow": OK, "deny": FAILED, "confirm": WAITING}
_WORST_FIRST = (USAGE, FAILED, WAITING, OK)
_FORMS = 'expected {"command": …}, with "cwd" if need be, or {"tool": …, "args": …}, both with "mode" if need be'
_WAYS = "-- COMMAND, --tool NAME --args JSON, or --stdin"
_MAX_SUBJECT_CHARS = 60
_TEST_TIER = 2
"""The sandbox of examples. Their decisions must not depend on the machine."""
_REPLAY_HEAD = ("time", "session", "tool", "subject", "then", "", "now", "rule")


def run_explain(options: SimpleNamespace) -> int:
    """Explains the decision about one call, or about one call a line."""
    query = read_query(options)
    with _open_inspector(options, options.mode, tier=options.tier) as inspector:
        return _explain_one(inspector, query, options) if query else _explain_lines(inspector, options)


def run_modes(options: SimpleNamespace) -> int:
    """Prints the decision of each mode if no rule decides."""
    if options.json:
        print_json(encode({"schema": _SCHEMA, "modes": MODES, "table": MODE_TABLE}))
        return OK
    rows = [(subject, *(name_decision(cells[mode]) for mode in MODES)) for subject, cells in MODE_TABLE.items()]
    print_out(render_table([("", *MODES), *rows]))
    print_note("undoable: allow where undo covers it, needs approval elsewhere")
    print_note('outside: with paths.outside = "ask" in the user file, file tools ask; plan mode asks only for reading')
    return OK


def run_test(options: SimpleNamespace) -> int:
    """Tests the examples of rules and tables."""
    with _open_inspector(options, tier=_TEST_TIER, review=False) as inspector:
        found = inspector.test()
    failures = [one for one in found.examples if one.problem]
    if options.json:
        body = {"schema": _SCHEMA, "ok": not failures, "examples": len(found.examples), "rules": found.rules}
        print_json(encode({**body, "failures": failures, "remarks": found.remarks}))
    else:
        _print_test(found)
    return FAILED if failures else OK


def run_replay(options: SimpleNamespace) -> int:
    """Decides past calls again, and shows the decisions that differ."""
    with _open_inspector(options, options.mode) as inspector:
        workspace = os.path.realpath(inspector.workspace)
        if options.session is None:
            folders = open_state_folder().sessions(workspace)
        else:
            folders = [resolve_workspace_session(workspace, options.session)]
        found = inspector.replay(folders, options.since, options.mode)
    if options.json:
        body = {"schema": _SCHEMA, "mode": options.mode, "since": options.since, "sessions": len(folders)}
        print_json(encode({**body, **msgspec.structs.asdict(found)}))
        return OK
    mode = f" in mode {options.mode}" if options.mode else ""
    print_out(f"{len(found.differ):,} of {format_count(found.calls, 'call')} would differ{mode}\n")
    if found.differ:
        print_out(render_table([_REPLAY_HEAD, *map(_build_replay_row, found.differ)]))
    _print_replay_notes(found)
    return OK


def _open_inspector(
    options: SimpleNamespace, mode: Mode | None = None, *, tier: int | None = None, review: bool = True
) -> PolicyInspector:
    workspace = resolve_workspace(options)
    loaded = load_settings(options, mode, workspace, review=review)
    return PolicyInspector(workspace, loaded, tier)


# Questions


class PolicyQuery(msgspec.Struct, frozen=True):
    """A call to explain. A command is a call of exec."""

    tool: str
    args: Json
    mode: Mode | None = None


class _QueryLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    command: str | None = None
    tool: str | None = None
    args: Any = None
    cwd: str | None = None
    mode: Mode | None = None


_decode_line = get_json_decoder(_QueryLine).decode


def read_query(options: SimpleNamespace) -> PolicyQuery | None:
    """The question of the command line. None if questions come on stdin."""
    if options.words:
        example = f"handrail policy explain -- {shlex.join(options.words)}"
        problem = "put -- before the command. Otherwise handrail reads the command's options as its own."
        raise CommandFailed(problem, then=example)
    if (options.rest is not None) + (options.tool is not None) + options.stdin != 1:
        raise CommandFailed(f"the command to explain is missing. Give it in one of three ways: {_WAYS}.")
    if (options.tool is None) != (options.args is None):
        raise CommandFailed("--tool and --args belong together. For a tool without arguments, pass --args '{}'.")
    if options.tool is not None and options.cwd is not None:
        raise CommandFailed("--cwd works only for commands, not with --tool.")
    if options.tool is not None:
        return PolicyQuery(options.tool, read_json_argument(options.args, options.tool))
    if options.stdin:
        return None
    if not options.rest:
        raise CommandFailed("the command after -- is missing.")
    # A shell has already split several words. One word is a whole command.
    command = options.rest[0] if len(options.rest) == 1 else shlex.join(options.rest)
    return _build_command_query(command, options.cwd, None)


def parse_query_line(line: bytes | None, cwd: str | None) -> PolicyQuery:
    """The question of a line. ToolError if it has none."""
    if line is None:
        raise ToolError("INVALID_ARGUMENT", "the line is larger than 64 MiB")
    if not line.strip():
        raise ToolError("INVALID_ARGUMENT", f"the line is empty; {_FORMS}")
    try:
        read = _decode_line(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = f"the line is not a question: {clip_text(str(error), 400)}; {_FORMS}"
        raise ToolError("INVALID_ARGUMENT", problem) from None
    if read.command is not None and read.tool is None and read.args is None:
        return _build_command_query(read.command, cwd if read.cwd is None else read.cwd, read.mode)
    if read.tool is not None and read.command is None and read.cwd is None:
        return PolicyQuery(read.tool, read.args, read.mode)
    raise ToolError("INVALID_ARGUMENT", f"the line is not a question; {_FORMS}")


def _build_command_query(text: str, cwd: str | None, mode: Mode | None) -> PolicyQuery:
    return PolicyQuery("exec", {"command": text} if cwd is None else {"command": text, "cwd": cwd}, mode)


# Answers


def _explain_one(inspector: PolicyInspector, query: PolicyQuery, options: SimpleNamespace) -> int:
    try:
        decision, facts = inspector.explain(query.tool, query.args, query.mode)
    except ToolError as error:
        if options.json:
            print_json(_encode_error(error))
        else:
            print_tool_error(error, query.tool, query.args, mode=query.mode)
        return USAGE
    mode = inspector.get_mode(query.mode)
    if options.json:
        print_json(_encode_decision(decision, facts, mode))
    else:
        remarks = list_remarks(decision, facts, tells_tier=options.tier is None)
        columns, plain = measure_columns(sys.stdout), not can_show("├└")
        call = render_call(query.tool, query.args)
        print_out(render_decision(call, decision, mode, remarks, columns=columns, plain=plain))
    return _EXITS[decision.decision] if options.exit_code else OK


def _explain_lines(inspector: PolicyInspector, options: SimpleNamespace) -> int:
    """Answers each line, also an invalid one, so that a program can count the answers."""
    exits = {OK}
    for line in read_stdin_lines():
        try:
            query = parse_query_line(line, options.cwd)
            decision, facts = inspector.explain(query.tool, query.args, query.mode)
            answer = _encode_decision(decision, facts, inspector.get_mode(query.mode))
            code = _EXITS[decision.decision] if options.exit_code else OK
        except ToolError as error:
            answer, code = _encode_error(error), USAGE
        exits.add(code)
        if not print_json(answer):
            break
    return next(code for code in _WORST_FIRST if code in exits)


def _encode_decision(decision: Decision, facts: Facts, mode: Mode) -> bytes:
    body: dict[str, object] = {
        "schema": _SCHEMA,
        "decision": decision.decision,
        "rule": decision.rule,
        "reason": decision.reason,
    }
    if decision.code is not None:
        body["code"] = decision.code
    body |= {"parts": decision.parts, "mode": mode}
    if (command := facts.command) is not None:
        body["tier"] = command.tier
        hosts = {"hosts": command.hosts, "unopened": command.unopened}
        body |= {name: value for name, value in hosts.items() if value}
    return encode(body)


def _encode_error(error: ToolError) -> bytes:
    body = {"code": error.code, "message": error.message}
    if error.details is not None:
        body["details"] = error.details
    return encode({"schema": _SCHEMA, "error": body})


def _print_test(found: PolicyTest) -> None:
    tried = len(found.examples)
    if failures := [one for one in found.examples if one.problem]:
        rows = [(one.rule, one.example, one.problem, one.came_out or "-") for one in failures]
        print_out(render_table([("rule", "example", "problem", "what came out"), *rows]))
        print_out(f"{len(failures):,} of {tried:,} examples have an unexpected decision\n")
    else:
        print_out(f"all {tried:,} examples have the expected decision\n")
    for remark in found.remarks:
        print_note(remark)


def _build_replay_row(one: DecisionChange) -> tuple[str, ...]:
    arrow = "→" if can_show("→") else "->"
    subject = truncate(one.subject, _MAX_SUBJECT_CHARS)
    then, now = map(name_decision, (one.then, one.now))
    return format_time(one.time), one.session, one.tool, subject, then, arrow, now, one.rule


def _print_replay_notes(found: PolicyReplay) -> None:
    """The calls that were not decided again."""
    if found.unjudged:
        print_note(f"{format_count(found.unjudged, 'call')} left out: the call was invalid, so policy did not decide")
    for name, number in found.gone.items():
        print_note(f"{format_count(number, 'call')} of {truncate(name, 80)} left out: no tool of that name is offered")
    if found.broken:
        warn(f"warning: {format_count(found.broken, 'call')} left out: the record cannot be read")
    for problem in found.unreadable:
        warn(f"warning: a session left out: {problem}")


def _add_explain_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "words",
        metavar="-- COMMAND",
        nargs="*",
        help="the command; several words are quoted and joined",
    )
    parser.add_argument("--tool", metavar="NAME", help="a tool call instead, with --args")
    parser.add_argument("--args", metavar="JSON", help="the tool's arguments, one JSON object; - reads it from stdin")
    parser.add_argument(
        "--stdin",
        action="store_true",
        help='read one {"command": …} or {"tool": …, "args": …} a line, and answer each. A bad line makes exit code 2',
    )
    add_mode_option(parser)
    add_workspace_option(parser)
    parser.add_argument("--cwd", metavar="DIR", help="the folder in the workspace that commands start in (.)")
    parser.add_argument(
        "--tier",
        metavar="N",
        type=parse_number(0),
        choices=range(4),
        help="the sandbox tier, from 3 (overlay) to 0 (none) (this machine's)",
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="allow 0, deny 1, needs approval 3; of several lines the strictest"
    )
    add_json_option(parser)


def _add_replay_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--since",
        metavar="WHEN",
        type=parse_past_time,
        help="calls since then: 7d, 12h, 30m, 2026-07-01, 2026-07-01T09:30",
    )
    parser.add_argument("--session", metavar="ID", help="one session (all of the workspace)")
    add_mode_option(parser)
    add_place_options(parser)


COMMANDS = {
    "policy explain": Command(
        run_explain,
        _add_explain_arguments,
        (
            "handrail policy explain -- 'cd api && rm -rf build | tee log'",
            """handrail policy explain --tool write --args '{"path": "a", "content": ""}' --json""",
        ),
        {
            USAGE: "wrong usage or settings, or an invalid call",
            FAILED: "with --exit-code: deny",
            WAITING: "with --exit-code: needs approval",
        },
        takes_rest=True,
    ),
    "policy modes": Command(
        run_modes, add_json_option, ("handrail policy modes", "handrail policy modes --json | jq .table.write")
    ),
    "policy test": Command(
        run_test,
        add_place_options,
        ("handrail policy test", "handrail policy test --workspace . --json"),
        {FAILED: "an example has an unexpected decision"},
    ),
    "policy replay": Command(
        run_replay,
        _add_replay_arguments,
        ("handrail policy replay --since 7d", "handrail policy replay --session cli --mode auto --json"),
        {FAILED: "there is no such session"},
    ),
}
