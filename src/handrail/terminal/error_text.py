"""The form of errors for people: the failure, then one next step."""

import re
import shlex

from handrail.protocol.errors import ErrorInfo, ToolError
from handrail.protocol.text import to_one_line
from handrail.protocol.wire import encode, to_dict
from handrail.terminal.call_lines import describe_to_person
from handrail.terminal.slash_hints import to_slash_commands
from handrail.terminal.style import Paint, wrap_line

_CAPITAL = re.compile(r"(A|An|Another|Change|Command|Every|It|No|Nothing|Only|Rule|Stopped|That|The|There|This|You)\b")
"""The first word of a message for models. Others may be names."""
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


def render_error(text: str, then: str, paint: Paint, columns: int | None, *, in_session: bool) -> list[str]:
    """The rows of an error, which is escaped. `then`: the next step. `in_session`: as slash commands."""
    if in_session:
        text, then = to_slash_commands(text), to_slash_commands(then)
    if _CAPITAL.match(text):
        text = text[0].lower() + text[1:]
    if then:
        text = re.sub(rf" `{re.escape(then)}` [^.]*\.", "", text)
    head, *more = text.split("\n")
    lines = [f"{paint('error:', 'failed')} {head}", *more] if text else []
    rows = [row for line in lines for row in wrap_line(line, columns, 7).splitlines()]
    # The next step stays in one line, so that a command can be copied.
    return [*rows, f"{paint('next:', 'running')} {then}"] if then else rows


def describe_turn_failure(message: str) -> str:
    """The text of an error that ended a turn. The session has all of the turn."""
    line = to_one_line(message)
    return f"{line if line.endswith(('.', '!', '?', '…')) else f'{line}.'} The session is kept."


def describe_tool_error(
    error: ErrorInfo | ToolError, tool: str, arguments: object = None, *, advice: str = "", mode: str | None = None
) -> tuple[str, str]:
    """Why a call failed, and the next command. `advice`: what would let it run. `mode`: the one of --mode."""
    args, details = to_dict(arguments), to_dict(error.details)
    text, command = _TEXTS[error.code]
    if details.get("answer") == "deny":
        subject = to_one_line(str(args.get("command", f"{tool} {args.get('path', '')}".rstrip())))
        denied = describe_to_person(error).replace("denied", f"denied {subject}", 1).rstrip(".")
        return f"you {denied}. {_NOT_RUN}", ""
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
    shown = command.format_map(values | {"path": shlex.quote(path)})
    return f"{text.format_map(values)} {advice}".rstrip() + f" ({error.code})", shown
