"""What each setting means and which values it takes, in words."""

import msgspec


class SettingReference(msgspec.Struct, frozen=True):
    """One line of `handrail config`."""

    help: str
    allowed: str


_NAMES = "a list of tool names"
_PATTERN = "one text that is not empty; a second pattern is a second rule"
_FOLDERS = "a list of folders, each absolute or starting with ~/"
_COUNT = "a whole number from 0 to 1000000"
_CHARACTERS = "a whole number from 1000 to 100000000"
_TIME = 'a time from "100 ms" to "10 min", such as "120s" or "1.5 min", or a whole number of seconds'
_SIZE = 'a size from "{}" to "{}", such as "{}", or a whole number of bytes'
_PREVIEW = _SIZE.format("64 KB", "64 TB", "2 GB")

REFERENCE: dict[str, SettingReference] = {
    "mode": SettingReference(
        "How much runs unasked; the environment can only make it stricter.", "plan, ask, auto or full"
    ),
    "model": SettingReference(
        "Which model handrail run talks to; its provider sees what the model reads.",
        'a provider and its name for a model, such as "anthropic:claude-sonnet-4-5" or "ollama:qwen3"',
    ),
    "preview": SettingReference(
        "Whether a command that asks is tried in a copy first, to show what it would change.",
        "when-asked or never",
    ),
    "profile": SettingReference(
        "What a session is for; restricted: few commands, few folders, nothing asks.", "standard or restricted"
    ),
    "tools.enable": SettingReference("Tools offered besides those that are on by default.", _NAMES),
    "tools.disable": SettingReference(
        "Tools not offered; base tools too, and of other servers by mcp__NAME or a glob.", _NAMES
    ),
    "tools.deny": SettingReference(
        "Permissions this agent does not have; tools that need one are not offered.",
        "a list of fs.read, fs.write, fs.delete, proc.exec, net.connect, git.write",
    ),
    "tools.folders": SettingReference("Folders with custom tool files.", _FOLDERS),
    "tools.installed": SettingReference(
        "Whether tools of installed packages (entry points) are registered.", "true or false"
    ),
    "skills.enabled": SettingReference("Whether skills (folders with a SKILL.md) are looked for.", "true or false"),
    "skills.folders": SettingReference("Folders with skills, besides the usual ones and before them.", _FOLDERS),
    "skills.disable": SettingReference("Skills that cannot be used.", "a list of names of skills"),
    "read.images": SettingReference("Whether read returns images as attachments.", "true or false"),
    "results.characters": SettingReference("Characters of one result before the rest is kept aside.", _CHARACTERS),
    "results.batch_characters": SettingReference("Characters of all results of one batch together.", _CHARACTERS),
    "journal.durability": SettingReference(
        "What a recorded event survives; power flushes the disk at each commit.", "crash or power"
    ),
    "store.keep": SettingReference("How long a session is kept after its last use.", 'a number of days such as "90d"'),
    "events.jsonl": SettingReference(
        "Folder in the workspace that live event lines are appended to.",
        "a folder relative to the workspace, without ..",
    ),
    "paths.read_only": SettingReference("Folders outside the workspace that may be read.", _FOLDERS),
    "paths.writable": SettingReference("Folders outside the workspace that may be read and written.", _FOLDERS),
    "paths.outside": SettingReference("Whether a path outside all roots is refused or asked about.", "deny or ask"),
    "paths.client_roots": SettingReference(
        "What becomes of folders outside that an MCP client says it works on.", "ignore, read-only or writable"
    ),
    "bulk.deleted": SettingReference("More deleted files than this are a bulk change, which asks in auto.", _COUNT),
    "bulk.changed": SettingReference("More changed files than this are a bulk change.", _COUNT),
    "bulk.bytes": SettingReference(
        "More written bytes than this are a bulk change.", _SIZE.format("4 KB", "64 TB", "500 MB")
    ),
    "restricted.commands": SettingReference(
        "Commands, by their first words, that the restricted profile runs.", "a list of commands"
    ),
    "restricted.folders": SettingReference(
        "Folders of the workspace that the restricted profile reads and writes.",
        "a list of folders relative to the workspace, without ..",
    ),
    "search.ignore": SettingReference("Patterns skipped besides the built-in ignore list.", "a list of patterns"),
    "search.engine": SettingReference(
        "What searches; auto takes ripgrep where there is one.", "auto, ripgrep or python"
    ),
    "undo.days": SettingReference("Days for which a change can be undone.", "a whole number from 1 to 3650"),
    "sandbox.tier": SettingReference(
        "The best sandbox that is used: 3 overlay, 2 namespaces, 1 Landlock, 0 none.", "0, 1, 2 or 3"
    ),
    "sandbox.least": SettingReference(
        "The weakest sandbox that a command still runs in; below it none runs.", "0, 1, 2 or 3"
    ),
    "sandbox.toolchains": SettingReference(
        "Folders and files outside the roots that commands see besides those of known tools.",
        "a list of folders and files, each absolute or starting with ~/, but none that holds everything or credentials",
    ),
    "sandbox.environment": SettingReference(
        "Variables that commands get besides the usual ones.",
        "a list of names of variables, but none of a secret or that steers how programs start",
    ),
    "network.allow": SettingReference(
        "Hosts that every command reaches which may change something; all others are out of reach.",
        'a list such as "index.example.org:443", "*.example.org", "127.0.0.1:8080" or "10.0.0.0/8:5432"; '
        "ports are 80 and 443 where none is named",
    ),
    "mcp.wait": SettingReference(
        "How long a session waits for other MCP servers to start before it goes on without them.",
        'a time from "100 ms" to "10 min", such as "5s", or a whole number of seconds',
    ),
    "limits.exec": SettingReference("How long a command may take whose call names no time.", _TIME),
    "limits.output": SettingReference(
        "How much of what a command prints is kept at hand; more goes to a file.",
        _SIZE.format("64 KB", "64 MB", "4 MB"),
    ),
    "limits.memory": SettingReference(
        "How much memory a command may use with all it starts.", _SIZE.format("16 MB", "64 TB", "1.5 GB")
    ),
    "limits.processes": SettingReference(
        "How many processes a command may have at once.", "a whole number from 8 to 1000000"
    ),
    "limits.file_size": SettingReference(
        "How large a file may become that a command writes.", _SIZE.format("4 KB", "64 TB", "500 MB")
    ),
    "limits.preview": SettingReference("How much a command may write before somebody approves it.", _PREVIEW),
    "limits.waiting": SettingReference(
        "How much all previews of a workspace may take that wait for an answer.", _PREVIEW
    ),
    "limits.idle": SettingReference(
        "How long a process session goes on that prints nothing and that nobody asks about.",
        'a time from "1 s" to "168 h", such as "30 min", or a whole number of seconds',
    ),
    "limits.sessions": SettingReference(
        "How many process sessions a session may have running at once.", "a whole number from 1 to 1000"
    ),
    "agent.calls": SettingReference("How many tool calls one turn may make.", "a whole number from 1 to 1000000"),
    "agent.tokens": SettingReference(
        "How many tokens one turn may use, questions and answers; without it, any number.",
        "a whole number from 1 to 1000000000",
    ),
    "agent.repeats": SettingReference(
        "How often the same calls may come to the same results in a row before the turn ends.",
        "a whole number from 2 to 1000",
    ),
    "agent.attempts": SettingReference(
        "How often a question is put to a provider that cannot answer just then.", "a whole number from 1 to 100"
    ),
    "agent.full": SettingReference(
        "From which part of the model's window on the transcript is made shorter.", "a number from 0.1 to 1.0"
    ),
    "agent.window": SettingReference(
        "How many tokens the model takes in all, where its provider does not say so.",
        "a whole number from 2000 to 100000000",
    ),
}
"""Every dotted key, in the order of the model."""

