"""The arguments of each command."""

from argparse import ArgumentParser, ArgumentTypeError
from typing import TYPE_CHECKING

from handrail.protocol.text import quote_text

if TYPE_CHECKING:
    from datetime import datetime


def add_call_options(parser: ArgumentParser) -> None:
    """call"""
    parser.add_argument("tool", metavar="NAME", help="the tool")
    parser.add_argument("arguments", metavar="JSON", help="its arguments, one JSON object; - reads it from stdin")
    add_mode_option(parser)
    add_workspace_option(parser)
    add_session_option(parser)
    parser.add_argument("--unattended", action="store_true", help="refuse what would ask (as when CI is set)")
    add_plain_option(parser)
    parser.add_argument("--json", action="store_true", help="print the whole result; never asks")


_CLIENTS = "claude-code, cursor, vscode, zed, codex, opencode"


def add_mcp_options(parser: ArgumentParser) -> None:
    """mcp"""
    add_mode_option(parser)
    add_workspace_option(parser)
    parser.add_argument(
        "--session",
        metavar="ID",
        type=parse_nonempty_text,
        help="the session by this name (mcp- and the client's name)",
    )
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--http", metavar="HOST:PORT", type=parse_nonempty_text, help="over HTTP instead, on this loopback address"
    )
    how.add_argument(
        "--config",
        metavar="CLIENT",
        type=parse_nonempty_text,
        help=f"show what tells a client of it, as a diff: {_CLIENTS}",
    )
    parser.add_argument("--write", action="store_true", help="with --config: write it")
    parser.set_defaults(json=False, quiet=False)


def add_acp_options(parser: ArgumentParser) -> None:
    """acp"""
    told = "provider and model, such as anthropic:… or ollama:…; the editor offers several to choose from"
    parser.add_argument("--model", metavar="NAME", action="append", help=told)
    add_mode_option(parser)
    parser.add_argument("--workspace", metavar="DIR", help="the folder to work in (the one that the editor names)")
    parser.set_defaults(json=False, quiet=False)


def add_run_options(parser: ArgumentParser) -> None:
    """run"""
    parser.add_argument(
        "prompt",
        metavar="PROMPT",
        nargs="?",
        help="what is to be done; - reads it from stdin; what is piped in beside it is its material",
    )
    parser.add_argument("--model", metavar="NAME", help="provider and model, such as anthropic:… or ollama:…")
    add_mode_option(parser)
    add_workspace_option(parser)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-c", "--continue", dest="last", action="store_true", help="go on in the workspace's last one")
    which.add_argument(
        "--resume", metavar="ID", type=parse_nonempty_text, help="go on in this session (or the id's beginning)"
    )
    which.add_argument("--fork", metavar="ID", type=parse_nonempty_text, help="begin a new session where this one is")
    which.add_argument("--session", metavar="ID", help="the session by this name, new or not (a new one)")
    whom = parser.add_mutually_exclusive_group()
    whom.add_argument("--unattended", action="store_true", help="refuse what would ask (as when CI is set)")
    whom.add_argument("--park", action="store_true", help="leave what asks waiting, and exit 3")
    parser.add_argument("-o", dest="out", metavar="FILE", help="write the last answer to this file")
    parser.add_argument("--max-calls", metavar="N", type=parse_counting_number, help="tool calls of the turn, at most")
    parser.add_argument("--max-tokens", metavar="N", type=parse_counting_number, help="tokens of the turn, at most")
    add_plain_option(parser)
    parser.add_argument("--json", action="store_true", help="print one event a line, end or error last; never asks")


def add_demo_options(parser: ArgumentParser) -> None:
    """demo"""
    add_plain_option(parser)


def add_approvals_options(parser: ArgumentParser) -> None:
    """approvals"""
    add_workspace_option(parser)
    parser.add_argument("--all", action="store_true", help="of every workspace, not only of this one")
    parser.add_argument("--watch", action="store_true", help="stay, and ask or tell about each request that comes")
    add_plain_option(parser)
    add_json_option(parser)


def add_approvals_allow_options(parser: ArgumentParser) -> None:
    """approvals allow"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the request, or the beginning of its id")
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
    add_approvals_answer_options(parser)


def add_approvals_show_options(parser: ArgumentParser) -> None:
    """approvals show"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the request, or the beginning of its id")
    parser.add_argument("--diff", action="store_true", help="also the differences that it would make")
    parser.add_argument("--output", action="store_true", help="also what it printed when it was tried")
    add_approvals_answer_options(parser)


