"""handrail replay: runs a recorded session again, on a copy of the workspace as it was before it."""

import os
from argparse import ArgumentParser
from types import SimpleNamespace

from handrail.cli.context import load_settings, open_state_folder, resolve_workspace, resolve_workspace_session
from handrail.cli.exits import FAILED, OK, CommandFailed
from handrail.cli.output import print_json, print_note, print_out, render_table, warn
from handrail.cli.parser import Command, add_place_options
from handrail.protocol.errors import ToolError
from handrail.protocol.wire import encode
from handrail.replay.player import SessionReplay, replay_session
from handrail.terminal.call_lines import describe_to_person

_VERDICTS = {
    "same": "same",
    "times": "same but for times",
    "differs": "DIFFERS",
    "outside": "skipped",
    "left-out": "left out",
}


def run(options: SimpleNamespace) -> int:
    workspace = os.path.realpath(resolve_workspace(options))
    folder = resolve_workspace_session(workspace, options.task)
    loaded = load_settings(options, None, workspace)
    try:
        replay = replay_session(folder, workspace, open_state_folder(), loaded, options.keep)
    except ToolError as error:
        raise CommandFailed(
            f"{describe_to_person(error)} Your files are untouched.", FAILED, then="handrail log --sessions"
        ) from None
    if options.json:
        start = replay.start
        data = {
            "schema": "handrail.replay/1",
            "session": os.path.basename(folder),
            "same": replay.same,
            "takenBack": start.taken_back,
            "changedOutside": start.outside,
            "notCopied": start.left_out,
            "unreadable": replay.unreadable,
            "calls": replay.calls,
        }
        print_json(encode(data))
    else:
        _print_replay(replay)
    return OK if replay.same else FAILED


def _print_replay(replay: SessionReplay) -> None:
    rows = [
        (one.name, one.title, f"{_VERDICTS[one.verdict]}{f': {one.reason}' if one.reason else ''}")
        for one in replay.calls
    ]
    print_out(render_table([("call", "what", "came out"), *rows]))
    for one in replay.calls:
        if one.difference:
            print_out(f"\n{one.name} {one.tool_call_id}:\n{one.difference}\n")
    between = "between two calls: by another session, by undo or by hand; replay skips that change"
    for path in replay.start.outside:
        how = between if path in replay.start.meanwhile else "outside handrail, so its original content is unknown"
        warn(f"warning: {path} was changed {how}")
    for path in replay.start.left_out:
        warn(f"warning: {path} was not copied: it is not a readable file, folder or link")
    if replay.unreadable:
        warn(f"warning: {replay.unreadable} calls of the record cannot be read")
    counts = {verdict: sum(one.verdict == verdict for one in replay.calls) for verdict in _VERDICTS}
    verdicts = ", ".join(f"{count} {_VERDICTS[verdict].lower()}" for verdict, count in counts.items() if count)
    print_note(f"{len(replay.calls)} calls: {verdicts or 'nothing to replay'}. Your files are untouched.")


def _add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("task", metavar="SESSION", help="the id of the session, or its beginning")
    parser.add_argument("--keep", metavar="DIR", help="replay in this new folder, and keep it")
    add_place_options(parser)


COMMANDS = {
    "replay": Command(
        run,
        _add_arguments,
        ("handrail replay cli", "handrail replay cli --json | jq '.calls[] | select(.verdict == \"differs\")'"),
        {FAILED: "a result differs, or there is no such session"},
    ),
}
