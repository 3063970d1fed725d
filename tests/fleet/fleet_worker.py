"""A worker whose model is named by its script: `fleet_worker.py URL FOLDER DEAD_SECONDS`."""

import logging
import sys
import time

from handrail.fleet.worker import Worker
from handrail.models.scripted import ScriptedModel, ScriptedReply, call
from handrail.settings import Settings
from handrail.settings.model import Tools

ON = Settings(tools=Tools(enable=("question",)))


def find_model(name: str) -> ScriptedModel:
    """`append:N` appends N lines by commands, `write:N` writes N files, `sleep:S` runs one command for so long.

    The first command of `hold` takes longer than any test, the second is short."""
    kind, _, number = name.partition(":")
    if kind == "append":
        steps = [call("exec", command=f"echo line-{one} >> log.txt") for one in range(int(number))]
    elif kind == "write":
        steps = [call("write", path=f"{one}.txt", content=f"{one}\n") for one in range(int(number))]
    elif kind == "sleep":
        steps = [call("exec", command=f"sleep {number}; echo slept >> log.txt")]
    elif kind == "hold":
        steps = [
            call("exec", command=f"echo line-{one} >> log.txt; {then}") for one, then in enumerate(("sleep 600", ":"))
        ]
    elif kind == "ask":
        steps = [call("question", question="Which?", options=["a", "b"])]
    elif kind == "filter":
        steps = [
            call("exec", command="git config filter.evil.clean 'echo smudged'"),
            call("exec", command="echo '*.txt filter=evil' > .gitattributes; echo a > a.txt"),
        ]
    elif kind == "die":
        steps = [_die]
    else:
        steps = []
    return ScriptedModel([*steps, "Done."])


def _die(_request: object) -> ScriptedReply:
    import os

    os._exit(9)


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING, format=f"%(asctime)s {time.time():.0f} %(name)s %(message)s")
    url, folder, dead = sys.argv[1:4]
    sys.exit(Worker(url, folder, find_model=find_model, settings=ON, concurrency=8, dead_seconds=float(dead)).run())
