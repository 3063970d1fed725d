"""The engine that find and grep of one session share. What searching takes is loaded by the first search."""

from typing import TYPE_CHECKING

from handrail.settings.model import SearchEngine
from handrail.workspace.workspace import Workspace

if TYPE_CHECKING:
    from handrail.workspace.search.search import Engines


class SessionSearch:
    """How a session searches; the program is looked for when it is first needed."""

    def __init__(self, ignore: tuple[str, ...] = (), engine: SearchEngine = "auto") -> None:
        self.ignore = ignore
        self._choice: SearchEngine = engine
        self._engines: Engines | None = None

    def engines(self, workspace: Workspace) -> "Engines":
        """The engines; ToolError UNAVAILABLE where there are none."""
        if self._engines is None:
            from handrail.workspace.search.search import choose_engines  # noqa: PLC0415  see above

            self._engines = choose_engines(workspace, self._choice)
        return self._engines
