"""Other projects' sandboxes, where they are installed: on PATH, or as npm packages in HANDRAIL_BENCH_PEERS.

Both are npm packages: @openai/codex and @anthropic-ai/sandbox-runtime; the second also needs rg and socat on PATH.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

COMMANDS = {"codex sandbox": ("codex", "sandbox", "--", "true"), "srt": ("srt", "-c", "true")}


def found_peers(workspace: Path) -> dict[str, Callable[[], None]]:
    """Each that works here, as a function that runs `true` in it."""
    peers: dict[str, Callable[[], None]] = {}
    for name, (program, *arguments) in COMMANDS.items():
        place = program_of(program)
        if place is None:
            print(f"bench: {name} is not installed, and left out", file=sys.stderr)
            continue
        case = peer([place, *arguments], workspace)
        try:
            case()
        except subprocess.CalledProcessError as error:
            print(f"bench: {name} does not work here, and is left out: {last_line(error.output)}", file=sys.stderr)
        else:
            peers[name] = case
    return peers


def peer(command: list[str], workspace: Path) -> Callable[[], None]:
    def run() -> None:
        subprocess.run(
            command,
            cwd=workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
        )

    return run


def program_of(name: str) -> str | None:
    """codex itself where npm brought it: the command on PATH is a script that starts it, which would count twice."""
    folder = os.environ.get("HANDRAIL_BENCH_PEERS", "")
    native = sorted(Path(folder).glob(f"node_modules/@openai/*/vendor/*/bin/{name}")) if folder else []
    return str(native[0]) if native else shutil.which(name, path=f"{folder}/node_modules/.bin:{os.environ['PATH']}")


def last_line(output: bytes) -> str:
    return (output.decode(errors="replace").strip().splitlines() or ["it says nothing"])[-1]
