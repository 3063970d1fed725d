"""The arguments of each command."""

from argparse import ArgumentParser, Namespace
from importlib import import_module

from handrail.cli.exits import FAILED, OK, USAGE, WAITING
from handrail.cli.parser import (
    Command,
    add_json_option,
    add_mode_option,
    add_plain_option,
    add_workspace_option,
    parse_nonempty_text,
    parse_number,
    parse_past_time,
)

parse_whole_number = parse_number(0)
parse_counting_number = parse_number(1)
parse_port = parse_number(1, 65_535)
parse_free_port = parse_number(0, 65_535)


def _build(function, sentence, arguments, examples, exits, takes_rest=False):  # type: ignore[no-untyped-def]
    module, _, name = function.partition(":")

    def run(options: Namespace) -> int:
        return getattr(import_module(f"handrail.cli.{module}"), name)(options)

    return Command(run, arguments, examples, exits, takes_rest)


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


def add_demo_options(parser: ArgumentParser) -> None:
    """demo"""
    add_plain_option(parser)


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


LEGACY: dict[str, Command] = {
    "demo": _build(
        "commands.demo:run",
        "See it at work without a key: a scripted model fixes a test in a temporary folder.",
        add_demo_options,
        ("handrail demo", "handrail demo --plain"),
        {FAILED: "something was not as it should be; it is named"},
    ),
    "mcp": _build(
        "commands.mcp:run",
        "Be the tools of another program's agent: an MCP server over stdin and stdout.",
        add_mcp_options,
        ("handrail mcp --config claude-code", "handrail mcp --config claude-code --write"),
        {FAILED: "with --config: what is to be pasted by hand was printed"},
    ),
    "acp": _build(
        "commands.acp:run",
        "Be the agent of an editor that speaks the Agent Client Protocol, over stdin and stdout.",
        add_acp_options,
        ("handrail acp --model anthropic:claude-sonnet-4-5", "handrail acp --mode auto --workspace ."),
        {},
    ),
    "tools": _build(
        "commands.tools:run",
        "List the tools that are offered.",
        add_tools_options,
        ("handrail tools", "handrail tools --openai > tools.json"),
        {},
    ),
    "skills": _build(
        "commands.skills:run",
        "List the skills that are found here, and what they leave of the tools.",
        add_skills_options,
        ("handrail skills", "handrail skills show commit"),
        {},
    ),
    "skills show": _build(
        "commands.skills:run_show",
        "Show how a skill is understood: its tools, its rules, what it says; changes nothing.",
        add_skills_show_options,
        ("handrail skills show commit", "handrail skills show commit --json | jq .skill.allowedTools"),
        {FAILED: "there is no such skill, or it cannot be used"},
    ),
    "schema": _build(
        "commands.tools:run_schema",
        "Print the JSON Schema of everything on the wire.",
        add_schema_options,
        ("handrail schema | jq .types.tool_result", "handrail schema --out schemas"),
        {},
    ),
    "log": _build(
        "commands.log:run",
        "Show what happened in a session, the last events last.",
        add_log_options,
        ("handrail log --changes", "handrail log --line src/a.py:41"),
        {FAILED: "there is no such session, file or line"},
    ),
    "log export": _build(
        "commands.log:run_export",
        "Copy the events of a session to JSONL files, one a day.",
        add_log_export_options,
        ("handrail log export cli", "handrail log export cli --out /tmp/logs"),
        {FAILED: "there is no such session"},
    ),
    "sessions": _build(
        "commands.sessions:run",
        "List stored sessions with their state and size.",
        add_sessions_options,
        ("handrail sessions", "handrail sessions --all --json"),
        {},
    ),
    "sessions remove": _build(
        "commands.sessions:run_remove",
        "Remove a session with its journal, files and stored outputs.",
        add_sessions_remove_options,
        ("handrail sessions remove s-7fq", "handrail sessions remove --older-than 90d --all"),
        {FAILED: "there is no such session, or it is in use; nothing was removed"},
    ),
    "replay": _build(
        "commands.replay:run",
        "Play a recorded session again on a copy of the workspace as it was, and compare every result.",
        add_replay_options,
        ("handrail replay cli", "handrail replay cli --json | jq '.calls[] | select(.verdict == \"differs\")'"),
        {FAILED: "a result differs, or there is no such session"},
    ),
    "processes": _build(
        "commands.processes:run",
        "List the commands that go on in the background, and those that did.",
        add_processes_options,
        ("handrail processes --all", "handrail processes stop p-7fq"),
        {FAILED: "there is no such session"},
    ),
    "processes log": _build(
        "commands.processes:run_log",
        "Print what a background command has printed.",
        add_processes_log_options,
        ("handrail processes log p-7fq --follow", "handrail processes log p-7fq --raw > server.log"),
        {FAILED: "there is no such process session"},
    ),
    "processes write": _build(
        "commands.processes:run_write",
        "Write a line to the input of a background command.",
        add_processes_write_options,
        ("handrail processes write p-7fq yes", "handrail processes write p-7fq - --eof < answers.txt"),
        {FAILED: "there is no such process session, or it has ended"},
    ),
    "processes forward": _build(
        "commands.processes:run_forward",
        "Open a port of a background command on this machine, until Ctrl-C.",
        add_processes_forward_options,
        ("handrail processes forward p-7fq 8000", "handrail processes forward p-7fq 80 --to 8080"),
        {
            OK: "the background command has ended",
            FAILED: "there is no such process session, it cannot be reached, or the port here is taken",
        },
    ),
    "processes stop": _build(
        "commands.processes:run_stop",
        "End a background command with all that it started; its log stays.",
        add_processes_stop_options,
        ("handrail processes stop p-7fq", "handrail processes stop --all"),
        {FAILED: "there is no such process session, or it could not be ended"},
    ),
    "processes remove": _build(
        "commands.processes:run_remove",
        "End a background command where it runs, and forget it with its log.",
        add_processes_remove_options,
        ("handrail processes remove p-7fq", "handrail processes remove p-7fq --json"),
        {FAILED: "there is no such process session"},
    ),
    "memory": _build(
        "commands.memory:run",
        "List the notes that models made about this workspace.",
        add_memory_options,
        ("handrail memory", "handrail memory --json | jq '.notes[].title'"),
        {},
    ),
    "memory show": _build(
        "commands.memory:run_show",
        "Print a note.",
        add_one_note_options,
        ("handrail memory show m-7fq2k", "handrail memory show m-7f --json"),
        {FAILED: "there is no such note"},
    ),
    "memory remove": _build(
        "commands.memory:run_remove",
        "Remove a note: no later session reads it.",
        add_one_note_options,
        ("handrail memory remove m-7fq2k", "handrail memory remove m-7f --json"),
        {FAILED: "there is no such note, or it could not be removed"},
    ),
    "audit": _build(
        "commands.audit:run",
        "Show the last records of the audit.",
        add_audit_options,
        ("handrail audit --limit 50", "handrail audit --json | jq '.records[].rule'"),
        {},
    ),
    "audit verify": _build(
        "commands.audit:run_verify",
        "Check that no record of the audit was changed, removed or inserted.",
        add_json_option,
        ("handrail audit verify", "handrail audit verify --json | jq .intact"),
        {FAILED: "the audit is broken"},
    ),
    "policy explain": _build(
        "commands.policy:run_explain",
        "Say what policy decides about a command or a tool call, and why; nothing is run.",
        add_policy_explain_options,
        (
            "handrail policy explain -- 'cd api && rm -rf build | tee log'",
            """handrail policy explain --tool write --args '{"path": "a", "content": ""}' --json""",
        ),
        {
            USAGE: "wrong usage or settings, or a call that is wrong before policy is asked",
            FAILED: "with --exit-code: deny",
            WAITING: "with --exit-code: confirm",
        },
        takes_rest=True,
    ),
    "policy modes": _build(
        "commands.policy:run_modes",
        "Show what each mode says where no rule does.",
        add_json_option,
        ("handrail policy modes", "handrail policy modes --json | jq .table.write"),
        {},
    ),
    "policy test": _build(
        "commands.policy:run_test",
        "Check the examples of the rules in force and of the built-in tables.",
        add_policy_test_options,
        ("handrail policy test", "handrail policy test --workspace . --json"),
        {FAILED: "an example does not come out as its rule says"},
    ),
    "policy replay": _build(
        "commands.policy:run_replay",
        "Judge the calls of before under the rules of today, from the facts that were recorded.",
        add_policy_replay_options,
        ("handrail policy replay --since 7d", "handrail policy replay --session cli --mode auto --json"),
        {FAILED: "there is no such session"},
    ),
    "doctor": _build(
        "commands.doctor:run",
        "Check what handrail needs here; changes nothing.",
        add_json_option,
        ("handrail doctor", "handrail doctor --json"),
        {FAILED: "something does not work"},
    ),
    "config": _build(
        "commands.config:run",
        "Show every setting and rule, and where it comes from.",
        add_config_options,
        ("handrail config", "handrail config --schema > .handrail.schema.json"),
        {},
    ),
    "trust": _build(
        "commands.trust:run",
        "Let a project loosen the settings (handrail.toml) and bring servers (.mcp.json), exactly as they are now.",
        add_trust_options,
        ("handrail trust", "handrail trust --list"),
        {},
    ),
}
