"""The page of a receipt, in Markdown that also reads as plain text."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime

from handrail.protocol.changes import Change
from handrail.protocol.permissions import AnswerKind
from handrail.protocol.receipt import Approver, Receipt, ReceiptCall
from handrail.protocol.text import escape_exact_line, format_count
from handrail.terminal.call_lines import describe_subject

_HASH_CHARS = 12
_ANSWERS: dict[AnswerKind, str] = {
    "session": ", for the session",
    "workspace": ", for the workspace",
    "edits": ", with plain edits in the session",
    "output": ", only its output",
}
_BY: dict[Approver, str] = {
    "person": "a person",
    "grant": "a grant",
    "preview": "its preview, which changed nothing or only caches",
    "policy": "policy",
    "expiry": "expiry",
}
_CONTENTS = """\
This receipt has prompts, commands, paths and reasons in full. It has no contents of files, no output, and of other
arguments only what the audit keeps: numbers, names and the lengths of texts."""
_OPEN = """\
The session was still open. Calls after event {} are not in this receipt."""


def render_page(receipt: Receipt) -> str:
    """Words of the model, of files and of people stand in code, so that they cannot pass for handrail's."""
    calls = receipt.calls
    sections = {
        "Asked": _list_prompts(receipt),
        f"Done: {format_count(len(calls), 'call')}": _list_calls(calls),
        "Changed": [line for call in calls for line in _list_changes(call)],
        "Not covered by undo": _list_gaps(calls),
        "Hosts": _list_hosts(receipt),
        "Programs": _list_programs(calls),
        "Audit": _list_hashes(receipt),
    }
    head = [
        f"# Receipt of session {_code(receipt.session_id)}",
        "",
        f"Workspace {_code(receipt.workspace)}, {_format_time(receipt.made)}, handrail {receipt.version}.",
        *([_OPEN.format(receipt.events)] if receipt.state in {"running", "background", "waiting"} else []),
        "",
        _CONTENTS,
    ]
    body = [part for title, lines in sections.items() for part in ("", f"## {title}", "", *(lines or ["None."]))]
    return "\n".join([*head, *body, ""])


def _list_prompts(receipt: Receipt) -> list[str]:
    lines: list[str] = []
    for prompt in receipt.prompts:
        text = [escape_exact_line(line) for line in prompt.text.split("\n")]
        fence = _fence("\n".join(text), 3)
        lines += ["", f"{_format_time(prompt.time)}:", "", f"{fence}text", *text, fence]
    return lines[1:]


def _list_calls(calls: Iterable[ReceiptCall]) -> list[str]:
    lines = [f"- {_format_time(call.time)} {_describe_call(call)}: {_describe_decision(call)}" for call in calls]
    for title, refused in (("Approved", False), ("Rejected", True)):
        names = [_BY[call.by].partition(",")[0] for call in calls if call.by and _is_refused(call) == refused]
        if names:
            parts = ", ".join(f"{number} by {name}" for name, number in Counter(names).most_common())
            lines += ["", f"{title}: {parts}."]
    return lines


def _describe_call(call: ReceiptCall) -> str:
    label = f"{call.name} ({call.server})" if call.server else call.name
    subject = call.command or describe_subject(call.name, call.args)
    return f"{_code(label)} {_code(subject)}" if subject else _code(label)


def _describe_decision(call: ReceiptCall) -> str:
    if call.by is None:
        return "not decided"
    who = f"rule {_code(call.rule)}, mode {call.mode}" if call.by == "policy" and call.mode else _code(call.rule)
    done = "rejected" if _is_refused(call) else "approved"
    kind = _ANSWERS.get(call.answer.kind, "") if call.answer else ""
    reason = f", because {_code(call.answer.reason)}" if call.answer and call.answer.reason else ""
    edited = ", who changed the command" if call.edited else ""
    end = "not finished" if not call.finished else "ok" if call.ok else call.error_code or "failed"
    return f"{done} by {_BY[call.by]}{edited}{kind}{reason} ({who}); {end}"


def _is_refused(call: ReceiptCall) -> bool:
    return call.answer.kind == "deny" if call.answer else call.decision == "deny"


def _list_changes(call: ReceiptCall) -> Iterator[str]:
    if call.change is None:
        return
    number = f"Undo {call.change.number}" if call.change.number is not None else "No undo number"
    undone = f", undone by {call.undone_by}" if call.undone_by is not None else ""
    undoes = f", undoes {', '.join(map(str, call.change.undoes))}" if call.change.undoes else ""
    yield f"- {number}{undoes}{undone}, {_describe_call(call)}"
    for change in call.change.changes:
        yield f"    - {_describe_change(change)}"


def _describe_change(change: Change) -> str:
    hashes = " → ".join(_shorten(one) for one in (change.before, change.after))
    origin = f" from {_code(change.renamed_from)}" if change.renamed_from else ""
    return f"{change.action} {_code(change.path)}{origin}: {hashes}"


def _list_gaps(calls: Iterable[ReceiptCall]) -> list[str]:
    lines: list[str] = []
    for call in calls:
        sandbox, change = call.sandbox, call.change
        gaps = dict.fromkeys([*(change.not_covered if change else ()), *(sandbox.not_covered if sandbox else ())])
        if sandbox is not None and sandbox.undo == "none":
            gaps["its changes, which are not listed"] = None
        if call.server is not None and call.finished and not _is_refused(call):
            gaps["its effects on the server"] = None
        lines += [f"- {_describe_call(call)}: {_code(gap)}" for gap in gaps]
    return lines


def _list_hosts(receipt: Receipt) -> list[str]:
    lines = [
        f"- {_code(one.host)}: reached {format_count(one.reached, 'time')}, blocked {format_count(one.blocked, 'time')}"
        for one in receipt.hosts
    ]
    unseen = [call for call in receipt.calls if call.sandbox is not None and call.sandbox.net == "open"]
    return lines + [f"- {_describe_call(call)} had the whole network: its hosts are not known" for call in unseen]


def _list_programs(calls: Iterable[ReceiptCall]) -> list[str]:
    counts = Counter(program for call in calls for program in call.programs)
    return [f"- {_code(program)}: {format_count(number, 'call')}" for program, number in counts.most_common()]


def _list_hashes(receipt: Receipt) -> list[str]:
    records = [(call, call.record) for call in receipt.calls if call.record is not None]
    lines = [f"- record {one.seq} {_code(one.hash)} {_describe_call(call)}" for call, one in records]
    if (missing := sum(call.finished for call in receipt.calls) - len(records)) > 0:
        lines.append(f"- {format_count(missing, 'finished call')} without a record")
    if receipt.audit is not None:
        lines += ["", f"Head of the chain: record {receipt.audit.head.seq} {_code(receipt.audit.head.hash)}"]
    return lines


def _code(text: str) -> str:
    """A text as code in one line, with a fence that it does not contain."""
    line = escape_exact_line(text)
    fence = _fence(line, 1)
    blank = " " if line.startswith("`") or line.endswith("`") or not line else ""
    return f"{fence}{blank}{line}{blank}{fence}"


def _fence(text: str, least: int) -> str:
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def _shorten(digest: str | None) -> str:
    return _code(digest[:_HASH_CHARS]) if digest else "none"


def _format_time(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"
