"""The result of a command for the model."""

import contextlib
import os
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.changes.recorder import RecordedChangeSet
from handrail.policy.changeset import collect_moved_paths, is_deletion, is_new_object, sort_by_harm
from handrail.policy.names import is_git_control_name
from handrail.policy.parse import ParsedCommand
from handrail.process.output import clean_output
from handrail.process.result import CapturedOutput, CommandResult, describe_exit_code, find_exit_signal
from handrail.protocol.changes import Change, ChangeSet
from handrail.protocol.decisions import CommandFact
from handrail.protocol.errors import ToolError
from handrail.protocol.results import SandboxUsed
from handrail.sandbox.overlay.overlay import list_overlay_hints
from handrail.sandbox.profile import ResourceLimits, SandboxProfile
from handrail.tools.exec.environment import RESTRICTED_SECONDS, CommandEnvironment
from handrail.tools.exec.run import require_command_fact
from handrail.tools.exec.spec import MAX_TIMEOUT_MS, ExecData
from handrail.tools.text import build_output_reference, truncate_middle, truncate_with_reference
from handrail.tools.tool import CommandContext, Context, OffloadedText, Output
from handrail.workspace.errors import clip_path

# § [tools.fitted_output] What a command printed, cut to what a result has room for.

_BYTES_A_CHARACTER = 4
_ENDING_ROOM_CHARS = 300
"""Characters of the result that say how it ended."""


class FittedOutput(msgspec.Struct, frozen=True):
    """What was printed, in what a result has room for."""

    text: str
    shown: str
    kept: OffloadedText | None
    """All of it, where that is more than is shown."""
    raw: bytes | None
    """The very bytes, where the text is not the same."""


def fit_output(context: Context, ran: CommandResult, below: int) -> FittedOutput:
    """What there is room for; `below`: characters of the result that come after it."""
    printed = ran.output if ran.errors is None else _joined(ran.output, ran.errors)
    budget = max(1_000, context.limits.characters - _ENDING_ROOM_CHARS - below)
    reference = build_output_reference(context.tool_call_id) if context.limits.offloads else ""
    if printed.tail or printed.lost or printed.spilled:
        return _in_part(printed, budget, reference)
    text = clean_output(printed.head)
    raw = None if not reference or text.encode() == printed.head else printed.head
    if len(text) <= budget:
        return FittedOutput(text, text, None, raw)
    if not reference:
        return FittedOutput(text, truncate_middle(text, budget, "\n… {} characters are not shown …\n"), None, None)
    return FittedOutput(
        text, truncate_with_reference(text, budget, reference), OffloadedText(text=text, characters=len(text)), raw
    )


def _in_part(printed: CapturedOutput, budget: int, reference: str) -> FittedOutput:
    """The beginning and the end of what memory did not hold; the file has the rest, or most of it."""
    room = budget * _BYTES_A_CHARACTER  # no more than that can be shown, and cleaning megabytes takes its time
    head, tail = clean_output(printed.head[:room]), clean_output(_from_character(printed.tail[-room:]))
    kept = _kept(printed) if reference else None
    if kept is None and printed.spilled is not None:
        with contextlib.suppress(OSError):
            os.unlink(printed.spilled)
    all_of_it = "all of it" if not printed.lost else "most of it"
    where = f"; read {reference} for {all_of_it}" if kept is not None else ""
    note = f"\n… only the beginning and the end of {printed.total:,} bytes are shown{where} …\n"
    whole = f"{head}{note}{tail}"
    return FittedOutput(
        whole, whole if len(whole) <= budget else truncate_middle(head + tail, budget, note), kept, None
    )


def _kept(printed: CapturedOutput) -> OffloadedText | None:
    if printed.spilled is None:
        return None
    behind = printed.tail[max(0, len(printed.tail) - (printed.total - printed.spilled_bytes)) :]
    if printed.total <= printed.spilled_bytes:
        behind = b""
    elif printed.lost:
        behind = f"\n… {printed.lost:,} bytes were not kept …\n".encode() + behind
    return OffloadedText(file=printed.spilled, tail=behind)


def _from_character(data: bytes) -> bytes:
    """Without the rest of a character that the cut went through."""
    cut = next((n for n in range(min(4, len(data))) if data[n] & 0xC0 != 0x80), 0)
    return data[cut:]


def _joined(output: CapturedOutput, errors: CapturedOutput) -> CapturedOutput:
    """Two streams as one, where each is taken in apart: first the one, then the other."""
    streams = (output, errors)
    for one in streams:
        if one.spilled is not None:
            with contextlib.suppress(OSError):
                os.unlink(one.spilled)
    head = b"".join(part for one in streams for part in (one.head, one.tail))
    total = output.total + errors.total
    return CapturedOutput(head=head, total=total, lost=total - len(head))


# § [tools.changed_words] What a command changed, in words: a few for the row that says how it ended, and the files
# § by their names.

_MAX_NAMED_FILES = 20
_REPOSITORY = ".git"


def render_change_row(made: ChangeSet) -> str:
    """`changed 4 files (1 deleted) and .git; undo 15`."""
    files, repositories = _sorted_out(made.changes)
    deleted = sum(map(is_deletion, files))
    parts = [f"{_files(len(files))}{f' ({deleted} deleted)' if deleted else ''}"] if files else []
    parts += [_listed(repositories)] if repositories else []
    undo = f"; undo {made.number}" if made.undoable else "; undo does not cover it"
    return f"changed {' and '.join(parts) or _folders(made.changes)}{undo}"


