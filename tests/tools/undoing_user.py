"""Runs commands without a layer as an ordinary user, and takes each back; prints what came of it as lines of JSON.

Arguments: workspace, state folder, tier, user, mode, and the commands. What is asked gets a yes, in auto mode a no.
"""

import json
import os
import stat
import sys
from pathlib import Path

import msgspec

import commander
from handrail import Handrail
from handrail.protocol.decisions import Mode
from handrail.protocol.permissions import PermissionRequest
from handrail.settings import Settings
from handrail.settings.model import Sandbox


def main() -> None:
    workspace, state, tier, user, mode, *commands = sys.argv[1:]
    if os.geteuid() == 0:
        commander.become(int(user))
    settings = Settings(sandbox=Sandbox(tier=int(tier)))
    asked: list[str] = []

    def answer(request: PermissionRequest) -> str:
        asked.append(request.reason)
        return "deny" if mode == "auto" else "once"

    with Handrail(
        workspace, mode=msgspec.convert(mode, Mode), state_dir=state, settings=settings, on_permission=answer
    ) as rail:
        for command in commands:
            before = states(Path(workspace))
            result = rail.exec(command)
            used = result.meta.sandbox
            between = states(Path(workspace))
            undone = rail.undo() if result.meta.undo is not None else None
            told = {
                "code": result.data.exit_code if result.data else None,
                "error": result.error.message if result.error else "",
                "undo": used.undo if used else "",
                "asked": asked,
                "changed": before != between,
                "undone": undone.error.message if undone is not None and undone.error else "",
                "back": states(Path(workspace)) == before,
            }
            print(json.dumps(told), flush=True)


def states(folder: Path) -> dict[str, tuple[int, str]]:
    found: dict[str, tuple[int, str]] = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        content = os.readlink(path) if path.is_symlink() else read(path) if path.is_file() else ""
        found[str(path.relative_to(folder))] = (0 if stat.S_ISLNK(mode) else mode, content)
    return found


def read(path: Path) -> str:
    try:
        return path.read_bytes().hex()
    except PermissionError:
        return "closed"


if __name__ == "__main__":
    main()
