"""One process of a crowd: threads that read and write a few files at random, and report every result."""

import hashlib
import json
import random
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from handrail import Handrail
from handrail.settings import Settings

FILES = ("a.txt", "b.txt", "folder/c.txt", "folder/d.txt")


def checked_text(token: str, size: int) -> str:
    """A text whose first line is the hash of the rest: a torn one gives itself away."""
    body = f"{token}\n" * size
    return f"{hashlib.sha256(body.encode()).hexdigest()}\n{body}"


def is_whole(text: str) -> bool:
    """Whether the first line fits the rest."""
    first, _, body = text.partition("\n")
    return first == hashlib.sha256(body.encode()).hexdigest()


def work(rail: Handrail, name: str, calls: int) -> list[dict[str, Any]]:
    """Calls of one thread, drawn from a generator of its own."""
    draw = random.Random(name)
    reports: list[dict[str, Any]] = []
    for number in range(calls):
        path = draw.choice(FILES)
        if draw.random() < 0.5:
            result = rail.read(path)
            extra = {"whole": not result.ok or is_whole(result.content)}
        else:
            result = rail.write(path, checked_text(f"{name}/{number}", draw.randrange(1, 40)))
            extra = {"before": result.data.before, "after": result.data.hash} if result.data else {}
        code = result.error.code if result.error else None
        reports.append({"id": result.tool_call_id, "name": result.name, "path": path, "code": code, **extra})
    return reports


def main() -> None:
    """Arguments: workspace, state folder, session, name of this process, threads, calls a thread."""
    workspace, state, session, name, threads, calls = sys.argv[1:]
    rail = Handrail(workspace, mode="auto", session=session, state_dir=state, settings=Settings())
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()  # all begin together
    with rail, ThreadPoolExecutor(int(threads)) as pool:
        parts = pool.map(lambda thread: work(rail, f"{name}.{thread}", int(calls)), range(int(threads)))
        reports = [report for part in parts for report in part]
    json.dump(reports, sys.stdout)


if __name__ == "__main__":
    main()
