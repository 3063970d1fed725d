"""Every command on one page: its module, what it does, its arguments, two examples, what its exit says.

A command's module is imported when the command is run, not before: help and wrong usage cost next to nothing.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import NamedTuple

from handrail.cli import options
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, USAGE, WAITING


class CliCommand(NamedTuple):
    """One command; `module` has `run(options) -> int`."""

    module: str
    sentence: str
    arguments: Callable[[ArgumentParser], None]
    examples: tuple[str, str]
    exits: dict[int, str]
    takes_rest: bool = False
    """Whether the words after `--` are its own."""


_EXITS = {
    OK: "ok",
    USAGE: "wrong usage or settings; nothing was run",
    INFRASTRUCTURE: "the state folder cannot be used, or a defect",
    INTERRUPTED: "interrupted",
}


COMMANDS: dict[str, CliCommand] = {
    "run": CliCommand(
        "run",
        "Have a model do a task here, with the tools; its words on stdout, progress on stderr.",
        options.add_run_options,
        ("handrail run 'fix the failing test'", "handrail run 'review this' --json < changes.diff"),
        _EXITS
        | {
            OK: "done",
            FAILED: "the model or the loop failed, or there is no such session",
            WAITING: "something waits for you; the session is kept",
            INFRASTRUCTURE: "the provider, the sandbox or the state folder cannot be used; the session is kept",
            LIMIT: "a limit ended it; the session is kept",
            INTERRUPTED: "interrupted; the session is kept",
        },
    ),
    "demo": CliCommand(
        "demo",
        "See it at work without a key: a scripted model fixes a test in a temporary folder.",
        options.add_demo_options,
        ("handrail demo", "handrail demo --plain"),
        _EXITS | {FAILED: "something was not as it should be; it is named"},
    ),
    "mcp": CliCommand(
        "mcp",
        "Be the tools of another program's agent: an MCP server over stdin and stdout.",
        options.add_mcp_options,
        ("handrail mcp --config claude-code", "handrail mcp --config claude-code --write"),
        _EXITS | {FAILED: "with --config: what is to be pasted by hand was printed"},
    ),
    "acp": CliCommand(
        "acp",
        "Be the agent of an editor that speaks the Agent Client Protocol, over stdin and stdout.",
        options.add_acp_options,
        ("handrail acp --model anthropic:claude-sonnet-4-5", "handrail acp --mode auto --workspace ."),
        _EXITS,
    ),
    "call": CliCommand(
        "call",
        "Run one tool call and print its result.",
        options.add_call_options,
        (
            """handrail call exec '{"command": "make test"}'""",
            "handrail call write - --mode auto --json < arguments.json",
        ),
        _EXITS
        | {
            FAILED: "the result is an error",
            WAITING: "needs permission; your files are untouched",
            LIMIT: "a limit ended it",
        },
    ),
    "approvals": CliCommand(
        "approvals",
        "List what waits for your yes or your reply, and what you granted.",
        options.add_approvals_options,
        ("handrail approvals --watch", "handrail approvals allow 8f2"),
        _EXITS,
    ),
    "approvals allow": CliCommand(
        "approvals_allow",
        "Say yes to a request: keep what was tried, or run it, and print the result.",
        options.add_approvals_allow_options,
        ("handrail approvals allow 8f2 --scope session", "handrail approvals allow 8f2 --output-only"),
        _EXITS
        | {FAILED: "nothing waits under this id, or the result is an error", WAITING: "more of its batch waits"}
        | {LIMIT: "a limit ended it"},
    ),
    "approvals deny": CliCommand(
        "approvals_deny",
        "Say no to a request, and why.",
        options.add_approvals_deny_options,
        ("handrail approvals deny 8f2", "handrail approvals deny 8f2 --reason 'use the staging config'"),
        _EXITS | {FAILED: "nothing waits under this id", WAITING: "more of its batch waits"},
    ),
    "approvals reply": CliCommand(
        "approvals_reply",
        "Reply to a question of the model; its session goes on with that.",
        options.add_approvals_reply_options,
        ("handrail approvals reply 8f2 1", "handrail approvals reply 8f2 only in the checkout"),
        _EXITS | {FAILED: "no question waits under this id"},
    ),
    "approvals show": CliCommand(
        "approvals_show",
        "Show a request with its preview; changes nothing.",
        options.add_approvals_show_options,
        ("handrail approvals show 8f2 --diff", "handrail approvals show 8f2 --output --json"),
        _EXITS | {FAILED: "nothing waits under this id"},
    ),
    "approvals retry": CliCommand(
        "approvals_retry",
        "Try the command of a request again in a copy, or another one in its place.",
        options.add_approvals_retry_options,
        ("handrail approvals retry 8f2", "handrail approvals retry 8f2 --command 'make -n'"),
        _EXITS
        | {FAILED: "nothing waits under this id, or policy refuses it", WAITING: "tried; it waits for an answer"},
    ),
    "approvals revoke": CliCommand(
        "approvals_revoke",
        "Take back what you granted: a class of commands, or an opened folder.",
        options.add_approvals_revoke_options,
        ("handrail approvals revoke 1c9", "handrail approvals revoke /data/shared"),
        _EXITS | {FAILED: "nothing is granted under this id"},
    ),
    "tools": CliCommand(
        "tools",
        "List the tools that are offered.",
        options.add_tools_options,
        ("handrail tools", "handrail tools --openai > tools.json"),
        _EXITS,
    ),
    "skills": CliCommand(
        "skills",
        "List the skills that are found here, and what they leave of the tools.",
        options.add_skills_options,
        ("handrail skills", "handrail skills show commit"),
        _EXITS,
    ),
    "skills show": CliCommand(
        "skills_show",
        "Show how a skill is understood: its tools, its rules, what it says; changes nothing.",
        options.add_skills_show_options,
        ("handrail skills show commit", "handrail skills show commit --json | jq .skill.allowedTools"),
        _EXITS | {FAILED: "there is no such skill, or it cannot be used"},
    ),
    "schema": CliCommand(
        "schema",
        "Print the JSON Schema of everything on the wire.",
        options.add_schema_options,
        ("handrail schema | jq .types.tool_result", "handrail schema --out schemas"),
        _EXITS,
    ),
    "log": CliCommand(
        "log",
        "Show what happened in a session, the last events last.",
        options.add_log_options,
        ("handrail log --changes", "handrail log --line src/a.py:41"),
        _EXITS | {FAILED: "there is no such session, file or line"},
    ),
    "log export": CliCommand(
        "log_export",
        "Copy the events of a session to JSONL files, one a day.",
        options.add_log_export_options,
        ("handrail log export cli", "handrail log export cli --out /tmp/logs"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "sessions": CliCommand(
        "session_list",
        "List stored sessions with their state and size.",
        options.add_sessions_options,
        ("handrail sessions", "handrail sessions --all --json"),
        _EXITS,
    ),
    "sessions remove": CliCommand(
        "session_removal",
        "Remove a session with its journal, files and stored outputs.",
        options.add_sessions_remove_options,
        ("handrail sessions remove s-7fq", "handrail sessions remove --older-than 90d --all"),
        _EXITS | {FAILED: "there is no such session, or it is in use; nothing was removed"},
    ),
    "replay": CliCommand(
        "replay",
        "Play a recorded session again on a copy of the workspace as it was, and compare every result.",
        options.add_replay_options,
        ("handrail replay cli", "handrail replay cli --json | jq '.calls[] | select(.verdict == \"differs\")'"),
        _EXITS | {FAILED: "a result differs, or there is no such session"},
    ),
    "diff": CliCommand(
        "diff",
        "Show what a change did to files.",
        options.add_diff_options,
        ("handrail diff --turn", "handrail diff 14 > change.patch"),
        _EXITS | {FAILED: "there is no such change"},
    ),
    "undo": CliCommand(
        "undo",
        "Take back the last change in this workspace, or another; what changed since stays.",
        options.add_undo_options,
        ("handrail undo", "handrail undo 14 --with-later"),
        _EXITS | {FAILED: "refused; nothing was changed"},
    ),
    "redo": CliCommand(
        "redo",
        "Take back the last undo.",
        options.add_redo_options,
        ("handrail redo", "handrail redo --json"),
        _EXITS | {FAILED: "refused; nothing was changed"},
    ),
    "processes": CliCommand(
        "processes",
        "List the commands that go on in the background, and those that did.",
        options.add_processes_options,
        ("handrail processes --all", "handrail processes stop p-7fq"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "processes log": CliCommand(
        "processes_log",
        "Print what a background command has printed.",
        options.add_processes_log_options,
        ("handrail processes log p-7fq --follow", "handrail processes log p-7fq --raw > server.log"),
        _EXITS | {FAILED: "there is no such process session"},
    ),
    "processes write": CliCommand(
        "processes_write",
        "Write a line to the input of a background command.",
        options.add_processes_write_options,
        ("handrail processes write p-7fq yes", "handrail processes write p-7fq - --eof < answers.txt"),
        _EXITS | {FAILED: "there is no such process session, or it has ended"},
    ),
    "processes forward": CliCommand(
        "processes_forward",
        "Open a port of a background command on this machine, until Ctrl-C.",
        options.add_processes_forward_options,
        ("handrail processes forward p-7fq 8000", "handrail processes forward p-7fq 80 --to 8080"),
        _EXITS
        | {
            OK: "the background command has ended",
            FAILED: "there is no such process session, it cannot be reached, or the port here is taken",
        },
    ),
    "processes stop": CliCommand(
        "processes_stop",
        "End a background command with all that it started; its log stays.",
        options.add_processes_stop_options,
        ("handrail processes stop p-7fq", "handrail processes stop --all"),
        _EXITS | {FAILED: "there is no such process session, or it could not be ended"},
    ),
    "processes remove": CliCommand(
        "processes_remove",
        "End a background command where it runs, and forget it with its log.",
        options.add_processes_remove_options,
        ("handrail processes remove p-7fq", "handrail processes remove p-7fq --json"),
        _EXITS | {FAILED: "there is no such process session"},
    ),
    "memory": CliCommand(
        "memory",
        "List the notes that models made about this workspace.",
        options.add_memory_options,
        ("handrail memory", "handrail memory --json | jq '.notes[].title'"),
        _EXITS,
    ),
    "memory show": CliCommand(
        "memory_show",
        "Print a note.",
        options.add_one_note_options,
        ("handrail memory show m-7fq2k", "handrail memory show m-7f --json"),
        _EXITS | {FAILED: "there is no such note"},
    ),
    "memory remove": CliCommand(
        "memory_remove",
        "Remove a note: no later session reads it.",
        options.add_one_note_options,
        ("handrail memory remove m-7fq2k", "handrail memory remove m-7f --json"),
        _EXITS | {FAILED: "there is no such note, or it could not be removed"},
    ),
    "audit": CliCommand(
        "audit",
        "Show the last records of the audit.",
        options.add_audit_options,
        ("handrail audit --limit 50", "handrail audit --json | jq '.records[].rule'"),
        _EXITS,
    ),
    "audit verify": CliCommand(
        "audit_verify",
        "Check that no record of the audit was changed, removed or inserted.",
        options.add_json_option,
        ("handrail audit verify", "handrail audit verify --json | jq .intact"),
        _EXITS | {FAILED: "the audit is broken"},
    ),
    "policy explain": CliCommand(
        "policy_explain",
        "Say what policy decides about a command or a tool call, and why; nothing is run.",
        options.add_policy_explain_options,
        (
            "handrail policy explain -- 'cd api && rm -rf build | tee log'",
            """handrail policy explain --tool write --args '{"path": "a", "content": ""}' --json""",
        ),
        _EXITS
        | {
            USAGE: "wrong usage or settings, or a call that is wrong before policy is asked",
            FAILED: "with --exit-code: deny",
            WAITING: "with --exit-code: confirm",
        },
        takes_rest=True,
    ),
    "policy modes": CliCommand(
        "policy_modes",
        "Show what each mode says where no rule does.",
        options.add_json_option,
        ("handrail policy modes", "handrail policy modes --json | jq .table.write"),
        _EXITS,
    ),
    "policy test": CliCommand(
        "policy_test",
        "Check the examples of the rules in force and of the built-in tables.",
        options.add_policy_test_options,
        ("handrail policy test", "handrail policy test --workspace . --json"),
        _EXITS | {FAILED: "an example does not come out as its rule says"},
    ),
    "policy replay": CliCommand(
        "policy_replay",
        "Judge the calls of before under the rules of today, from the facts that were recorded.",
        options.add_policy_replay_options,
        ("handrail policy replay --since 7d", "handrail policy replay --session cli --mode auto --json"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "doctor": CliCommand(
        "doctor",
        "Check what handrail needs here; changes nothing.",
        options.add_json_option,
        ("handrail doctor", "handrail doctor --json"),
        _EXITS | {FAILED: "something does not work"},
    ),
    "config": CliCommand(
        "config",
        "Show every setting and rule, and where it comes from.",
        options.add_config_options,
        ("handrail config", "handrail config --schema > .handrail.schema.json"),
        _EXITS,
    ),
    "trust": CliCommand(
        "trust",
        "Let a project loosen the settings (handrail.toml) and bring servers (.mcp.json), exactly as they are now.",
        options.add_trust_options,
        ("handrail trust", "handrail trust --list"),
        _EXITS,
    ),
}
