"""Runs commands in a process of its own, as the user it is told to be; prints each result as a line of JSON.

Argument: a JSON object with workspace, state, settings, calls (the arguments of exec) and, where it is not to stay who
it is, user. A line also says by how much the call made this process grow at its peak, in KB.
"""

import ctypes
import importlib
import json
import os
import pkgutil
import sys
from typing import Any

import msgspec

import handrail
from handrail import Handrail
from handrail.code.shell import find_shell_commands
from handrail.protocol.results import ToolResult
from handrail.settings import Settings

SET_DUMPABLE = 4


def main() -> None:
    task = json.loads(sys.argv[1])
    if task.get("user") is not None and os.geteuid() == 0:
        become(task["user"])
    settings = msgspec.convert(task.get("settings", {}), Settings)
    with Handrail(
        task["workspace"], mode="full", state_dir=task["state"], settings=settings, on_permission=lambda _: "once"
    ) as rail:
        for arguments in task["calls"]:
            before = measured("VmRSS")
            with open("/proc/self/clear_refs", "w", encoding="utf-8") as peak:
                peak.write("5")
            result = rail.call("exec", arguments)
            print(json.dumps(plain(result) | {"growth": measured("VmHWM") - before}), flush=True)


def become(user: int) -> None:
    """Everything is imported first: where the code lies, the user may have no right to look."""
    for module in pkgutil.walk_packages(handrail.__path__, "handrail."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    find_shell_commands("(what only a grammar shows)")
    "".encode("unicode_escape")  # a codec is a module too
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    ctypes.CDLL(None).prctl(SET_DUMPABLE, 1, 0, 0, 0)  # as if it had been this user's from the start


def measured(name: str) -> int:
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name))


def plain(result: ToolResult[Any]) -> dict[str, Any]:
    return msgspec.to_builtins(result)


if __name__ == "__main__":
    main()
