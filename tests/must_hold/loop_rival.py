"""Goes on with the session of twelve calls, says when it is at work, and waits there for a line. Arguments: workspace,
state folder."""

import asyncio
import sys
from pathlib import Path

import msgspec
from loop_script import SCRIPT, opened, play

_said: list[str] = []


async def hold(_: int) -> None:
    """Once, with the session's loop in its hands."""
    if not _said:
        _said.append("at work")
        print(*_said, flush=True)
        sys.stdin.readline()


async def main(workspace: str, state: str) -> None:
    async with opened(Path(workspace), Path(state)) as rail:
        await play(rail, [msgspec.structs.replace(line, waits=hold) for line in SCRIPT])


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
