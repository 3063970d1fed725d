"""The context of a request: its server, caller, parameters."""

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from handrail.api import Returned
from handrail.protocol.decisions import MODES, Mode
from handrail.server.feed import TaskFeeds, TaskSource
from handrail.server.options import ApiFailure, ServerOptions
from handrail.server.wire import ApiCaller
from handrail.settings import LoadedSettings
from handrail.settings.load import find_managed_mode

if TYPE_CHECKING:
    from handrail.server.runner import TaskRunner


class TaskService(TaskSource, Protocol):
    """Stores the tasks of a server and makes them go on: in this process, or on the workers of a fleet."""

    feeds: TaskFeeds
    loop: asyncio.AbstractEventLoop
    handlers: Mapping[str, Callable[..., Any]]
    """Its own handlers, by the names that the routes have for them. All other routes have those of this package."""
    pages: Mapping[str, Callable[[], bytes]]
    """Pages of plain text beside the API, by their paths. A viewer may read them."""

    async def close(self) -> None: ...


class ServerContext(NamedTuple):
    """What all handlers share."""

    options: ServerOptions
    tasks: TaskService
    pool: ThreadPoolExecutor
    """The threads of handlers."""

    @property
    def runner(self) -> "TaskRunner":
        """The tasks, for handlers of a server that runs them itself."""
        return cast("TaskRunner", self.tasks)

    def find_handler(self, name: str) -> Callable[..., Any]:
        return self.tasks.handlers.get(name) or find_handler(name)

    async def in_thread(self, work: Callable[[], Returned]) -> Returned:
        return await self.tasks.loop.run_in_executor(self.pool, work)


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

    def check_work(self, task_id: str) -> None:
        """ApiFailure if the caller may not choose the mode of a task, so may not give the model work there either."""
        options, task = self.server.options, self.server.tasks.describe(task_id)
        mode = task.mode
        if mode is None and task.waiting:  # another program's: the session is opened in the mode of its request
            requests = options.state.open_inbox(task.workspace).list_requests()
            mode = next((one.mode for one in requests if one.request.session_id == task_id), None)
        if mode == "full" and "full" not in list_modes(self.caller, options.load_settings(task.workspace)):
            text = "The task works in the mode full. Only an admin may work in it. Choose another mode for it first."
            raise ApiFailure(403, "FORBIDDEN", text)


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


@cache
def find_handler(spelled: str) -> Callable[..., Any]:
    """The handler of a route. Its module is imported now."""
    module, _, name = spelled.partition(".")
    return getattr(import_module(f"handrail.server.{module}"), name)
