"""python -m bench.server.program FOLDER PORT STEPS PAUSE: a server whose model makes one call after the other."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from handrail.agent.turn import TurnLimits
from handrail.mcp.http.guard import Address
from handrail.models.base import Completion, ModelRequest, StreamPiece, TextPiece
from handrail.protocol.messages import AssistantMessage, CallPart, TextPart
from handrail.server.access import ServerLimits, ServerNames
from handrail.server.application import Entrance, serve
from handrail.server.options import ServerOptions
from handrail.settings import LoadedSettings, Settings
from handrail.state import StoredState

TOKEN = "the-token-of-the-bench"


class BusyModel:
    """Says some words and reads a file, again and again. Each step is about five events."""

    name = "bench:busy"
    window = 100_000_000

    def __init__(self, steps: int, pause: float) -> None:
        self._steps, self._pause = steps, pause

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPiece]:
        done = sum(isinstance(one, AssistantMessage) for one in request.messages)
        yield TextPiece(f"Step {done}.")
        await asyncio.sleep(self._pause)
        text = TextPart(text=f"Step {done}.")
        if done >= self._steps:
            yield Completion(parts=(text,), finish="stop")
        else:
            call = CallPart(tool_call_id="", name="read", args={"path": "a.txt", "startLine": done % 9 + 1})
            yield Completion(parts=(text, call), finish="calls")

    async def close(self) -> None:
        """There are no connections."""


class BusyHost:
    def __init__(self, steps: int, pause: float) -> None:
        self._steps, self._pause = steps, pause

    def load_settings(self, _workspace: str, mode: Any = None, /) -> LoadedSettings:
        return LoadedSettings(settings=Settings(mode=mode or "ask"), sources={})

    def get_limits(self, _loaded: LoadedSettings, /) -> TurnLimits:
        return TurnLimits(calls=100_000, repeats=100_000)

    def list_models(self, _loaded: LoadedSettings, /) -> tuple[str, ...]:
        return ("bench:busy",)

    def open_model(self, _loaded: LoadedSettings, _name: str | None = None, /) -> BusyModel:
        return BusyModel(self._steps, self._pause)

    def open_sources(self, _loaded: LoadedSettings, _workspace: str, /) -> tuple[()]:
        return ()


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(folder: str, port: str, steps: str, pause: str) -> None:
    workspace = Path(folder, "workspace")
    workspace.mkdir(exist_ok=True)
    (workspace / "a.txt").write_text("".join(f"line {number}\n" for number in range(10)))
    listening = Address("127.0.0.1", int(port)).listen()
    address = Address(*listening.getsockname()[:2])
    options = ServerOptions(
        state=StoredState(os.path.join(folder, "state")),
        workspaces=(os.path.realpath(workspace),),
        host=BusyHost(int(steps), float(pause)),
        note=note,
        slow_seconds=float(os.environ.get("HANDRAIL_BENCH_SLOW_SECONDS", "10")),
    )
    limits = ServerLimits(body_bytes=1_000_000, requests_per_second=1_000, streams=1_000)
    print(address.port, flush=True)
    serve(Entrance(listening, ServerNames.build(address), TOKEN, limits), options, 130)


if __name__ == "__main__":
    main(*sys.argv[1:])
