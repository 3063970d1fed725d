"""Errors of tools for a person: the failure, then one command."""

import shlex

from handrail.cli.exits import FAILED, INFRASTRUCTURE, USAGE, CommandFailed
from handrail.cli.output import print_error
from handrail.cli.parser import COMMANDS
from handrail.protocol.errors import ErrorInfo, HandrailError, StoreError, ToolError
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode, to_dict
from handrail.terminal.call_lines import describe_to_person

_UNCHANGED, _NOT_RUN = "Nothing was changed.", "Nothing was run."
_PLAIN = {
    "handrail tools --guide": "INVALID_ARGUMENT",
    "handrail tools": "UNSUPPORTED_VERSION",
    "handrail ls": "NOT_A_DIRECTORY",
    "handrail find {path}": "BINARY_FILE",
    "ls -l {path}": "ACCESS_DENIED",
    "df -h": "NO_SPACE",
    "handrail read {path}": "NO_CHANGE OMITTED_TEXT",
    "handrail approvals": "PERMISSION_REQUIRED",
    "handrail log --changes": "CONFLICT",
    "handrail processes": "PROCESS_NOT_FOUND PROCESS_ENDED",
    "handrail config limits": "TIMEOUT LIMIT_EXCEEDED",
    "handrail log": "CANCELLED INTERRUPTED",
    "handrail doctor": "IO_ERROR UNAVAILABLE SANDBOX_UNAVAILABLE INTERNAL",
}
"""The command for the codes of errors whose message is for people too."""
_TEXTS: dict[str, tuple[str, str]] = {
    "UNKNOWN_TOOL": (f"{{message}}. {_NOT_RUN}", "handrail tools"),
    "NOT_FOUND": (f"{{message}} {_UNCHANGED}", "handrail ls"),
    "NOT_A_FILE": (f"{{message}} {_UNCHANGED}", "handrail ls {path}"),
    "NO_MATCH": (f"the text to replace is not in {{path}}. {_UNCHANGED}{{closest}}", "handrail read {path}"),
    "AMBIGUOUS_MATCH": (f"the text to replace is in {{path}} more than once. {_UNCHANGED}", "handrail help edit"),
    "STALE_FILE": (f"{{path}} changed since it was read. {_UNCHANGED}", "handrail read {path}"),
    "OUTSIDE_WORKSPACE": (f"{{path}} is outside the workspace. {_NOT_RUN}", "handrail config paths"),
    "POLICY_DENIED": (f"{{subject}} is denied by rule {{rule}}: {{reason}}. {_NOT_RUN}", "{explain}"),
    "PERMISSION_DENIED": (f"{{subject}} needs approval, which was denied: {{reason}}. {_NOT_RUN}", "{explain}"),
    **{code: ("{message}", command) for command, codes in _PLAIN.items() for code in codes.split()},
}
"""The text and the command for each error code."""


def print_tool_error(
    error: ErrorInfo | ToolError, tool: str, arguments: object = None, *, advice: str = "", mode: str | None = None
) -> None:
    """Prints why a call failed. `advice`: what would let it run. `mode`: the mode that the person named."""
    args, details = to_dict(arguments), to_dict(error.details)
    text, command = _TEXTS[error.code]
    if details.get("answer") == "deny":
        subject = to_one_line(str(args.get("command", f"{tool} {args.get('path', '')}".rstrip())))
        print_error(
            f"you {describe_to_person(error).replace('denied', f'denied {subject}', 1).rstrip('.')}. {_NOT_RUN}"
        )
        return
    if "{reason}" in text and "rule" not in details:
        text = "{message}"
    if "path" not in args:
        text = text.replace("{path} is", "{subject} needs a path")
    closest = to_dict(details.get("closest")).get("first")
    path, subject = str(args.get("path", tool)), str(args.get("command", args.get("path", "")))
    values = {
        "message": describe_to_person(error),
        "tool": to_one_line(tool),
        "path": to_one_line(path),
        "subject": to_one_line(f"{tool} {subject}".rstrip()),
        "rule": details.get("rule", ""),
        "reason": details.get("reason", ""),
        "closest": f" Closest: line {closest}." if closest else "",
    }
    explain = f"handrail policy explain{f' --mode {mode}' if mode else ''}"
    if not args:
        values["explain"] = "handrail policy modes"
    elif "command" in args:
        values["explain"] = f"{explain} -- {shlex.quote(subject)}"
    else:
        values["explain"] = f"{explain} --tool {tool} --args {shlex.quote(encode(args).decode())}"
    if error.code == "INVALID_ARGUMENT" and tool in COMMANDS:
        command = f"handrail help {tool}"
    shown = command.format_map(values | {"path": shlex.quote(path)})
    print_error(f"{text.format_map(values)} {advice}".rstrip() + f" ({error.code})", shown)


def describe_error(error: CommandFailed | HandrailError | ToolError) -> tuple[str, str, int]:
    """The text, the next step if it is known, and the exit code of an error outside of a call."""
    match error:
        case CommandFailed():
            return str(error), error.then, error.code
        case StoreError():
            return *error.describe(), INFRASTRUCTURE
        case ToolError():
            return describe_to_person(error), "", FAILED
        case _:
            return str(error), error.then, USAGE


def print_dialect_error(error: ErrorInfo, dialect: str, *, advice: str = "") -> None:
    """Prints why a call of a dialect failed, in the dialect's words. Its arguments have names of their own."""
    denied = error.code in {"POLICY_DENIED", "PERMISSION_DENIED"}
    command = "handrail policy modes" if denied else f"handrail tools --dialect {dialect}"
    print_error(" ".join((describe_to_person(error), advice)).rstrip(), command)
