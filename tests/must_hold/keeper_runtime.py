"""A runtime that starts kept commands, tells their ids, and stays until it is killed; or one that comes after it.

Arguments: `start` or `attach`, a folder, a tier, and the commands. It prints a line of JSON, and reads a line to go on.
"""

import json
import os
import sys
from pathlib import Path

from handrail.process.sessions.keeper_client import LogSizes
from handrail.process.sessions.sessions import ProcessSessions
from handrail.sandbox.launch import Launch
from handrail.sandbox.profile import ResourceLimits, SandboxHost, SandboxProfile
from handrail.sandbox.sandbox import CommandSandbox


def launcher(folder: Path, tier: int, variables: tuple[str, ...] = ()) -> CommandSandbox:
    """The sandbox of a folder that has a home and a workspace."""
    for name in ("home", "workspace"):
        (folder / name).mkdir(exist_ok=True)
    state = str(folder / "state")
    host = SandboxHost(home=str(folder / "home"), environ=dict(os.environ), state=state, variables=variables)
    return CommandSandbox(host, most=tier, least=tier)


def launch(sandbox: CommandSandbox, workspace: Path, command: str) -> Launch:
    place = str(workspace)
    return sandbox.launch(SandboxProfile(origin="approved", cwd=place, read_only=(), writable=(place,)), command)


def sessions_in(folder: Path, sizes: LogSizes | None = None) -> ProcessSessions:
    place = str(folder / "processes")
    return ProcessSessions(place, sizes=sizes) if sizes else ProcessSessions(place)


def main() -> None:
    action, folder, tier, *commands = sys.argv[1:]
    sessions, sandbox = sessions_in(Path(folder)), launcher(Path(folder), int(tier))
    if action == "start":
        for command in commands:
            sessions.start(
                launch(sandbox, Path(folder, "workspace"), command),
                session_id="cli", command=command, cwd=".", limits=ResourceLimits(), idle_seconds=600.0,
            )  # fmt: skip
        print(json.dumps([one.id for one in sessions.list_sessions()]), flush=True)
        sys.stdin.read()
    for one in sessions.list_sessions():
        one.write(b"words\n", eof=True)
        if not one.wait(60.0):
            one.stop()
    ended = [one.record() for one in sessions.list_sessions()]
    print(json.dumps([[one.id, one.state, one.exit_code, one.last_line] for one in ended]), flush=True)
    for one in sessions.list_sessions():
        one.remove()


if __name__ == "__main__":
    main()
