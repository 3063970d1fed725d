"""What exec answers: the output, cleaned and cut to fit, how the command ended, and what that means."""

import contextlib
import os
import re
from typing import Any

import msgspec

from handrail.policy.confinement import Runnable
from handrail.process.cleaning import cleaned
from handrail.process.exit_codes import meaning_of, signal_of
from handrail.process.ran import Printed, Ran
from handrail.protocol.error import ToolError
from handrail.protocol.result import SandboxUsed
from handrail.sandbox.confinement import Confinement
from handrail.tools.contract import Context, Kept, Output
from handrail.tools.exec import MOST_MILLISECONDS, ExecData
from handrail.tools.preview import both_ends, preview_of, reference_to

_BYTES_A_CHARACTER = 4
_NETWORK = re.compile(
    "EAI_AGAIN|ENETUNREACH|emporary failure in name resolution|ould not resolve|etwork is unreachable|getaddrinfo"
    "|Name or service not known|failed to (?:download|fetch)|No matching distribution found"
)
"""What programs say that have found no network."""
_REFUSED = re.compile("onnection refused|ECONNREFUSED|ailed to connect")
"""What they say of an address of this machine: in the sandbox nobody listens there."""
_ROOM_FOR_ENDING = 300
"""Characters of the result that say how it ended."""


def answer_of(
    context: Context,
    ran: Ran,
    todo: Runnable,
    confinement: Confinement,
    sandbox: SandboxUsed,
    blocked: tuple[str, ...] = (),
) -> Output:
    """What the call of a command that ran came to; `blocked`: what it tried to reach and did not, in words."""
    told = _told(context, ran)
    data = _data(ran, todo, told)
    failure = _failure(ran, confinement)
    return Output(
        summary=_then(_summary(ran, data), f"; {blocked[0]}" if blocked else ""),
        content=_content(told.shown, ran, data, failure, _offline(context, confinement, told.shown)) + _lines(blocked),
        data=data,
        truncated=told.shown != told.text or told.kept is not None,
        meta={"limits": ran.limits, "sandbox": sandbox},
        commands_run=(context.facts.command.text if context.facts.command else "",),
        warnings=ran.warnings,
        kept=told.kept,
        raw=told.raw,
        failure=failure,
    )


class _Told(msgspec.Struct, frozen=True):
    """What was printed, in what a result has room for."""

    text: str
    shown: str
    kept: Kept | None
    raw: bytes | None


def _told(context: Context, ran: Ran) -> _Told:
    printed = ran.output if ran.errors is None else _joined(ran.output, ran.errors)
    budget = max(1_000, context.limits.characters - _ROOM_FOR_ENDING)
    reference = reference_to(context.tool_call_id) if context.limits.offloads else ""
    if printed.tail or printed.lost or printed.spilled:
        return _told_in_part(printed, budget, reference)
    text = cleaned(printed.head)
    raw = None if not reference or text.encode() == printed.head else printed.head
    if len(text) <= budget:
        return _Told(text, text, None, raw)
    if not reference:
        return _Told(text, both_ends(text, budget, "\n… {} characters are not shown …\n"), None, None)
    return _Told(text, preview_of(text, budget, reference), Kept(text=text, characters=len(text)), raw)


def _told_in_part(printed: Printed, budget: int, reference: str) -> _Told:
    """The beginning and the end of what memory did not hold; the file has the rest, or most of it."""
    room = budget * _BYTES_A_CHARACTER  # no more than that can be shown, and cleaning megabytes takes its time
    head, tail = cleaned(printed.head[:room]), cleaned(_from_character(printed.tail[-room:]))
    kept = _kept(printed) if reference else None
    if kept is None and printed.spilled is not None:
        with contextlib.suppress(OSError):
            os.unlink(printed.spilled)
    all_of_it = "all of it" if not printed.lost else "most of it"
    where = f"; read {reference} for {all_of_it}" if kept is not None else ""
    note = f"\n… only the beginning and the end of {printed.total:,} bytes are shown{where} …\n"
    whole = f"{head}{note}{tail}"
    return _Told(whole, whole if len(whole) <= budget else both_ends(head + tail, budget, note), kept, None)


