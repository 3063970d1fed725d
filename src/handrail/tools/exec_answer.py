"""What exec answers: the output, cleaned and cut to fit, how the command ended, and what that means."""

import re
from typing import Any

from handrail.policy.parse import ParsedCommand
from handrail.process.cleaning import clean_output
from handrail.process.exit_codes import describe_exit_code, find_exit_signal
from handrail.process.ran import CommandResult
from handrail.protocol.errors import ToolError
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.layer.hints import list_overlay_hints
from handrail.sandbox.limits import ResourceLimits
from handrail.tools.commands import RESTRICTED_SECONDS
from handrail.tools.contract import CommandContext, Output
from handrail.tools.exec_spec import MAX_TIMEOUT_MS, ExecData
from handrail.tools.fitted_output import FittedOutput, fit_output
from handrail.tools.outcome import NOTHING, ChangeOutcome

_NETWORK = re.compile(
    "EAI_AGAIN|ENETUNREACH|emporary failure in name resolution|ould not resolve|etwork is unreachable|getaddrinfo"
    "|Name or service not known|failed to (?:download|fetch)|No matching distribution found"
)
"""What programs say that have found no network."""
_REFUSED = re.compile("onnection refused|ECONNREFUSED|ailed to connect")
"""What they say of an address of this machine: in the sandbox nobody listens there."""


def build_exec_output(
    context: CommandContext,
    ran: CommandResult,
    todo: ParsedCommand,
    limits: ResourceLimits,
    sandbox: SandboxUsed,
    blocked: tuple[str, ...] = (),
    outcome: ChangeOutcome = NOTHING,
) -> Output:
    """What the call of a command that ran came to. `blocked`: what it tried to reach and did not, in words; `outcome`:
    what became of what it changed."""
    below = f"{_lines((*blocked, *_hints(ran, sandbox)))}{outcome.lines}"
    told = fit_output(context, ran, len(below))
    data = _data(ran, todo, told)
    most = int(RESTRICTED_SECONDS * 1000) if context.limits.restricted else MAX_TIMEOUT_MS
    stopped = _stopped(ran, limits, _left(todo, sandbox), most)
    more = (outcome.row, _offline(context, todo, sandbox, told.shown))
    changes = outcome.made.changes if outcome.made is not None else None
    return Output(
        summary=_row(_summary(ran, data), outcome.row, *blocked[:1]),
        content=_content(told.shown, ran, data, stopped, more) + below,
        data=data,
        truncated=told.shown != told.text or told.kept is not None,
        meta={"limits": ran.limits, "sandbox": sandbox},
        files_changed=tuple(change.path for change in changes.changes if change.kind != "folder") if changes else (),
        commands_run=(context.facts.command.text if context.facts.command else "",),
        warnings=(*ran.warnings, *outcome.warnings),
        kept=told.kept,
        raw=told.raw,
        failure=stopped or outcome.failure,
        changes=changes,
    )


def _data(ran: CommandResult, todo: ParsedCommand, told: FittedOutput) -> ExecData:
    code = ran.exit_code
    return ExecData(
        output=told.shown,
        exit_code=code,
        duration_ms=round(ran.seconds * 1000, 3),
        signal=None if code is None else find_exit_signal(code, todo.last_program),
        meaning=None if code is None else describe_exit_code(todo.last_program, code),
        stdout=None if ran.errors is None else clean_output(ran.output.head + ran.output.tail),
        stderr=None if ran.errors is None else clean_output(ran.errors.head + ran.errors.tail),
    )


def _offline(context: CommandContext, todo: ParsedCommand, sandbox: SandboxUsed, shown: str) -> str:
    """What to say to a program that has found no network."""
    if sandbox.net == "listed":
        return ""  # it has some; what it may not reach is told
    named = context.facts.command.hosts if context.facts.command and not todo.is_read_only else ()
    if not (_NETWORK.search(shown) or (named and _REFUSED.search(shown))):
        return ""
    listed = f" until network.allow in the settings lists {', '.join(named[:3])}" if named else ""
    return f"commands have no network here, so trying again does not help{listed}"


def _hints(ran: CommandResult, sandbox: SandboxUsed) -> tuple[str, ...]:
    """What to say to a program that failed only since it ran in an overlay."""
    if sandbox.undo != "layer" or not ran.exit_code:
        return ()
    printed = (ran.output, *([ran.errors] if ran.errors is not None else []))
    return list_overlay_hints("".join((one.tail or one.head).decode("utf-8", "replace") for one in printed))


def _lines(blocked: tuple[str, ...]) -> str:
    return "".join(f"[{one}]\n" for one in blocked)


def _content(shown: str, ran: CommandResult, data: ExecData, stopped: ToolError | None, more: tuple[str, str]) -> str:
    text = shown if not shown or shown.endswith("\n") else f"{shown}\n"
    changed, offline = more
    if stopped is not None:
        return f"{text}[{_row(stopped.message, changed)}]\n"
    if data.exit_code == 0:
        return f"{text}[{_row(_exit(data), changed)}]\n" if changed else text or "(no output)\n"
    return f"{text}[{_row(_exit(data), _limits(ran), changed, offline)}]\n"


def _row(sentence: str, *more: str) -> str:
    """All in one row: no full stop before a semicolon."""
    rest = [one for one in more if one]
    return "; ".join((sentence.removesuffix("."), *rest)) if rest else sentence


def _exit(data: ExecData) -> str:
    return f"exit code {data.exit_code}" + (f": {data.meaning}" if data.meaning else "")


def _limits(ran: CommandResult) -> str:
    return f"limit: {', '.join(ran.limits)}" if ran.limits else ""


def _summary(ran: CommandResult, data: ExecData) -> str:
    return _exit(data) if ran.ending == "exit" else _row(f"stopped after {ran.seconds:.1f} s", _limits(ran))


def _left(todo: ParsedCommand, sandbox: SandboxUsed) -> str:
    """What became of what it had changed by the time it was stopped."""
    if todo.is_read_only:
        return "Nothing was changed."
    if sandbox.undo == "layer":
        return "What it had changed by then was dropped."
    return "What it had changed by then stays changed."


def _stopped(ran: CommandResult, limits: ResourceLimits, left: str, most: int) -> ToolError | None:
    if ran.ending == "exit":
        return None
    details: dict[str, Any] = {"limits": list(ran.limits)}
    if ran.ending == "cancelled":
        return ToolError("CANCELLED", f"The call was cancelled; the command is gone with all its children. {left}")
    if ran.ending == "timeout":
        seconds = f"{limits.seconds:g}"
        more = f"Raise timeoutMs (max {most}) if it needs longer."
        how = more if limits.seconds * 1000 < most else "No command may take longer here."
        return ToolError("TIMEOUT", f"Stopped after {seconds} s with all its children. {left} {how}", details=details)
    what = {
        "memory": f"more memory than {limits.memory >> 20:,} MB (limits.memory)",
        "processes": f"more processes than {limits.processes:,} (limits.processes)",
        "disk": f"more disk than {limits.disk >> 20:,} MB, which nobody approved (limits.preview)",
    }[ran.ending]
    message = f"Stopped with all its children: it used {what}. {left}"
    return ToolError("LIMIT_EXCEEDED", message, details=details)
