"""log --line: why a line of a file is there: the change that made it, the call, the decision, and who said yes."""

from argparse import Namespace
from typing import Any

from handrail.changes.blame import LineOrigin
from handrail.cli.commands.changes import open_cli_session, print_refusal
from handrail.cli.context import open_state_folder
from handrail.cli.exits import OK, CommandFailed
from handrail.cli.line_words import LineHistory, build_line_chain, describe_origin, list_remarks
from handrail.cli.output import print_json, print_note, print_out, render_table
from handrail.protocol.errors import ToolError
from handrail.protocol.records import CallStory
from handrail.protocol.wire import encode, escape_surrogates

_SCHEMA = "handrail.log-line/1"


def print_line(options: Namespace) -> int:
    """Prints where a line comes from, and what led there."""
    path, line = _place(options.line)
    try:
        with open_cli_session(options) as rail:
            real, text, origin = rail.line_origin(path, line)
            story = _story(rail.workspace, origin)
    except ToolError as error:
        return print_refusal(options, "log-line", error)
    why = LineHistory(real, line, text, origin, story)
    if options.json:
        print_json(encode({"schema": _SCHEMA, **_as_json(why)}))
        return OK
    print_out(f"{real}:{line}  {text.strip()}\n\n")
    print_out(render_table(build_line_chain(why)) if origin.kind == "made" else f"{describe_origin(why)}\n")
    for remark in list_remarks(why):
        print_out(f"{remark}\n")
    if origin.entry is not None:
        number = origin.entry.number
        print_note(f"to see the change: handrail diff {number}; to take it back: handrail undo {number}")
    return OK


def _place(spelled: str) -> tuple[str, int]:
    """`src/a.py:41` taken apart; a path may have colons too."""
    path, colon, line = spelled.rpartition(":")
    if not colon or not path or not line.isascii() or not line.isdigit() or len(line) > 9 or not int(line):
        raise CommandFailed(
            f"--line takes FILE:N, a file and the number of a line from 1, got {spelled[:80]!r}. See: src/a.py:41"
        )
    return path, int(line)


def _story(workspace: str, origin: LineOrigin) -> CallStory | None:
    """What the session that made it wrote down of the call; None where its journal is gone."""
    entry = origin.entry
    if entry is None or origin.kind != "made":
        return None
    return open_state_folder().find_call_story(workspace, entry.session, entry.call_id)


def _as_json(why: LineHistory) -> dict[str, Any]:
    origin, story = why.origin, why.story
    told: dict[str, Any] = {"path": why.path, "line": why.line, "text": why.text, "origin": origin.kind}
    told |= {"changedOutsideAfter": origin.outside, "broughtBackBy": origin.brought_back}
    told |= {"change": None, "call": None, "decision": None, "answer": None, "prompt": None}
    if (entry := origin.entry) is not None:
        told["change"] = {
            "number": entry.number,
            "time": entry.time,
            "sessionId": entry.session,
            "toolCallId": entry.call_id,
            "tool": entry.body.tool,
            "summary": entry.body.summary,
            "path": escape_surrogates(origin.path.decode(errors="surrogateescape")),
            "line": origin.line,
            "undoable": entry.body.undoable,
        }
    return told if story is None else told | _story_as_json(story)


def _story_as_json(story: CallStory) -> dict[str, Any]:
    start = story.start
    call = {"name": start.tool_call_name, "args": start.args, "time": start.time, "traceId": start.trace_id}
    said = {"kind": story.answer.kind, "time": story.answered} if story.answer is not None else None
    return {
        "call": call | {"messageId": start.message_id, "command": story.asked.command if story.asked else None},
        "decision": story.decision,
        "mode": story.mode,
        "answer": said,
        "prompt": {"messageId": story.prompt.message_id, "text": story.prompt.text} if story.prompt else None,
    }