def _kept(printed: Printed) -> Kept | None:
    if printed.spilled is None:
        return None
    behind = printed.tail[max(0, len(printed.tail) - (printed.total - printed.spilled_bytes)) :]
    if printed.total <= printed.spilled_bytes:
        behind = b""
    elif printed.lost:
        behind = f"\n… {printed.lost:,} bytes were not kept …\n".encode() + behind
    return Kept(file=printed.spilled, tail=behind)


def _from_character(data: bytes) -> bytes:
    """Without the rest of a character that the cut went through."""
    cut = next((n for n in range(min(4, len(data))) if data[n] & 0xC0 != 0x80), 0)
    return data[cut:]


def _joined(output: Printed, errors: Printed) -> Printed:
    """Two streams as one, where each is taken in apart: first the one, then the other."""
    streams = (output, errors)
    for one in streams:
        if one.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(one.spilled)
    head = b"".join(part for one in streams for part in (one.head, one.tail))
    total = output.total + errors.total
    return Printed(head=head, total=total, lost=total - len(head))


def _data(ran: Ran, todo: Runnable, told: _Told) -> ExecData:
    code = ran.exit_code
    return ExecData(
        output=told.shown,
        exit_code=code,
        duration_ms=round(ran.seconds * 1000, 3),
        signal=None if code is None else signal_of(code),
        meaning=None if code is None else meaning_of(todo.last, code),
        stdout=None if ran.errors is None else cleaned(ran.output.head + ran.output.tail),
        stderr=None if ran.errors is None else cleaned(ran.errors.head + ran.errors.tail),
    )


def _offline(context: Context, confinement: Confinement, shown: str) -> str:
    """What to say to a program that has found no network."""
    if confinement.proxy:
        return ""  # it has some; what it may not reach is told
    named = context.facts.command.hosts if context.facts.command and not confinement.only_looks else ()
    if not (_NETWORK.search(shown) or (named and _REFUSED.search(shown))):
        return ""
    listed = f" until network.allow in the settings lists {', '.join(named[:3])}" if named else ""
    return f"; commands have no network here, so trying again does not help{listed}"


def _lines(blocked: tuple[str, ...]) -> str:
    return "".join(f"[{one}]\n" for one in blocked)


def _content(shown: str, ran: Ran, data: ExecData, failure: ToolError | None, offline: str) -> str:
    text = shown if not shown or shown.endswith("\n") else f"{shown}\n"
    if failure is not None:
        return f"{text}[{failure.message}]\n"
    if data.exit_code == 0:
        return text or "(no output)\n"
    return f"{text}[{_then(_exit(data), f'{_limits(ran)}{offline}')}]\n"


def _then(sentence: str, more: str) -> str:
    """Both in one row: no full stop before a semicolon."""
    return f"{sentence.removesuffix('.')}{more}" if more else sentence


def _exit(data: ExecData) -> str:
    return f"exit code {data.exit_code}" + (f": {data.meaning}" if data.meaning else "")


def _limits(ran: Ran) -> str:
    return f"; limit: {', '.join(ran.limits)}" if ran.limits else ""


def _summary(ran: Ran, data: ExecData) -> str:
    return _exit(data) if ran.ending == "exit" else f"stopped after {ran.seconds:.1f} s{_limits(ran)}"


def _failure(ran: Ran, confinement: Confinement) -> ToolError | None:
    if ran.ending == "exit":
        return None
    left = "Nothing was changed." if confinement.only_looks else "What it had changed by then stays changed."
    details: dict[str, Any] = {"limits": list(ran.limits)}
    if ran.ending == "cancelled":
        return ToolError("CANCELLED", f"The call was cancelled; the command is gone with all its children. {left}")
    if ran.ending == "timeout":
        seconds = f"{confinement.limits.seconds:g}"
        how = f"Raise timeoutMs (max {MOST_MILLISECONDS}) if it needs longer."
        return ToolError("TIMEOUT", f"Stopped after {seconds} s with all its children. {left} {how}", details=details)
    limits = confinement.limits
    what = {
        "memory": f"more memory than {limits.memory >> 20:,} MB (limits.memory)",
        "processes": f"more processes than {limits.processes:,} (limits.processes)",
    }[ran.ending]
    message = f"Stopped with all its children: it used {what}. {left}"
    return ToolError("LIMIT_EXCEEDED", message, details=details)
