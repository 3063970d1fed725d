"""Serves an editor, or an MCP client over HTTP, each time in a process of its own. It kills itself at a moment of a
number.

A line on stdin is JSON: `do` is `serve` or `look`, `folder` is where everything lies. `serve` has the `words` of the
command and the `number`, 0 to serve to the end. It connects to `socket` in the folder, where the editor's wire is, or
what the command says. `look` opens the `session` as the next process does, and writes what it finds into `looked.json`.
With `answers` it says yes to what waits, with `ends` it ends the session. The lines on stdout are the id of the process
and how it ended. All are forked from one that has imported everything, as in loop_victim. Argument: a folder to warm up
in.
"""

import importlib
import json
import os
import pkgutil
import socket
import sys
import traceback
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from face_clients import TOKEN
from loop_outcome import audited, tree
from moments import Moments
from tests.agent.checked_events import check_events

import handrail
from handrail import Handrail
from handrail.cli.main import run
from handrail.code.shell import find_shell_commands
from handrail.protocol.events import ToolCallEnd, ToolCallError, ToolCallPermissionGranted, ToolCallStart
from handrail.protocol.messages import AssistantMessage
from handrail.settings import Settings, load
from handrail.state import StoredState


def warm_up(folder: Path) -> None:
    """What a process finds out once."""
    for module in pkgutil.walk_packages(handrail.__path__, "handrail."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    find_shell_commands("(what only a grammar shows)")
    (folder / "workspace").mkdir(parents=True)
    with Handrail(folder / "workspace", mode="full", state_dir=folder / "state", settings=Settings()) as rail:
        assert rail.exec("bash -c 'touch made'").ok


def main() -> None:
    warm_up(Path(sys.argv[1]))
    for line in sys.stdin:
        task = json.loads(line)
        child = os.fork()
        if child == 0:
            begin(task)
        print(child, flush=True)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def begin(task: dict[str, Any]) -> NoReturn:
    """Does it in this process, and ends it."""
    folder = Path(task["folder"])
    os.environ |= {"HOME": str(folder / "home"), "HANDRAIL_STATE_DIR": str(folder / "state"), "HANDRAIL_TOKEN": TOKEN}
    os.chdir(folder / "workspace")
    try:
        code = serve(folder, task["words"], task["number"]) if task["do"] == "serve" else look(folder, task)
    except BaseException:
        (folder / "trouble.txt").write_text(traceback.format_exc())
        code = 99
    os._exit(code)


def serve(folder: Path, words: list[str], number: int) -> int:
    """Serves until the client goes, or somebody ends it."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(str(folder / "socket"))
        for descriptor in (0, 1) if words[0] == "acp" else (2,):
            os.dup2(wire.fileno(), descriptor)
    if words[0] == "acp":
        os.dup2(os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND), 2)
    moments = Moments(number or None)
    moments.watch()
    code = run(words)
    (folder / "moments.json").write_text(json.dumps(moments.names))
    return code


def look(folder: Path, task: dict[str, Any]) -> int:
    """What the next process finds."""
    workspace, state = folder / "workspace", folder / "state"
    settings = load(os.environ, {}, str(workspace))
    with Handrail(workspace, session=task["session"], mode="auto", settings=settings, on_permission=_later) as rail:
        waited = len(rail.waiting())
        for request in rail.waiting() if task["answers"] else ():
            rail.answer(request, "once")
        events = check_events(rail)
        results = {one.tool_call_id: one.result for one in events if isinstance(one, ToolCallEnd | ToolCallError)}
        calls = [
            {
                "id": one.tool_call_id,
                "name": one.tool_call_name,
                "args": one.args,
                "result": results.get(one.tool_call_id),
            }
            for one in events
            if isinstance(one, ToolCallStart)
        ]
        said = rail.conversation.messages()
        found = {
            "calls": calls,
            "waited": waited,
            "waiting": [one.tool_call_id for one in rail.waiting()],
            "granted": [one.tool_call_id for one in events if isinstance(one, ToolCallPermissionGranted)],
            "processes": rail.processes(),
            "said": [
                one.message.text for one in said if isinstance(one.message, AssistantMessage) and one.message.text
            ],
            "files": tree(workspace),
            "audited": audited(state),
            "problems": StoredState(str(state)).verify().problems,
        }
        if task["ends"]:
            rail.end_session()
    (folder / "looked.json").write_bytes(msgspec.json.encode(found))
    return 0


def _later(_: object) -> None:
    """Who is asked is told below."""


if __name__ == "__main__":
    main()
