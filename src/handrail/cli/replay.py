"""replay: a recorded session once more, on a copy of the workspace as it was before it."""

import os
from argparse import Namespace

from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.cli.place import resolve_workspace
from handrail.cli.preferences import load_settings
from handrail.cli.sessions import open_state_folder, resolve_workspace_session
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import encode
from handrail.replay.player import SessionReplay, make_start, play
from handrail.replay.session_record import CallComparison, read_recording
from handrail.workspace.tree_copy import make_copy_folder

_WORDS = {
    "same": "same",
    "times": "same but for times",
    "differs": "DIFFERS",
    "outside": "not comparable",
    "left-out": "left out",
}


def run(options: Namespace) -> int:
    """Plays it in a temporary folder, and says what came out otherwise."""
    workspace = os.path.realpath(resolve_workspace(options))
    recorded = resolve_workspace_session(workspace, options.task)
    loaded = load_settings(options, None, workspace)
    try:
        with make_copy_folder(workspace, options.keep) as folder:
            recording = read_recording(recorded)
            start = make_start(
                folder, open_state_folder(), workspace, os.path.basename(recorded), loaded, recording.observed
            )
            replay = play(recording, start, workspace, loaded)
    except ToolError as error:
        raise CommandFailed(f"{error.message} Your files are untouched.", FAILED) from None
    _show(replay, os.path.basename(recorded), options)
    return OK if replay.same else FAILED


def _show(replay: SessionReplay, session: str, options: Namespace) -> None:
    start = replay.start
    if options.json:
        told = {
            "schema": "handrail.replay/1",
            "session": session,
            "same": replay.same,
            "takenBack": start.taken_back,
            "changedOutside": start.outside,
            "notCopied": start.left_out,
            "unreadable": replay.unreadable,
            "calls": replay.calls,
        }
        print_json(encode(told))
        return
    print_out(render_table([("call", "what", "came out"), *map(_row, replay.calls)]))
    for one in replay.calls:
        if one.difference:
            print_out(f"\n{one.name} {one.tool_call_id}:\n{one.difference}\n")
    between = "between two calls, by another session, an undo or by hand; replay leaves that out"
    for path in start.outside:
        how = between if path in start.meanwhile else "by others: what it was at the start is not known"
        warn(f"{path} was changed {how}")
    for path in start.left_out:
        warn(f"{path} was not copied: it is no file, folder or link, or cannot be read")
    if replay.unreadable:
        warn(f"{replay.unreadable} calls of the record cannot be read")
    print_note(_counted(replay))


def _row(one: CallComparison) -> tuple[str, str, str]:
    reason = f" ({one.reason})" if one.reason else ""
    return one.name, one.title, f"{_WORDS[one.verdict]}{reason}"


def _counted(replay: SessionReplay) -> str:
    counts = {verdict: sum(one.verdict == verdict for one in replay.calls) for verdict in _WORDS}
    told = ", ".join(f"{count} {_WORDS[verdict].lower()}" for verdict, count in counts.items() if count)
    return f"{len(replay.calls)} calls: {told or 'nothing to play'}. Your files are untouched."