def add_approvals_retry_options(parser: ArgumentParser) -> None:
    """approvals retry"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the request, or the beginning of its id")
    parser.add_argument("--command", metavar="TEXT", type=parse_nonempty_text, help="another command in its place")
    add_approvals_answer_options(parser)


def add_approvals_deny_options(parser: ArgumentParser) -> None:
    """approvals deny"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the request, or the beginning of its id")
    parser.add_argument("--reason", metavar="TEXT", help="why not; the model reads it")
    add_approvals_answer_options(parser)


def add_approvals_revoke_options(parser: ArgumentParser) -> None:
    """approvals revoke"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the grant, or the path of an opened folder")
    parser.add_argument("--workspace", metavar="DIR", help="where it counts (here first, then anywhere)")
    add_json_option(parser)


def add_approvals_answer_options(parser: ArgumentParser) -> None:
    """What the commands have in common that are about one of them."""
    parser.add_argument("--workspace", metavar="DIR", help="where it waits (here first, then anywhere)")
    add_json_option(parser)


def add_approvals_reply_options(parser: ArgumentParser) -> None:
    """approvals reply"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the question, or the beginning of its id")
    parser.add_argument("words", metavar="REPLY", nargs="*", help="the numbers of options, their texts, or own words")
    parser.add_argument("--put-aside", action="store_true", help="no reply: the model is told to decide by itself")
    add_approvals_answer_options(parser)


def add_memory_options(parser: ArgumentParser) -> None:
    """memory"""
    add_workspace_option(parser)
    add_json_option(parser)


def add_one_note_options(parser: ArgumentParser) -> None:
    """memory show, memory remove"""
    parser.add_argument("id", metavar="ID", type=parse_nonempty_text, help="the note, or the beginning of its id")
    add_memory_options(parser)


def add_tools_options(parser: ArgumentParser) -> None:
    """tools"""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the descriptions with their schemas")
    form.add_argument("--openai", action="store_true", help="as a tool list for OpenAI")
    form.add_argument("--anthropic", action="store_true", help="as a tool list for Anthropic")
    form.add_argument("--mcp", action="store_true", help="as a tool list for MCP")
    form.add_argument("--guide", action="store_true", help="which tool to take for what, as Markdown")
    add_workspace_option(parser)


def add_skills_options(parser: ArgumentParser) -> None:
    """skills"""
    add_workspace_option(parser)
    add_json_option(parser)


def add_skills_show_options(parser: ArgumentParser) -> None:
    """skills show"""
    parser.add_argument("name", metavar="NAME", type=parse_nonempty_text, help="the skill")
    add_workspace_option(parser)
    add_json_option(parser)


def add_schema_options(parser: ArgumentParser) -> None:
    """schema"""
    parser.add_argument("--out", metavar="DIR", help="write one file a schema, and samples, into this folder")


def add_log_options(parser: ArgumentParser) -> None:
    """log"""
    add_workspace_option(parser)
    parser.add_argument("--session", metavar="ID", help="the session, or the id's beginning (the last one)")
    parser.add_argument(
        "--after", metavar="SEQ", type=parse_whole_number, help="what came after this number, oldest first"
    )
    parser.add_argument(
        "--limit", metavar="N", type=parse_counting_number, default=100, help="at most so many events (100)"
    )
    other = parser.add_mutually_exclusive_group()
    other.add_argument("--sessions", action="store_true", help="list the sessions of the workspace instead")
    other.add_argument("--changes", action="store_true", help="list the workspace's changes instead, the latest first")
    other.add_argument(
        "--line", metavar="FILE:N", help="say why a line of a file is there: what made it, and who let it"
    )
    add_json_option(parser)


def add_sessions_options(parser: ArgumentParser) -> None:
    """sessions"""
    add_workspace_option(parser)
    parser.add_argument("--all", action="store_true", help="of every workspace, not only of this one")
    add_json_option(parser)


def add_sessions_remove_options(parser: ArgumentParser) -> None:
    """sessions remove"""
    parser.add_argument("id", metavar="ID", nargs="?", help="the session, or the beginning of its id")
    parser.add_argument(
        "--older-than", metavar="WHEN", type=parse_past_time, help="sessions not used for this long: 90d, 12h"
    )
    parser.add_argument("--force", action="store_true", help="also if a request or question of it waits")
    add_sessions_options(parser)


