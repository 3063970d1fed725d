"""The context of a request: its server, caller, parameters."""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from handrail.api import Returned
from handrail.protocol.decisions import MODES, Mode
from handrail.server.options import ApiFailure, ServerOptions
from handrail.server.wire import ApiCaller
from handrail.settings import LoadedSettings
from handrail.settings.load import find_managed_mode

if TYPE_CHECKING:
    from handrail.server.runner import TaskRunner


class ServerContext(NamedTuple):
    """What all handlers share."""

    options: ServerOptions
    runner: "TaskRunner"
    pool: ThreadPoolExecutor
    """The threads of handlers."""

    async def in_thread(self, work: Callable[[], Returned]) -> Returned:
        return await self.runner.loop.run_in_executor(self.pool, work)

    def check_work(self, caller: ApiCaller, task_id: str) -> None:
        """ApiFailure if the caller may not choose the mode of a task, so may not give the model work there either."""
        task = self.runner.describe(task_id)
        if task.mode == "full" and "full" not in list_modes(caller, self.options.load_settings(task.workspace)):
            text = "The task works in the mode full. Only an admin may work in it. Choose another mode for it first."
            raise ApiFailure(403, "FORBIDDEN", text)


class Request(NamedTuple):
    """One request, checked and decoded."""

    server: ServerContext
    caller: ApiCaller
    params: Mapping[str, str]
    """The parts of the path in braces."""
    query: Mapping[str, Any]
    """The parameters that the route declares. An absent one has its default."""
    body: Any = None
    """The struct of the route."""


def list_modes(caller: ApiCaller, loaded: LoadedSettings) -> tuple[Mode, ...]:
    """The modes that a caller may choose, the default first. Only an admin may choose `full`."""
    if caller.role == "viewer":
        return ()
    default: Mode = loaded.settings.mode
    modes: list[Mode] = [default]
    for mode in MODES[: MODES.index(find_managed_mode(loaded)) + 1]:
        if mode != default and (mode != "full" or caller.role == "admin"):
            modes.append(mode)
    return tuple(modes)
