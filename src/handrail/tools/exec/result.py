"""The result of a command for the model."""

import errno
import os
import re
import sqlite3
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from handrail.changes.recorder import RecordedChangeSet
from handrail.policy.changeset import collect_moved_paths, find_repository, is_deletion, sort_by_harm
from handrail.process.output import clean_output
from handrail.process.result import CapturedOutput, CommandResult, describe_exit_code, find_exit_signal
from handrail.protocol.changes import Change, ChangeSet
from handrail.protocol.errors import StoreError, ToolError
from handrail.protocol.results import SandboxUsed
from handrail.protocol.text import format_count, truncate_middle
from handrail.sandbox.overlay.overlay import list_overlay_hints
from handrail.sandbox.profile import MEGABYTE, SandboxProfile
from handrail.store.conversation_state import build_output_reference, truncate_with_reference
from handrail.tools.command_environment import RESTRICTED_SECONDS
from handrail.tools.exec.run import CommandRun, FinishedRun, discard_output_on_error, remove_spill_file
from handrail.tools.exec.spec import MAX_TIMEOUT_MS, ExecData
from handrail.tools.tool import Context, OffloadedText, Output
from handrail.workspace.roots import clip_path

_CONNECTION_REFUSED = re.compile("onnection refused|ECONNREFUSED|ailed to connect")
"""What programs print about an address at which nothing listens."""


class ChangeOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the changes of a command."""

    made: RecordedChangeSet | None = None
    failure: ToolError | None = None
    dropped: bool = False
    """Whether the person wanted only the output, and there were changes."""
    unkept: tuple[str, ...] = ()
    """What cannot be committed, in words: a socket, a pipe."""

    @property
    def changes(self) -> tuple[Change, ...]:
        return self.made.changes.changes if self.made is not None else ()

    @property
    def row(self) -> str:
        """The part of the last row about the changes. Empty if there are none."""
        if self.made is not None:
            return render_change_row(self.made.changes)
        if self.dropped:
            return "its changes were dropped: only its output was approved"
        return "its changes were dropped" if self.failure is not None else ""

    @property
    def lines(self) -> str:
        """The lines below that row."""
        if self.failure is not None:
            return f"[{self.failure.message}]\n"
        files = _render_change_list(self.changes) if self.changes else ""
        return files + "".join(f"[not kept: {one}]\n" for one in self.unkept)

    @property
    def warnings(self) -> tuple[str, ...]:
        problem = self.made.problem if self.made is not None else None
        return (*(f"Not kept: {one}." for one in self.unkept), *([problem] if problem else []))


_NO_OUTCOME = ChangeOutcome()


def build_exec_output(
    run: CommandRun,
    result: CommandResult,
    sandbox: SandboxUsed,
    blocked: tuple[str, ...] = (),
    outcome: ChangeOutcome = _NO_OUTCOME,
) -> Output:
    """The output of a call whose command ran. `blocked`: sentences about the hosts that it did not reach."""
    with discard_output_on_error(result):
        notes = (*blocked, *_list_hints(result, sandbox))
        below = "".join(f"[{note}]\n" for note in notes) + outcome.lines
        fitted = _fit_output(run.context, result, len(below))
        data = _build_data(run, result, fitted)
        stopped = _build_stop_error(run, result, sandbox)
        output = Output(
            summary=_join_row(_describe_end(result, data), outcome.row, *blocked[:1]),
            content=_render_content(run, result, data, sandbox, stopped, outcome.row) + below,
            data=data,
            truncated=fitted.is_truncated,
            meta={"limits": result.limits, "sandbox": sandbox},
            files_changed=tuple(change.path for change in outcome.changes if change.kind != "folder"),
            commands_run=(run.fact.text,),
            warnings=(*result.warnings, *outcome.warnings),
            kept=fitted.kept,
            raw=fitted.raw,
            failure=stopped or outcome.failure,
            changes=outcome.made.changes if outcome.made is not None else None,
        )
        return output if run.render is None else run.render(output, result)


def build_real_tree_output(run: CommandRun, finished: FinishedRun) -> Output:
    """The output of a call whose command ran on the real tree, without a snapshot."""
    with discard_output_on_error(finished.result):
        return build_exec_output(run, finished.result, build_sandbox_used(run, finished.profile), finished.blocked)


def _build_data(run: CommandRun, result: CommandResult, fitted: "_FittedOutput") -> ExecData:
    code = result.exit_code
    program = run.command.last_program if code else None
    return ExecData(
        output=fitted.shown,
        exit_code=code,
        duration_ms=round(result.seconds * 1000, 3),
        signal=find_exit_signal(code, program) if code else None,
        meaning=describe_exit_code(program, code) if code else None,
        stdout=None if result.errors is None else clean_output(result.output.head + result.output.tail),
        stderr=None if result.errors is None else clean_output(result.errors.head + result.errors.tail),
    )


def _render_content(
    run: CommandRun,
    result: CommandResult,
    data: ExecData,
    sandbox: SandboxUsed,
    stopped: ToolError | None,
    changed: str,
) -> str:
    """The output, and a row that says how the command ended."""
    text = data.output if not data.output or data.output.endswith("\n") else f"{data.output}\n"
    if stopped is not None:
        return f"{text}[{_join_row(stopped.message, changed)}]\n"
    exit_row = describe_exit(data.exit_code, data.meaning)
    if data.exit_code == 0:
        return f"{text}[{_join_row(exit_row, changed)}]\n" if changed else text or "(no output)\n"
    offline = _explain_missing_network(run, result, sandbox, data.output)
    return f"{text}[{_join_row(exit_row, _describe_limits(result), changed, offline)}]\n"


def _join_row(sentence: str, *more: str) -> str:
    """All in one row: no full stop before a semicolon."""
    rest = [one for one in more if one]
    return "; ".join((sentence.removesuffix("."), *rest)) if rest else sentence


def _describe_end(result: CommandResult, data: ExecData) -> str:
    if result.ending == "exit":
        return describe_exit(data.exit_code, data.meaning)
    return _join_row(f"stopped after {result.seconds:.1f} s", _describe_limits(result))


def describe_exit(code: int | None, meaning: str | None) -> str:
    return f"exit code {code}" + (f": {meaning}" if meaning else "")


def _describe_limits(result: CommandResult) -> str:
    return f"limit: {', '.join(result.limits)}" if result.limits else ""


def _explain_missing_network(run: CommandRun, result: CommandResult, sandbox: SandboxUsed, output: str) -> str:
    """Advice if the program tried a connection. Words of its output prove none."""
    if sandbox.net == "listed":
        return ""  # the blocked hosts are in the result
    if not result.tried_network:
        is_refused = run.fact.loopback and _CONNECTION_REFUSED.search(output)
        return "localhost is the network of this session, not of this machine" if is_refused else ""
    hosts = run.fact.hosts if not run.is_proven else ()
    until = f" until network.allow in the settings lists {', '.join(hosts[:3])}" if hosts else ""
    return f"commands have no network here, so trying again does not help{until}"


def is_refused(result: CommandResult) -> bool:
    """Whether a command seems to have failed because nothing listened on a loopback address."""
    return bool(result.exit_code) and _CONNECTION_REFUSED.search(clean_output(result.output.head)) is not None


def _list_hints(result: CommandResult, sandbox: SandboxUsed) -> tuple[str, ...]:
    """Advice if the program seems to have failed because of its overlay."""
    if sandbox.undo != "layer" or not result.exit_code:
        return ()
    outputs = (result.output, *([result.errors] if result.errors is not None else []))
    return list_overlay_hints("".join((one.tail or one.head).decode("utf-8", "replace") for one in outputs))


def _build_stop_error(run: CommandRun, result: CommandResult, sandbox: SandboxUsed) -> ToolError | None:
    if result.ending == "exit":
        return None
    limits, fate = run.limits, _describe_partial_changes(run, sandbox)
    details: dict[str, Any] = {"limits": list(result.limits)}
    if result.ending == "cancelled":
        return ToolError("CANCELLED", f"The call was cancelled; the command is gone with all its children. {fate}")
    if result.ending == "timeout":
        most = int(RESTRICTED_SECONDS * 1000) if run.context.limits.restricted else MAX_TIMEOUT_MS
        can_be_longer = limits.seconds * 1000 < most
        advice = f"Raise timeoutMs (max {most}) if it needs longer." if can_be_longer else _NO_LONGER
        message = f"Stopped after {limits.seconds:g} s with all its children. {fate} {advice}"
        return ToolError("TIMEOUT", message, details=details)
    excess = {
        "memory": f"more memory than {limits.memory >> 20:,} MB (limits.memory)",
        "processes": f"more processes than {limits.processes:,} (limits.processes)",
        "disk": f"more disk than {limits.disk >> 20:,} MB, which nobody approved (limits.preview)",
    }[result.ending]
    message = f"Stopped with all its children: it used {excess}. {fate}"
    return ToolError("LIMIT_EXCEEDED", message, details=details)


_NO_LONGER = "No command may take longer here."


def _describe_partial_changes(run: CommandRun, sandbox: SandboxUsed) -> str:
    """What became of the changes that a command made before it was stopped."""
    if run.is_proven:
        return "Nothing was changed."
    if sandbox.undo == "layer":
        return "Its changes were dropped."
    return "Its changes until then remain."


# The output, cut to fit.

_BYTES_A_CHARACTER = 4
_ENDING_ROOM_CHARS = 300
"""Characters of the result that say how the command ended."""


class _FittedOutput(msgspec.Struct, frozen=True):
    text: str
    shown: str
    kept: OffloadedText | None = None
    """All of it, if that is more than is shown."""
    raw: bytes | None = None
    """The bytes, if the text differs from them."""

    @property
    def is_truncated(self) -> bool:
        return self.shown != self.text or self.kept is not None


def _fit_output(context: Context, result: CommandResult, below: int) -> _FittedOutput:
    """The output that a result has room for. `below`: characters of the result that come after it."""
    output = result.output if result.errors is None else _join_streams(result.output, result.errors)
    budget = max(1_000, context.limits.characters - _ENDING_ROOM_CHARS - below)
    offloads = context.limits.offloads
    if output.tail or output.lost or output.spilled:
        return _fit_both_ends(output, budget, build_output_reference(context.tool_call_id) if offloads else "")
    text = clean_output(output.head)
    raw = None if not offloads or text.encode() == output.head else output.head
    if len(text) <= budget:
        return _FittedOutput(text, text, raw=raw)
    if not offloads:
        return _FittedOutput(text, truncate_middle(text, budget, "\n… {} characters are not shown …\n"))
    shown = truncate_with_reference(text, budget, build_output_reference(context.tool_call_id))
    return _FittedOutput(text, shown, OffloadedText(text=text, characters=len(text)), raw)


def _fit_both_ends(output: CapturedOutput, budget: int, reference: str) -> _FittedOutput:
    """The beginning and the end of an output that memory did not hold. A file has the rest, or most of it."""
    room = budget * _BYTES_A_CHARACTER  # no more can be shown, and cleaning megabytes is slow
    head, tail = clean_output(output.head[:room]), clean_output(_skip_cut_character(output.tail[-room:]))
    kept = _offload(output) if reference else None
    if kept is None:
        remove_spill_file(output)
    extent = "all of it" if not output.lost else "most of it"
    advice = f"; read {reference} for {extent}" if kept is not None else ""
    note = f"\n… only the beginning and the end of {output.total:,} bytes are shown{advice} …\n"
    text = f"{head}{note}{tail}"
    return _FittedOutput(text, text if len(text) <= budget else truncate_middle(head + tail, budget, note), kept)


def _offload(output: CapturedOutput) -> OffloadedText | None:
    if output.spilled is None:
        return None
    tail = output.tail[max(0, len(output.tail) - (output.total - output.spilled_bytes)) :]
    if output.total <= output.spilled_bytes:
        tail = b""
    elif output.lost:
        tail = f"\n… {output.lost:,} bytes were not kept …\n".encode() + tail
    return OffloadedText(file=output.spilled, tail=tail)


def _skip_cut_character(data: bytes) -> bytes:
    """The data without the rest of a character that was cut."""
    start = next((n for n in range(min(4, len(data))) if data[n] & 0xC0 != 0x80), 0)
    return data[start:]


def _join_streams(output: CapturedOutput, errors: CapturedOutput) -> CapturedOutput:
    """Two streams that were captured apart as one: first stdout, then stderr."""
    streams = (output, errors)
    for stream in streams:
        remove_spill_file(stream)
    head = b"".join(part for stream in streams for part in (stream.head, stream.tail))
    total = output.total + errors.total
    return CapturedOutput(head=head, total=total, lost=total - len(head))


# The changes.

_MAX_NAMED_FILES = 20


def render_change_row(made: ChangeSet) -> str:
    """`changed 4 files (1 deleted) and .git; undo 15`."""
    undo = f"undo {made.number}" if made.undoable else "undo does not cover it"
    return f"{describe_changes(made.changes)}; {undo}"


def render_changes(made: ChangeSet) -> str:
    """The row and a line for each file."""
    return f"[{render_change_row(made)}]\n{_render_change_list(made.changes)}"


def describe_changes(changes: Sequence[Change]) -> str:
    """`changed 4 files (1 deleted) and .git`."""
    files, repositories = _group_changes(changes)
    deleted = sum(map(is_deletion, files))
    parts = [f"{format_count(len(files), 'file')}{f' ({deleted} deleted)' if deleted else ''}"] if files else []
    parts += [_name_repositories(repositories)] if repositories else []
    return f"changed {' and '.join(parts) or format_count(len(changes), 'folder')}"


def _render_change_list(changes: Sequence[Change]) -> str:
    """A line for each file, the most harmful first. Only so many are named."""
    files, repositories = _group_changes(sort_by_harm(tuple(changes)))
    lines = [_render_change(change) for change in files[:_MAX_NAMED_FILES]]
    if len(files) > _MAX_NAMED_FILES:
        lines.append(f"… and {len(files) - _MAX_NAMED_FILES:,} more files")
    lines += [f"{clip_path(folder)}: {describe_git_files(count)}" for folder, count in repositories.items()]
    return "".join(f"  {line}\n" for line in lines)


def describe_git_files(count: int) -> str:
    return f"{format_count(count, 'file')} of git's own"


def _group_changes(changes: Sequence[Change]) -> tuple[list[Change], dict[str, int]]:
    """The changed files, and the number of changed files in each repository."""
    files: list[Change] = []
    moved = collect_moved_paths(tuple(changes))
    repositories: dict[str, int] = {}
    for change in changes:
        if folder := find_repository(change):
            repositories[folder] = repositories.get(folder, 0) + (change.kind != "folder")
        elif change.kind != "folder" and not (change.action == "deleted" and change.path in moved):
            files.append(change)
    return files, repositories


def _render_change(change: Change) -> str:
    origin = f" (was {clip_path(change.renamed_from)})" if change.renamed_from else ""
    verb = {"mode": "changed the mode of", "link": "linked"}.get(change.action, change.action)
    counts = (f" +{change.added}" if change.added else "") + (f" -{change.removed}" if change.removed else "")
    return f"{verb} {clip_path(change.path)}{origin}{counts}"


def _name_repositories(repositories: dict[str, int]) -> str:
    first, *more = repositories
    return f"{clip_path(first)} and {len(more)} more repositories" if more else clip_path(first)


# Why changes were not committed.

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


def build_room_error(room: int, limit: str) -> ToolError:
    """The failure of a command whose changes are too large to wait for an approval."""
    message = f"It wrote more than the {room / MEGABYTE:,.1f} MB that {limit} leaves it before an approval."
    advice = "The user can raise the limit, or answer waiting requests (handrail approvals)."
    return ToolError("LIMIT_EXCEEDED", f"{message} Nothing was changed. {advice}", details={"limits": ["disk"]})


def build_storage_error(error: OSError | StoreError) -> ToolError:
    cause = error if isinstance(error, OSError) else error.__cause__
    is_full = _is_full(cause)
    why = os.strerror(errno.ENOSPC) if is_full else cause.strerror if isinstance(cause, OSError) else str(error)
    message = f"What the command changed could not be stored ({why}), so it was dropped. Nothing was changed."
    return ToolError("NO_SPACE" if is_full else "IO_ERROR", f"{message} Try again when there is room.")


def _is_full(error: BaseException | None) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_ROOM
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


# The sandbox.


def build_sandbox_used(run: CommandRun, profile: SandboxProfile) -> SandboxUsed:
    """The sandbox of a command that ran on the real tree."""
    used = _build_sandbox_used(run, profile)
    if profile.is_read_only and used.net != "open":
        return replace(used, undo="read-only")
    return replace(used, no_layer=_explain_missing_overlay(run))


def build_overlay_sandbox_used(run: CommandRun, profile: SandboxProfile, reached: tuple[str, ...]) -> SandboxUsed:
    """The sandbox of a command that ran in an overlay. `reached`: the hosts that data was sent to."""
    used = _build_sandbox_used(run, profile)
    gaps = (*used.gaps, *run.environment.sandbox.list_overlay_gaps(profile.writable))
    return replace(used, tier=3, undo="layer", not_covered=describe_sent_data(reached), gaps=gaps)


def describe_sent_data(reached: tuple[str, ...]) -> tuple[str, ...]:
    """What undo does not cover of the network."""
    return (f"what was sent to {', '.join(reached)}",) if reached else ()


def _build_sandbox_used(run: CommandRun, profile: SandboxProfile) -> SandboxUsed:
    report = run.environment.sandbox.report()
    is_confined = report.tier > 0
    return SandboxUsed(
        tier=min(report.tier, 2),
        net="listed" if profile.proxy else "none" if is_confined else "open",
        hosts=profile.listed,
        joined=profile.joined,
        undo="none",
        hidden=len(profile.hidden_files) + len(profile.hidden_folders) if is_confined else 0,
        gaps=report.gaps,
        per_process=report.per_process,
        tree=report.tree,
    )


def _explain_missing_overlay(run: CommandRun) -> str:
    if run.fact.background:
        return "it may continue in the background, on the real files"
    roots = run.context.workspace.roots
    return run.environment.find_overlay_obstacle(roots) or "its decision assumed a sandbox without an overlay"