def add_log_export_options(parser: ArgumentParser) -> None:
    """log export"""
    parser.add_argument("task", metavar="TASK", help="the id of the session, or its beginning")
    parser.add_argument("--out", metavar="DIR", default=".tasklogs", help="where to (.tasklogs)")
    parser.add_argument(
        "--dialect", metavar="D", help="as another system is told of them: deepchat, devminds or onething"
    )
    add_workspace_option(parser)
    add_json_option(parser)


def add_replay_options(parser: ArgumentParser) -> None:
    """replay"""
    parser.add_argument("task", metavar="SESSION", help="the id of the session, or its beginning")
    parser.add_argument("--keep", metavar="DIR", help="play it in this new folder, and leave that")
    add_workspace_option(parser)
    add_json_option(parser)


def add_diff_options(parser: ArgumentParser) -> None:
    """diff"""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "number", metavar="N", nargs="?", type=parse_counting_number, help="the change (the last in effect)"
    )
    which.add_argument("--turn", action="store_true", help="everything of the last turn")
    add_workspace_option(parser)
    add_json_option(parser)


def add_undo_options(parser: ArgumentParser) -> None:
    """undo"""
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "number", metavar="N", nargs="?", type=parse_counting_number, help="the change (the last in effect)"
    )
    which.add_argument("--turn", action="store_true", help="everything of the last turn")
    which.add_argument("--session", metavar="ID", nargs="?", const="cli", help="everything of a session (cli)")
    add_redo_options(parser)
    parser.add_argument("--preview", action="store_true", help="only show what it would change")


def add_redo_options(parser: ArgumentParser) -> None:
    """redo"""
    resolve = parser.add_mutually_exclusive_group()
    resolve.add_argument("--with-later", action="store_true", help="take later changes of the same files back too")
    resolve.add_argument("--lines", action="store_true", help="where a file was changed since, only what is as it was")
    add_workspace_option(parser)
    add_json_option(parser)


def add_audit_options(parser: ArgumentParser) -> None:
    """audit"""
    parser.add_argument(
        "--limit", metavar="N", type=parse_counting_number, default=20, help="at most so many records (20)"
    )
    add_json_option(parser)


def add_policy_explain_options(parser: ArgumentParser) -> None:
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
    add_mode_option(parser)
    add_workspace_option(parser)
    parser.add_argument("--cwd", metavar="DIR", help="the folder in the workspace that commands start in (.)")
    parser.add_argument(
        "--tier",
        metavar="N",
        type=parse_whole_number,
        choices=range(4),
        help="the sandbox: 3 with an overlay, 2, 1, 0 none (yours)",
    )
    parser.add_argument(
        "--exit-code", action="store_true", help="allow 0, deny 1, confirm 3; of several lines the strictest"
    )
    add_json_option(parser)


def add_policy_test_options(parser: ArgumentParser) -> None:
    """policy test"""
    add_workspace_option(parser)
    add_json_option(parser)


def add_policy_replay_options(parser: ArgumentParser) -> None:
    """policy replay"""
    parser.add_argument(
        "--since",
        metavar="WHEN",
        type=parse_past_time,
        help="calls since then: 7d, 12h, 30m, 2026-07-01, 2026-07-01T09:30",
    )
    parser.add_argument("--session", metavar="ID", help="one session (all of the workspace)")
    add_mode_option(parser)
    add_workspace_option(parser)
    add_json_option(parser)


def add_processes_options(parser: ArgumentParser) -> None:
    """processes"""
    parser.add_argument("--session", metavar="ID", help="those of one session (all of the workspace)")
    parser.add_argument("--all", action="store_true", help="those of every workspace")
    add_workspace_option(parser)
    add_json_option(parser)


def add_processes_log_options(parser: ArgumentParser) -> None:
    """processes log"""
    add_one_process_options(parser)
    parser.add_argument("--raw", action="store_true", help="byte for byte, for a file or a pipe")
    parser.add_argument("--follow", action="store_true", help="go on until it has ended")
    add_workspace_option(parser)
    parser.set_defaults(json=False)


