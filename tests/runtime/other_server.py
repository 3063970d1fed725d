"""A server in this process, for tests: a source like any other, whose tools are functions."""

import threading
from collections.abc import Callable
from typing import Any

from handrail.protocol.errors import ToolError
from handrail.runtime.foreign.source import ForeignTool
from handrail.tools.tool import Context, Output

Handler = Callable[[Context, dict[str, Any]], Any]


def listed(name: str, **more: Any) -> ForeignTool:
    """A tool that takes anything by name."""
    return ForeignTool(name=name, **{"description": f"Does {name}.", "input_schema": {"type": "object"}, **more})


class OtherServer:
    """What it lists may be changed while it is used; what it is asked to do is kept."""

    def __init__(self, server: str, *tools: ForeignTool, handler: Handler | None = None) -> None:
        self._server = server
        self._tools, self._revision = tools, 1
        self._handler = handler or (lambda _, given: Output(summary="done", content=f"did it with {given}", data=None))
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.listings = 0
        self.closed = 0
        self.begun = threading.Event()
        self.troubles: tuple[str, ...] = ()
        self.reach: tuple[str, ...] = ()

    @property
    def server(self) -> str:
        return self._server

    @property
    def revision(self) -> int:
        return self._revision

    def now_lists(self, *tools: ForeignTool) -> None:
        self._tools, self._revision = tools, self._revision + 1

    def listed(self) -> tuple[ForeignTool, ...]:
        self.listings += 1
        return self._tools

    def call(self, context: Context, name: str, arguments: dict[str, Any]) -> Output:
        self.calls.append((name, arguments))
        self.begun.set()
        if not any(tool.name == name for tool in self._tools):
            raise ToolError("NOT_FOUND", f"there is no {name}")
        return self._handler(context, arguments)

    def problems(self) -> tuple[str, ...]:
        return self.troubles

    def close(self) -> None:
        self.closed += 1
