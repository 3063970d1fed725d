"""What a command wrote into new settings of git: a repository that it just made steers nothing, unless they say so."""

import os

from handrail.changes.undoing import look_at
from handrail.store.change_log import Step
from handrail.workspace.exact import shown_path
from handrail.workspace.workspace import Workspace

_LARGEST = 65_536


def config_texts(workspace: Workspace, steps: tuple[Step, ...]) -> dict[str, str]:
    """The text of each new `.git/config`, by its path as results name it."""
    found: dict[str, str] = {}
    for step in steps:
        is_new = step.before is None and step.after is not None
        if is_new and f"/{os.fsdecode(step.path)}".endswith("/.git/config"):
            current = look_at(workspace, step.path, keep=_LARGEST).current
            if current is not None and current.data is not None:
                found[shown_path(workspace, step.path)] = current.data.decode("utf-8", "replace")
    return found
