"""replay: a recorded session once more, on a copy of the workspace as it was before it."""

import os
from argparse import Namespace

from handrail.agent.replay.comparing import Compared
from handrail.agent.replay.playing import Replay, play
from handrail.agent.replay.recorded import recording_of
from handrail.agent.replay.start import make_start
from handrail.cli.exits import FAILED, OK, Stop
from handrail.cli.output import answer, answer_json, note, table, warn
from handrail.cli.place import workspace_of
from handrail.cli.preferences import loaded_for
from handrail.cli.sessions import folder_of_session, state_of_here
from handrail.protocol.error import ToolError
from handrail.protocol.wire import encode
from handrail.workspace.copying import place_for_copy

_WORDS = {
    "same": "same",
    "times": "same but for times",
    "differs": "DIFFERS",
    "outside": "not comparable",
    "left-out": "left out",
}


def run(options: Namespace) -> int:
    """Plays it in a temporary folder, and says what came out otherwise."""
    workspace = os.path.realpath(workspace_of(options))
    recorded = folder_of_session(workspace, options.task)
    loaded = loaded_for(options, None, workspace)
    try:
        with place_for_copy(workspace, options.keep) as folder:
            recording = recording_of(recorded)
            start = make_start(
                folder, state_of_here(), workspace, os.path.basename(recorded), loaded, recording.observed
            )
            replay = play(recording, start, workspace, loaded)
    except ToolError as error:
        raise Stop(f"{error.message} Your files are untouched.", FAILED) from None
    _show(replay, os.path.basename(recorded), options)
    return OK if replay.same else FAILED


def _show(replay: Replay, session: str, options: Namespace) -> None:
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
        answer_json(encode(told))
        return
    answer(table([("call", "what", "came out"), *map(_row, replay.calls)]))
    for one in replay.calls:
        if one.difference:
            answer(f"\n{one.name} {one.tool_call_id}:\n{one.difference}\n")
    between = "between two calls, by another session, an undo or by hand; replay leaves that out"
    for path in start.outside:
        how = between if path in start.meanwhile else "by others: what it was at the start is not known"
        warn(f"{path} was changed {how}")
    for path in start.left_out:
        warn(f"{path} was not copied: it is no file, folder or link, or cannot be read")
    if replay.unreadable:
        warn(f"{replay.unreadable} calls of the record cannot be read")
    note(_counted(replay))


def _row(one: Compared) -> tuple[str, str, str]:
    reason = f" ({one.reason})" if one.reason else ""
    return one.name, one.title, f"{_WORDS[one.verdict]}{reason}"


def _counted(replay: Replay) -> str:
    counts = {verdict: sum(one.verdict == verdict for one in replay.calls) for verdict in _WORDS}
    told = ", ".join(f"{count} {_WORDS[verdict].lower()}" for verdict, count in counts.items() if count)
    return f"{len(replay.calls)} calls: {told or 'nothing to play'}. Your files are untouched."