def add_processes_write_options(parser: ArgumentParser) -> None:
    """processes write"""
    add_one_process_options(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="a line; - sends what stdin has, as it is")
    parser.add_argument("--eof", action="store_true", help="end its input afterwards")
    add_workspace_option(parser)
    add_json_option(parser)


def add_processes_stop_options(parser: ArgumentParser) -> None:
    """processes stop"""
    parser.add_argument("id", metavar="ID", nargs="?", help="its id, or the beginning of it")
    parser.add_argument("--session", metavar="ID", help="those of a session")
    parser.add_argument("--all", action="store_true", help="those of every workspace")
    add_workspace_option(parser)
    add_json_option(parser)


def add_processes_remove_options(parser: ArgumentParser) -> None:
    """processes remove"""
    add_one_process_options(parser)
    add_workspace_option(parser)
    add_json_option(parser)


def add_processes_forward_options(parser: ArgumentParser) -> None:
    """processes forward"""
    add_one_process_options(parser)
    parser.add_argument("port", metavar="PORT", type=parse_port, help="the port that it listens on")
    parser.add_argument("--to", metavar="PORT", type=parse_free_port, help="the port here (the same); 0: any free one")
    add_workspace_option(parser)
    parser.set_defaults(json=False)


def add_one_process_options(parser: ArgumentParser) -> None:
    """Which process session."""
    parser.add_argument("id", metavar="ID", help="its id, or the beginning of it")


def add_config_options(parser: ArgumentParser) -> None:
    """config"""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--schema", action="store_true", help="the JSON Schema of the settings file")
    form.add_argument("--json", action="store_true", help="print one JSON object")
    add_workspace_option(parser)


def add_trust_options(parser: ArgumentParser) -> None:
    """trust"""
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--revoke", action="store_true", help="no longer trust this project")
    form.add_argument("--list", action="store_true", help="the projects that are trusted")
    add_workspace_option(parser)
    add_json_option(parser)


def add_json_option(parser: ArgumentParser) -> None:
    """The option of every command that has nothing special to say about it."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_mode_option(parser: ArgumentParser) -> None:
    """Which mode."""
    parser.add_argument("--mode", choices=("plan", "ask", "auto", "full"), help="how much runs unasked")


def add_plain_option(parser: ArgumentParser) -> None:
    """How questions look."""
    parser.add_argument("--plain", action="store_true", help="ask without frames, one line a choice (as with NO_COLOR)")


def add_workspace_option(parser: ArgumentParser) -> None:
    """Which workspace."""
    parser.add_argument("--workspace", metavar="DIR", help="the folder to work in (the current folder)")


def add_session_option(parser: ArgumentParser) -> None:
    """Which session."""
    parser.add_argument("--session", metavar="ID", default="cli", help="the session (cli)")


def parse_whole_number(text: str) -> int:
    """A number from 0."""
    return _number(text, 0)


def parse_counting_number(text: str) -> int:
    """A number from 1."""
    return _number(text, 1)


def parse_port(text: str) -> int:
    """A port."""
    return _number(text, 1, _MAX_PORT)


def parse_free_port(text: str) -> int:
    """A port, or 0 for any that is free."""
    return _number(text, 0, _MAX_PORT)


def parse_nonempty_text(text: str) -> str:
    """A text that is not empty."""
    if text:
        return text
    raise ArgumentTypeError("must not be empty")


def parse_past_time(text: str) -> "datetime":
    """A moment: so long ago, or a date with or without a time, of here unless it says of where."""
    from datetime import datetime, timedelta  # noqa: PLC0415  help needs no clock

    number, unit = text[:-1], _UNITS.get(text[-1:])
    try:
        if unit and number.isascii() and number.isdigit():
            return datetime.now().astimezone() - timedelta(**{unit: int(number)})
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError):
        told = f"must be a time such as 7d, 12h, 30m or 2026-07-01T09:30, got {quote_text(text)}"
        raise ArgumentTypeError(told) from None


_UNITS = {"m": "minutes", "h": "hours", "d": "days"}


_MAX_PORT = 65_535


def _number(text: str, least: int, most: int | None = None) -> int:
    if text.isascii() and text.isdigit() and len(text) < 19 and least <= int(text) <= (most or int(text)):
        return int(text)
    to = "on" if most is None else f"to {most}"
    raise ArgumentTypeError(f"must be a whole number from {least} {to}, got {quote_text(text)}")