RULE: dict[str, SettingReference] = {
    "id": SettingReference(
        "What decisions call the rule.", "letters, digits, - and _, at most 64, beginning with a letter or digit"
    ),
    "allow": SettingReference("Commands by their first words, or paths by a pattern, that run unasked.", _PATTERN),
    "ask": SettingReference("Those that ask, whatever the mode.", _PATTERN),
    "deny": SettingReference("Those that are refused.", _PATTERN),
    "tool": SettingReference(
        "The tool that the rule is about, or * for every tool but exec; without it, exec.",
        "the name of a tool",
    ),
    "because": SettingReference("Why, for the person or the model that reads the decision.", "a text"),
    "match": SettingReference("Commands or paths that the rule must be about; checked at load.", "a list of texts"),
    "no_match": SettingReference("Commands or paths that it must not be about; checked at load.", "a list of texts"),
    "any_args": SettingReference("Whether an allowed command may have any arguments.", "true or false"),
}
"""Every key of a rule."""

SERVER: dict[str, SettingReference] = {
    "command": SettingReference(
        "The program that is the server; it is started here, in a sandbox.", "a text that is not empty"
    ),
    "args": SettingReference("What it is started with.", "a list of texts"),
    "env": SettingReference(
        "Variables that it gets besides those of commands; ${NAME} and ${NAME:-else} stand for yours.",
        "a table of names of variables and texts",
    ),
    "cwd": SettingReference(
        "The folder that it is started in: the workspace, or one in it.", "a folder in the workspace"
    ),
    "url": SettingReference("Where a server is that runs elsewhere.", "an address, https, or http of this machine"),
    "headers": SettingReference(
        "What every request to it carries.", "a table of names of headers and texts of one line"
    ),
    "network": SettingReference(
        "Hosts that a server reaches which is started here; all others are out of its reach.",
        'a list such as "api.github.com:443" or "*.example.org"; ports are 80 and 443 where none is named',
    ),
    "writable": SettingReference("Whether it may change the workspace.", "true or false"),
    "read_only": SettingReference(
        "Tools of it that only look, by your word: its own word loosens nothing.",
        "a list of names of tools, as the server calls them; get_* stands for several",
    ),
    "hints": SettingReference("Whether it is believed when it says itself that a tool only looks.", "true or false"),
    "timeout": SettingReference(
        "How long a call of one of its tools may take.",
        'a time from "100 ms" to "1 h", such as "60s", or a whole number of seconds',
    ),
    "enabled": SettingReference("Whether it is used.", "true or false"),
}
"""Every key of a server."""
