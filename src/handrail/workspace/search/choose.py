"""Which engine searches: ripgrep where there is one, else Python."""

from handrail.protocol.error import ToolError
from handrail.settings.model import SearchEngine
from handrail.workspace.search.binary import find_ripgrep
from handrail.workspace.search.engine import Without
from handrail.workspace.search.run import MAX_SECONDS
from handrail.workspace.search.search import Engines
from handrail.workspace.workspace import Workspace

_PYTHON_SECONDS = 10.0
"""Seconds for what takes ripgrep one: Python is slower, and its answer is to be the same."""


def choose_engines(workspace: Workspace, choice: SearchEngine) -> Engines:
    """The engines for a workspace; ToolError UNAVAILABLE where the chosen one is not here."""
    found = None if choice == "python" else _ripgrep(workspace)
    if found is None and choice == "ripgrep":
        message = "ripgrep is not installed, and the setting search.engine asks for it; `handrail doctor` says more."
        raise ToolError("UNAVAILABLE", message)
    return found or _python("switched off" if choice == "python" else "not installed")


def _ripgrep(workspace: Workspace) -> Engines | None:
    program = find_ripgrep(root.path for root in workspace.roots)
    if program is None:
        return None
    from handrail.workspace.search.ripgrep import Ripgrep  # noqa: PLC0415  only where there is one

    return Engines(Ripgrep(program), Ripgrep(program, ordered=True), MAX_SECONDS)


def _python(without: Without) -> Engines:
    from handrail.workspace.search.python import PythonEngine  # noqa: PLC0415  only where there is no ripgrep

    return Engines(PythonEngine(ordered=False, without=without), PythonEngine(without=without), _PYTHON_SECONDS)
