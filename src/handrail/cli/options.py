"""The arguments of each command."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime


def for_call(parser: ArgumentParser) -> None:
    """call"""
    parser.add_argument("tool", metavar="NAME", help="the tool")
    parser.add_argument("arguments", metavar="JSON", help="its arguments, one JSON object; - reads it from stdin")
    in_mode(parser)
    in_workspace(parser)
    in_session(parser)
    parser.add_argument("--unattended", action="store_true", help="refuse what would ask (as when CI is set)")
    in_plain_form(parser)
    parser.add_argument("--json", action="store_true", help="print the whole result; never asks")


_CLIENTS = "claude-code, cursor, vscode, zed, codex, opencode"


def for_mcp(parser: ArgumentParser) -> None:
    """mcp"""
    in_mode(parser)
    in_workspace(parser)
    parser.add_argument(
        "--session", metavar="ID", type=some_text, help="the session by this name (mcp- and the client's name)"
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--http", metavar="HOST:PORT", type=some_text, help="over HTTP instead, on this loopback address")
    how.add_argument(
        "--config", metavar="CLIENT", type=some_text, help=f"show what tells a client of it, as a diff: {_CLIENTS}"
    )
    parser.add_argument("--write", action="store_true", help="with --config: write it")
    parser.set_defaults(json=False, quiet=False)


def for_acp(parser: ArgumentParser) -> None:
    """acp"""
    told = "provider and model, such as anthropic:… or ollama:…; the editor offers several to choose from"
    parser.add_argument("--model", metavar="NAME", action="append", help=told)
    in_mode(parser)
    parser.add_argument("--workspace", metavar="DIR", help="the folder to work in (the one that the editor names)")
    parser.set_defaults(json=False, quiet=False)


def for_run(parser: ArgumentParser) -> None:
    """run"""
    parser.add_argument(
        "prompt",
        metavar="PROMPT",
        nargs="?",
        help="what is to be done; - reads it from stdin; what is piped in beside it is its material",
    )
    parser.add_argument("--model", metavar="NAME", help="provider and model, such as anthropic:… or ollama:…")
    in_mode(parser)
    in_workspace(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-c", "--continue", dest="last", action="store_true", help="go on in the workspace's last one")
    which.add_argument("--resume", metavar="ID", type=some_text, help="go on in this session (or the id's beginning)")
    which.add_argument("--fork", metavar="ID", type=some_text, help="begin a new session where this one is")
    which.add_argument("--session", metavar="ID", help="the session by this name, new or not (a new one)")
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("--unattended", action="store_true", help="refuse what would ask (as when CI is set)")
    whom.add_argument("--park", action="store_true", help="leave what asks waiting, and exit 3")
    parser.add_argument("-o", dest="out", metavar="FILE", help="write the last answer to this file")
    parser.add_argument("--max-calls", metavar="N", type=counting_number, help="tool calls of the turn, at most")
    parser.add_argument("--max-tokens", metavar="N", type=counting_number, help="tokens of the turn, at most")
    in_plain_form(parser)
    parser.add_argument("--json", action="store_true", help="print one event a line, end or error last; never asks")


def for_demo(parser: ArgumentParser) -> None:
    """demo"""
    in_plain_form(parser)


def for_approvals(parser: ArgumentParser) -> None:
    """approvals"""
    in_workspace(parser)
    parser.add_argument("--all", action="store_true", help="of every workspace, not only of this one")
    parser.add_argument("--watch", action="store_true", help="stay, and ask or tell about each request that comes")
    in_plain_form(parser)
    as_json(parser)


def for_approvals_allow(parser: ArgumentParser) -> None:
    """approvals allow"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the request, or the beginning of its id")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--scope",
        choices=("once", "session", "workspace"),
        default="once",
        help="also stop asking for its class of commands, where the request offers that (once)",
    )
    how.add_argument(
        "--output-only", action="store_true", help="what it printed, without what it changed, where it was tried"
    )
    for_approvals_answer(parser)


