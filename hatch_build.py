"""Builds the web console into each wheel. An editable installation has none, and needs no Node.js."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CONSOLE = "src/handrail/server/console"


class ConsoleBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Overrides hatchling."""
        if version == "editable" or os.environ.get("HANDRAIL_WITHOUT_CONSOLE"):
            return
        done = subprocess.run([sys.executable, str(Path(self.root, "web", "scripts", "build"))], check=False)
        if done.returncode:
            self.app.abort("The wheel was not built.")
        build_data["artifacts"].append(f"/{_CONSOLE}/")
