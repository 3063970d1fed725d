"""What a command wrote into new settings of git: a repository that it just made steers nothing, unless they say so."""

import os

from handrail.changes.looking import probe_path
from handrail.store.change_log import Step
from handrail.workspace.workspace import Workspace

_MAX_CONFIG_BYTES = 1 << 16


def read_new_configs(workspace: Workspace, steps: tuple[Step, ...]) -> dict[str, str]:
    """The text of each new `.git/config`, by its path as results name it."""
    found: dict[str, str] = {}
    for step in steps:
        is_new = step.before is None and step.after is not None
        if is_new and f"/{os.fsdecode(step.path)}".endswith("/.git/config"):
            current = probe_path(workspace, step.path, keep=_MAX_CONFIG_BYTES).current
            if current is not None and current.data is not None:
                found[workspace.render_path(step.path)] = current.data.decode("utf-8", "replace")
    return found