def render_change_list(changes: Sequence[Change]) -> str:
    """The files, each in a line of its own, the most harmful first; of many only those."""
    files, repositories = _sorted_out(sort_by_harm(tuple(changes)))
    lines = [_line(change) for change in files[:_MAX_NAMED_FILES]]
    if len(files) > _MAX_NAMED_FILES:
        lines.append(f"… and {len(files) - _MAX_NAMED_FILES:,} more files")
    lines += [f"{clip_path(folder)}: {describe_git_files(count)}" for folder, count in repositories.items()]
    return "".join(f"  {line}\n" for line in lines)


def find_repository(change: Change) -> str | None:
    """The repository whose everyday work a change is: to people that is one thing. What steers git is none of that."""
    before, found, within = f"/{change.path}".partition(f"/{_REPOSITORY}/")
    if found and (is_new_object(change) or not is_git_control_name(within.partition("/")[0])):
        return f"{before}/{_REPOSITORY}"[1:]
    return None


def describe_git_files(count: int) -> str:
    """So many files that are nobody's but git's."""
    return f"{_files(count)} of git's own"


def _sorted_out(changes: Sequence[Change]) -> tuple[list[Change], dict[str, int]]:
    """Files, and how many there are in each repository."""
    files: list[Change] = []
    moved = collect_moved_paths(tuple(changes))
    repositories: dict[str, int] = {}
    for change in changes:
        if folder := find_repository(change):
            repositories[folder] = repositories.get(folder, 0) + (change.kind != "folder")
        elif change.kind != "folder" and not (change.action == "deleted" and change.path in moved):
            files.append(change)
    return files, repositories


def _line(change: Change) -> str:
    came_from = f" (was {clip_path(change.renamed_from)})" if change.renamed_from else ""
    words = {"mode": "changed the mode of", "link": "linked"}.get(change.action, change.action)
    counts = [f"+{change.added}" if change.added else "", f"-{change.removed}" if change.removed else ""]
    lines = " ".join(count for count in counts if count)
    return f"{words} {clip_path(change.path)}{came_from}{f' {lines}' if lines else ''}"


def _files(count: int) -> str:
    return f"{count:,} file{'s' if count != 1 else ''}"


def _listed(repositories: dict[str, int]) -> str:
    first, *more = repositories
    return f"{clip_path(first)} and {len(more)} more repositories" if more else clip_path(first)


def _folders(changes: Sequence[Change]) -> str:
    return f"{len(changes):,} folder{'s' if len(changes) != 1 else ''}"


# § [tools.outcome] What became of what a command changed.


class ChangeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """It was made, or it was dropped, or there was nothing of it."""

    made: RecordedChangeSet | None = None
    failure: ToolError | None = None
    """Why nothing of it was committed."""
    dropped: bool = False
    """Somebody wanted what it printed and nothing else, and there was something else."""
    unkept: tuple[str, ...] = ()
    """What cannot be committed, in words: a socket, a pipe."""

    @property
    def row(self) -> str:
        """For the row that says how the command ended; empty where nothing came of it."""
        if self.made is not None:
            return render_change_row(self.made.changes)
        if self.dropped:
            return "what it changed was dropped, as the person said"
        return "what it changed was dropped" if self.failure is not None else ""

    @property
    def lines(self) -> str:
        """What there is to tell below that row."""
        if self.failure is not None:
            return f"[{self.failure.message}]\n"
        files = render_change_list(self.made.changes.changes) if self.made is not None else ""
        return files + "".join(f"[not kept: {one}]\n" for one in self.unkept)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is not as it should be."""
        problem = self.made.problem if self.made is not None else None
        return (*(f"Not kept: {one}." for one in self.unkept), *([problem] if problem else []))


NOTHING = ChangeOutcome()


# § [tools.exec_answer] What exec answers: the output, cleaned and cut to fit, how the command ended, and what that
# § means.

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


# § [tools.sandbox_words] How a command was confined, as its result tells it.

_GOES_ON = "it may go on after its call, on the real tree"


def build_sandbox_used(context: CommandContext, profile: SandboxProfile, commands: CommandEnvironment) -> SandboxUsed:
    """Of a command that ran on the real tree."""
    used = _used(profile, commands)
    if profile.is_read_only and used.net != "open":
        return replace(used, undo="read-only")
    return replace(used, no_layer=_why_no_layer(context, require_command_fact(context), commands))


def _used(profile: SandboxProfile, commands: CommandEnvironment) -> SandboxUsed:
    """Whatever became of what it changed."""
    report = commands.sandbox.report()
    confined = report.tier > 0
    return SandboxUsed(
        tier=min(report.tier, 2),
        net="listed" if profile.proxy else "none" if confined else "open",
        hosts=profile.listed,
        undo="none",
        hidden=len(profile.hidden_files) + len(profile.hidden_folders) if confined else 0,
        gaps=report.gaps,
        per_process=report.per_process,
        tree=report.tree,
    )


def build_overlay_sandbox_used(
    profile: SandboxProfile, commands: CommandEnvironment, reached: tuple[str, ...]
) -> SandboxUsed:
    """Of a command that ran in an overlay; `reached`: the hosts that it told something."""
    sent = (f"what was sent to {', '.join(reached)}",) if reached else ()
    used = _used(profile, commands)
    gaps = (*used.gaps, *commands.sandbox.list_overlay_gaps(profile.writable))
    return replace(used, tier=3, undo="layer", not_covered=sent, gaps=gaps)


def _why_no_layer(context: CommandContext, fact: CommandFact, commands: CommandEnvironment) -> str:
    if fact.background:
        return _GOES_ON
    return commands.why_no_layer(context.workspace.roots) or "it was decided for a sandbox without one"