def for_approvals_show(parser: ArgumentParser) -> None:
    """approvals show"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the request, or the beginning of its id")
    parser.add_argument("--diff", action="store_true", help="also the differences that it would make")
    parser.add_argument("--output", action="store_true", help="also what it printed when it was tried")
    for_approvals_answer(parser)


def for_approvals_retry(parser: ArgumentParser) -> None:
    """approvals retry"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the request, or the beginning of its id")
    parser.add_argument("--command", metavar="TEXT", type=some_text, help="another command in its place")
    for_approvals_answer(parser)


def for_approvals_deny(parser: ArgumentParser) -> None:
    """approvals deny"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the request, or the beginning of its id")
    parser.add_argument("--reason", metavar="TEXT", help="why not; the model reads it")
    for_approvals_answer(parser)


def for_approvals_revoke(parser: ArgumentParser) -> None:
    """approvals revoke"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the grant, or the path of an opened folder")
    parser.add_argument("--workspace", metavar="DIR", help="where it counts (here first, then anywhere)")
    as_json(parser)


def for_approvals_answer(parser: ArgumentParser) -> None:
    """What the commands have in common that are about one of them."""
    parser.add_argument("--workspace", metavar="DIR", help="where it waits (here first, then anywhere)")
    as_json(parser)


def for_approvals_reply(parser: ArgumentParser) -> None:
    """approvals reply"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the question, or the beginning of its id")
    parser.add_argument("words", metavar="REPLY", nargs="*", help="the numbers of options, their texts, or own words")
    parser.add_argument("--put-aside", action="store_true", help="no reply: the model is told to decide by itself")
    for_approvals_answer(parser)


def for_memory(parser: ArgumentParser) -> None:
    """memory"""
    in_workspace(parser)
    as_json(parser)


def for_one_note(parser: ArgumentParser) -> None:
    """memory show, memory remove"""
    parser.add_argument("id", metavar="ID", type=some_text, help="the note, or the beginning of its id")
    for_memory(parser)


def for_tools(parser: ArgumentParser) -> None:
    """tools"""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the descriptions with their schemas")
    form.add_argument("--openai", action="store_true", help="as a tool list for OpenAI")
    form.add_argument("--anthropic", action="store_true", help="as a tool list for Anthropic")
    form.add_argument("--mcp", action="store_true", help="as a tool list for MCP")
    form.add_argument("--guide", action="store_true", help="which tool to take for what, as Markdown")
    in_workspace(parser)


def for_skills(parser: ArgumentParser) -> None:
    """skills"""
    in_workspace(parser)
    as_json(parser)


def for_skills_show(parser: ArgumentParser) -> None:
    """skills show"""
    parser.add_argument("name", metavar="NAME", type=some_text, help="the skill")
    in_workspace(parser)
    as_json(parser)


def for_schema(parser: ArgumentParser) -> None:
    """schema"""
    parser.add_argument("--out", metavar="DIR", help="write one file a schema, and samples, into this folder")


def for_log(parser: ArgumentParser) -> None:
    """log"""
    in_workspace(parser)
    parser.add_argument("--session", metavar="ID", help="the session, or the id's beginning (the last one)")
    parser.add_argument("--after", metavar="SEQ", type=whole_number, help="what came after this number, oldest first")
    parser.add_argument("--limit", metavar="N", type=counting_number, default=100, help="at most so many events (100)")
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--sessions", action="store_true", help="list the sessions of the workspace instead")
    other.add_argument("--changes", action="store_true", help="list the workspace's changes instead, the latest first")
    other.add_argument(
        "--line", metavar="FILE:N", help="say why a line of a file is there: what made it, and who let it"
    )
    as_json(parser)


def for_sessions(parser: ArgumentParser) -> None:
    """sessions"""
    in_workspace(parser)
    parser.add_argument("--all", action="store_true", help="of every workspace, not only of this one")
    as_json(parser)


def for_sessions_remove(parser: ArgumentParser) -> None:
    """sessions remove"""
    parser.add_argument("id", metavar="ID", nargs="?", help="the session, or the beginning of its id")
    parser.add_argument("--older-than", metavar="WHEN", type=past_time, help="those that nobody used since: 90d, 12h")
    parser.add_argument("--force", action="store_true", help="also if a request or question of it waits")
    for_sessions(parser)


def for_log_export(parser: ArgumentParser) -> None:
    """log export"""
    parser.add_argument("task", metavar="TASK", help="the id of the session, or its beginning")
    parser.add_argument("--out", metavar="DIR", default=".tasklogs", help="where to (.tasklogs)")
    parser.add_argument(
        "--dialect", metavar="D", help="as another system is told of them: deepchat, devminds or onething"
    )
    in_workspace(parser)
    as_json(parser)


def for_replay(parser: ArgumentParser) -> None:
    """replay"""
    parser.add_argument("task", metavar="SESSION", help="the id of the session, or its beginning")
    parser.add_argument("--keep", metavar="DIR", help="play it in this new folder, and leave that")
    in_workspace(parser)
    as_json(parser)


def for_diff(parser: ArgumentParser) -> None:
    """diff"""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("number", metavar="N", nargs="?", type=counting_number, help="the change (the last in effect)")
    which.add_argument("--turn", action="store_true", help="everything of the last turn")
    in_workspace(parser)
    as_json(parser)


def for_undo(parser: ArgumentParser) -> None:
    """undo"""
    which = parser.add_mutually_exclusive_group()
    which.add_argument("number", metavar="N", nargs="?", type=counting_number, help="the change (the last in effect)")
    which.add_argument("--turn", action="store_true", help="everything of the last turn")
    which.add_argument("--session", metavar="ID", nargs="?", const="cli", help="everything of a session (cli)")
    for_redo(parser)
    parser.add_argument("--preview", action="store_true", help="only show what it would change")


def for_redo(parser: ArgumentParser) -> None:
    """redo"""
    resolve = parser.add_mutually_exclusive_group()
    resolve.add_argument("--with-later", action="store_true", help="take later changes of the same files back too")
    resolve.add_argument("--lines", action="store_true", help="where a file was changed since, only what is as it was")
    in_workspace(parser)
    as_json(parser)


def for_audit(parser: ArgumentParser) -> None:
    """audit"""
    parser.add_argument("--limit", metavar="N", type=counting_number, default=20, help="at most so many records (20)")
    as_json(parser)


def for_policy_explain(parser: ArgumentParser) -> None:
    """policy explain"""
    parser.add_argument(
        "words",
        metavar="-- COMMAND",
        nargs="*",
        help="the command: one word is its text as it is, several are quoted and joined",
    )
    parser.add_argument("--tool", metavar="NAME", help="a tool call instead, with --args")
    parser.add_argument("--args", metavar="JSON", help="the tool's arguments, one JSON object; - reads it from stdin")
    parser.add_argument(
        "--stdin",
        action="store_true",
        help='one JSON object a line, {"command": …} or {"tool": …, "args": …}, also "cwd" and "mode"; one answer a '
        'line, for a bad one {"error": …}, and then exit 2 at the end',
    )
    in_mode(parser)
    in_workspace(parser)
    parser.add_argument("--cwd", metavar="DIR", help="the folder in the workspace that commands start in (.)")
    parser.add_argument(
        "--tier",
        metavar="N",
        type=whole_number,
        choices=range(4),
        help="the sandbox: 3 with layers, 2, 1, 0 none (yours)",
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="allow 0, deny 1, confirm 3; of several lines the strictest"
    )
    as_json(parser)


def for_policy_test(parser: ArgumentParser) -> None:
    """policy test"""
    in_workspace(parser)
    as_json(parser)


def for_policy_replay(parser: ArgumentParser) -> None:
    """policy replay"""
    parser.add_argument(
        "--since", metavar="WHEN", type=past_time, help="calls since then: 7d, 12h, 30m, 2026-07-01, 2026-07-01T09:30"
    )
    parser.add_argument("--session", metavar="ID", help="one session (all of the workspace)")
    in_mode(parser)
    in_workspace(parser)
    as_json(parser)


def for_processes(parser: ArgumentParser) -> None:
    """processes"""
    parser.add_argument("--session", metavar="ID", help="those of one session (all of the workspace)")
    parser.add_argument("--all", action="store_true", help="those of every workspace")
    in_workspace(parser)
    as_json(parser)


def for_processes_log(parser: ArgumentParser) -> None:
    """processes log"""
    for_one_process(parser)
    parser.add_argument("--raw", action="store_true", help="byte for byte, for a file or a pipe")
    parser.add_argument("--follow", action="store_true", help="go on until it has ended")
    in_workspace(parser)
    parser.set_defaults(json=False)


def for_processes_write(parser: ArgumentParser) -> None:
    """processes write"""
    for_one_process(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="a line; - sends what stdin has, as it is")
    parser.add_argument("--eof", action="store_true", help="end its input afterwards")
    in_workspace(parser)
    as_json(parser)


def for_processes_stop(parser: ArgumentParser) -> None:
    """processes stop"""
    parser.add_argument("id", metavar="ID", nargs="?", help="its id, or the beginning of it")
    parser.add_argument("--session", metavar="ID", help="those of a session")
    parser.add_argument("--all", action="store_true", help="those of every workspace")
    in_workspace(parser)
    as_json(parser)


def for_processes_remove(parser: ArgumentParser) -> None:
    """processes remove"""
    for_one_process(parser)
    in_workspace(parser)
    as_json(parser)


def for_processes_forward(parser: ArgumentParser) -> None:
    """processes forward"""
    for_one_process(parser)
    parser.add_argument("port", metavar="PORT", type=port_number, help="the port that it listens on")
    parser.add_argument("--to", metavar="PORT", type=free_port_number, help="the port here (the same); 0: any free one")
    in_workspace(parser)
    parser.set_defaults(json=False)


def for_one_process(parser: ArgumentParser) -> None:
    """Which process session."""
    parser.add_argument("id", metavar="ID", help="its id, or the beginning of it")


def for_config(parser: ArgumentParser) -> None:
    """config"""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--schema", action="store_true", help="the JSON Schema of the settings file")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    in_workspace(parser)


def for_trust(parser: ArgumentParser) -> None:
    """trust"""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--revoke", action="store_true", help="no longer trust this project")
    form.add_argument("--list", action="store_true", help="the projects that are trusted")
    in_workspace(parser)
    as_json(parser)


def as_json(parser: ArgumentParser) -> None:
    """The option of every command that has nothing special to say about it."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def in_mode(parser: ArgumentParser) -> None:
    """Which mode."""
    parser.add_argument("--mode", choices=("plan", "ask", "auto", "full"), help="how much runs unasked")


