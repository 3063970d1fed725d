"""Finds custom tools: in installed packages (entry points) and in folders that were named."""

import os
import sys
from hashlib import sha256
from types import ModuleType

from handrail.protocol.errors import UsageError
from handrail.settings import Settings
from handrail.tools.contract import Tool

GROUP = "handrail.tools"


def load_configured_tools(settings: Settings) -> list[Tool]:
    """The tools that settings ask for."""
    found = [tool for folder in settings.tools.folders for tool in load_folder_tools(folder)]
    return found + load_installed_tools() if settings.tools.installed else found


def load_installed_tools() -> list[Tool]:
    """The tools that installed packages announce under `handrail.tools`: a Tool, or a module that has some."""
    from importlib.metadata import entry_points  # noqa: PLC0415  costs start-up time

    found: list[Tool] = []
    for entry in entry_points(group=GROUP):
        try:
            source = entry.load()
        except (Exception, SystemExit) as error:  # whatever a stranger's package does wrong, it is named
            raise UsageError(f"the entry point {entry.name!r} does not load: {_told(error)}") from error
        found += collect_tools(source, f"entry point {entry.name!r}")
    return found


def load_folder_tools(folder: str) -> list[Tool]:
    """The tools of every Python file in a folder. This runs those files: name only folders you trust."""
    from importlib.util import module_from_spec, spec_from_file_location  # noqa: PLC0415  costs start-up time

    try:
        names = sorted(name for name in os.listdir(folder) if name.endswith(".py") and not name.startswith("_"))
    except OSError as error:
        raise UsageError(f"the tool folder {folder!r} cannot be read: {error.strerror}") from error
    found: list[Tool] = []
    for name in names:
        path = os.path.join(folder, name)
        # Two folders may have a file of the same name.
        place = sha256(os.path.abspath(path).encode("utf-8", "surrogateescape")).hexdigest()[:12]
        spec = spec_from_file_location(f"handrail_tools_{place}_{name.removesuffix('.py')}", path)
        if spec is None or spec.loader is None:
            raise UsageError(f"the tool file {path!r} cannot be loaded")
        sys.modules[spec.name] = module = module_from_spec(spec)  # dataclasses and pickle look it up there
        try:
            spec.loader.exec_module(module)
        except (Exception, SystemExit) as error:  # whatever a stranger's file does wrong, it is named
            sys.modules.pop(spec.name, None)
            raise UsageError(f"the tool file {path!r} does not load: {_told(error)}") from error
        found += collect_tools(module, path)
    return found


def collect_tools(source: object, where: str) -> list[Tool]:
    """The tools that a module or an entry point holds."""
    if isinstance(source, Tool):
        return [source]
    if isinstance(source, ModuleType):
        found = {id(value): value for value in vars(source).values() if isinstance(value, Tool)}
        return list(found.values())
    raise UsageError(f"{where} is neither a tool nor a module with tools")


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
