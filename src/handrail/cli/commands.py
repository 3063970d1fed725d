"""Every command on one page: its module, what it does, its arguments, two examples, what its exit says.

A command's module is imported when the command is run, not before: help and wrong usage cost next to nothing.
"""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import NamedTuple

from handrail.cli import options
from handrail.cli.exits import FAILED, INFRASTRUCTURE, INTERRUPTED, LIMIT, OK, USAGE, WAITING


class Command(NamedTuple):
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


COMMANDS: dict[str, Command] = {
    "run": Command(
        "run",
        "Have a model do a task here, with the tools; its words on stdout, progress on stderr.",
        options.for_run,
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
    "demo": Command(
        "demo",
        "See it at work without a key: a scripted model fixes a test in a temporary folder.",
        options.for_demo,
        ("handrail demo", "handrail demo --plain"),
        _EXITS | {FAILED: "something was not as it should be; it is named"},
    ),
    "mcp": Command(
        "mcp",
        "Be the tools of another program's agent: an MCP server over stdin and stdout.",
        options.for_mcp,
        ("handrail mcp --config claude-code", "handrail mcp --config claude-code --write"),
        _EXITS | {FAILED: "with --config: what is to be pasted by hand was printed"},
    ),
    "acp": Command(
        "acp",
        "Be the agent of an editor that speaks the Agent Client Protocol, over stdin and stdout.",
        options.for_acp,
        ("handrail acp --model anthropic:claude-sonnet-4-5", "handrail acp --mode auto --workspace ."),
        _EXITS,
    ),
    "call": Command(
        "call",
        "Run one tool call and print its result.",
        options.for_call,
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
    "approvals": Command(
        "approvals",
        "List what waits for your yes or your reply, and what you granted.",
        options.for_approvals,
        ("handrail approvals --watch", "handrail approvals allow 8f2"),
        _EXITS,
    ),
    "approvals allow": Command(
        "approvals_allow",
        "Say yes to a request: keep what was tried, or run it, and print the result.",
        options.for_approvals_allow,
        ("handrail approvals allow 8f2 --scope session", "handrail approvals allow 8f2 --output-only"),
        _EXITS
        | {FAILED: "nothing waits under this id, or the result is an error", WAITING: "more of its batch waits"}
        | {LIMIT: "a limit ended it"},
    ),
    "approvals deny": Command(
        "approvals_deny",
        "Say no to a request, and why.",
        options.for_approvals_deny,
        ("handrail approvals deny 8f2", "handrail approvals deny 8f2 --reason 'use the staging config'"),
        _EXITS | {FAILED: "nothing waits under this id", WAITING: "more of its batch waits"},
    ),
    "approvals reply": Command(
        "approvals_reply",
        "Reply to a question of the model; its session goes on with that.",
        options.for_approvals_reply,
        ("handrail approvals reply 8f2 1", "handrail approvals reply 8f2 only in the checkout"),
        _EXITS | {FAILED: "no question waits under this id"},
    ),
    "approvals show": Command(
        "approvals_show",
        "Show a request with its preview; changes nothing.",
        options.for_approvals_show,
        ("handrail approvals show 8f2 --diff", "handrail approvals show 8f2 --output --json"),
        _EXITS | {FAILED: "nothing waits under this id"},
    ),
    "approvals retry": Command(
        "approvals_retry",
        "Try the command of a request again in a copy, or another one in its place.",
        options.for_approvals_retry,
        ("handrail approvals retry 8f2", "handrail approvals retry 8f2 --command 'make -n'"),
        _EXITS
        | {FAILED: "nothing waits under this id, or policy refuses it", WAITING: "tried; it waits for an answer"},
    ),
    "approvals revoke": Command(
        "approvals_revoke",
        "Take back what you granted: a class of commands, or an opened folder.",
        options.for_approvals_revoke,
        ("handrail approvals revoke 1c9", "handrail approvals revoke /data/shared"),
        _EXITS | {FAILED: "nothing is granted under this id"},
    ),
    "tools": Command(
        "tools",
        "List the tools that are offered.",
        options.for_tools,
        ("handrail tools", "handrail tools --openai > tools.json"),
        _EXITS,
    ),
    "skills": Command(
        "skills",
        "List the skills that are found here, and what they leave of the tools.",
        options.for_skills,
        ("handrail skills", "handrail skills show commit"),
        _EXITS,
    ),
    "skills show": Command(
        "skills_show",
        "Show how a skill is understood: its tools, its rules, what it says; changes nothing.",
        options.for_skills_show,
        ("handrail skills show commit", "handrail skills show commit --json | jq .skill.allowedTools"),
        _EXITS | {FAILED: "there is no such skill, or it cannot be used"},
    ),
    "schema": Command(
        "schema",
        "Print the JSON Schema of everything on the wire.",
        options.for_schema,
        ("handrail schema | jq .types.tool_result", "handrail schema --out schemas"),
        _EXITS,
    ),
    "log": Command(
        "log",
        "Show what happened in a session, the last events last.",
        options.for_log,
        ("handrail log --changes", "handrail log --line src/a.py:41"),
        _EXITS | {FAILED: "there is no such session, file or line"},
    ),
    "log export": Command(
        "log_export",
        "Copy the events of a session to JSONL files, one a day.",
        options.for_log_export,
        ("handrail log export cli", "handrail log export cli --out /tmp/logs"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "sessions": Command(
        "session_list",
        "List stored sessions with their state and size.",
        options.for_sessions,
        ("handrail sessions", "handrail sessions --all --json"),
        _EXITS,
    ),
    "sessions remove": Command(
        "session_removal",
        "Remove a session with its journal, files and stored outputs.",
        options.for_sessions_remove,
        ("handrail sessions remove s-7fq", "handrail sessions remove --older-than 90d --all"),
        _EXITS | {FAILED: "there is no such session, or it is in use; nothing was removed"},
    ),
    "replay": Command(
        "replay",
        "Play a recorded session again on a copy of the workspace as it was, and compare every result.",
        options.for_replay,
        ("handrail replay cli", "handrail replay cli --json | jq '.calls[] | select(.verdict == \"differs\")'"),
        _EXITS | {FAILED: "a result differs, or there is no such session"},
    ),
    "diff": Command(
        "diff",
        "Show what a change did to files.",
        options.for_diff,
        ("handrail diff --turn", "handrail diff 14 > change.patch"),
        _EXITS | {FAILED: "there is no such change"},
    ),
    "undo": Command(
        "undo",
        "Take back the last change in this workspace, or another; what changed since stays.",
        options.for_undo,
        ("handrail undo", "handrail undo 14 --with-later"),
        _EXITS | {FAILED: "refused; nothing was changed"},
    ),
    "redo": Command(
        "redo",
        "Take back the last undo.",
        options.for_redo,
        ("handrail redo", "handrail redo --json"),
        _EXITS | {FAILED: "refused; nothing was changed"},
    ),
    "processes": Command(
        "processes",
        "List the commands that go on in the background, and those that did.",
        options.for_processes,
        ("handrail processes --all", "handrail processes stop p-7fq"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "processes log": Command(
        "processes_log",
        "Print what a background command has printed.",
        options.for_processes_log,
        ("handrail processes log p-7fq --follow", "handrail processes log p-7fq --raw > server.log"),
        _EXITS | {FAILED: "there is no such process session"},
    ),
    "processes write": Command(
        "processes_write",
        "Write a line to the input of a background command.",
        options.for_processes_write,
        ("handrail processes write p-7fq yes", "handrail processes write p-7fq - --eof < answers.txt"),
        _EXITS | {FAILED: "there is no such process session, or it has ended"},
    ),
    "processes forward": Command(
        "processes_forward",
        "Open a port of a background command on this machine, until Ctrl-C.",
        options.for_processes_forward,
        ("handrail processes forward p-7fq 8000", "handrail processes forward p-7fq 80 --to 8080"),
        _EXITS
        | {
            OK: "the background command has ended",
            FAILED: "there is no such process session, it cannot be reached, or the port here is taken",
        },
    ),
    "processes stop": Command(
        "processes_stop",
        "End a background command with all that it started; its log stays.",
        options.for_processes_stop,
        ("handrail processes stop p-7fq", "handrail processes stop --all"),
        _EXITS | {FAILED: "there is no such process session, or it could not be ended"},
    ),
    "processes remove": Command(
        "processes_remove",
        "End a background command where it runs, and forget it with its log.",
        options.for_processes_remove,
        ("handrail processes remove p-7fq", "handrail processes remove p-7fq --json"),
        _EXITS | {FAILED: "there is no such process session"},
    ),
    "memory": Command(
        "memory",
        "List the notes that models made about this workspace.",
        options.for_memory,
        ("handrail memory", "handrail memory --json | jq '.notes[].title'"),
        _EXITS,
    ),
    "memory show": Command(
        "memory_show",
        "Print a note.",
        options.for_one_note,
        ("handrail memory show m-7fq2k", "handrail memory show m-7f --json"),
        _EXITS | {FAILED: "there is no such note"},
    ),
    "memory remove": Command(
        "memory_remove",
        "Remove a note: no later session reads it.",
        options.for_one_note,
        ("handrail memory remove m-7fq2k", "handrail memory remove m-7f --json"),
        _EXITS | {FAILED: "there is no such note, or it could not be removed"},
    ),
    "audit": Command(
        "audit",
        "Show the last records of the audit.",
        options.for_audit,
        ("handrail audit --limit 50", "handrail audit --json | jq '.records[].rule'"),
        _EXITS,
    ),
    "audit verify": Command(
        "audit_verify",
        "Check that no record of the audit was changed, removed or inserted.",
        options.as_json,
        ("handrail audit verify", "handrail audit verify --json | jq .intact"),
        _EXITS | {FAILED: "the audit is broken"},
    ),
    "policy explain": Command(
        "policy_explain",
        "Say what policy decides about a command or a tool call, and why; nothing is run.",
        options.for_policy_explain,
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
    "policy modes": Command(
        "policy_modes",
        "Show what each mode says where no rule does.",
        options.as_json,
        ("handrail policy modes", "handrail policy modes --json | jq .table.write"),
        _EXITS,
    ),
    "policy test": Command(
        "policy_test",
        "Check the examples of the rules in force and of the built-in tables.",
        options.for_policy_test,
        ("handrail policy test", "handrail policy test --workspace . --json"),
        _EXITS | {FAILED: "an example does not come out as its rule says"},
    ),
    "policy replay": Command(
        "policy_replay",
        "Judge the calls of before under the rules of today, from the facts that were recorded.",
        options.for_policy_replay,
        ("handrail policy replay --since 7d", "handrail policy replay --session cli --mode auto --json"),
        _EXITS | {FAILED: "there is no such session"},
    ),
    "doctor": Command(
        "doctor",
        "Check what handrail needs here; changes nothing.",
        options.as_json,
        ("handrail doctor", "handrail doctor --json"),
        _EXITS | {FAILED: "something does not work"},
    ),
    "config": Command(
        "config",
        "Show every setting and rule, and where it comes from.",
        options.for_config,
        ("handrail config", "handrail config --schema > .handrail.schema.json"),
        _EXITS,
    ),
    "trust": Command(
        "trust",
        "Let a project loosen the settings (handrail.toml) and bring servers (.mcp.json), exactly as they are now.",
        options.for_trust,
        ("handrail trust", "handrail trust --list"),
        _EXITS,
    ),
}