def in_plain_form(parser: ArgumentParser) -> None:
    """How questions look."""
    parser.add_argument("--plain", action="store_true", help="ask without frames, one line a choice (as with NO_COLOR)")


def in_workspace(parser: ArgumentParser) -> None:
    """Which workspace."""
    parser.add_argument("--workspace", metavar="DIR", help="the folder to work in (the current folder)")


def in_session(parser: ArgumentParser) -> None:
    """Which session."""
    parser.add_argument("--session", metavar="ID", default="cli", help="the session (cli)")


def whole_number(text: str) -> int:
    """A number from 0."""
    return _number(text, 0)


def counting_number(text: str) -> int:
    """A number from 1."""
    return _number(text, 1)


def port_number(text: str) -> int:
    """A port."""
    return _number(text, 1, _LAST_PORT)


def free_port_number(text: str) -> int:
    """A port, or 0 for any that is free."""
    return _number(text, 0, _LAST_PORT)


def some_text(text: str) -> str:
    """A text that is not empty."""
    if text:
        return text
    raise ArgumentTypeError("must not be empty")


def past_time(text: str) -> "datetime":
    """A moment: so long ago, or a date with or without a time, of here unless it says of where."""
    from datetime import datetime, timedelta  # noqa: PLC0415  help needs no clock

    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit and number.isascii() and number.isdigit():
            return datetime.now().astimezone() - timedelta(**{unit: int(number)})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        got = repr(text if len(text) <= 80 else f"{text[:79]}…")
        raise ArgumentTypeError(f"must be a time such as 7d, 12h, 30m or 2026-07-01T09:30, got {got}") from None


_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


_LAST_PORT = 65_535


def _number(text: str, least: int, most: int | None = None) -> int:
    if text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= (most or int(text)):
        return int(text)
    got = repr(text if len(text) <= 80 else f"{text[:79]}…")
    to = "on" if most is None else f"to {most}"
    raise ArgumentTypeError(f"must be a whole number from {least} {to}, got {got}")
