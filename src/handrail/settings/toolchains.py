"""Which folders nobody shows to commands as a toolchain, so that a slip in the settings does not bare everything."""

import os

from handrail.policy.names import find_protection
from handrail.settings.errors import SettingsError, quote_path

_EVERY_PROGRAMS = (".config", ".local", ".local/share")
"""Folders in the home folder that every program keeps something in, credentials too."""


def refuse_wide(toolchains: tuple[str, ...], home: str, state: str) -> None:
    """A SettingsError for toolchains that hold the home folder, the state folder or credentials."""
    found = [(path, why) for path in toolchains if (why := _why_not(path, home, state))]
    if found:
        raise SettingsError(
            "The settings cannot be used",
            [f"sandbox.toolchains has {quote_path(path)}, {why}" for path, why in found],
            "Nothing was run. Name a smaller folder in it, then try again.",
        )


def _why_not(path: str, home: str, state: str) -> str | None:
    spellings = _places(path)
    if _any_holds(spellings, home):
        return "which the home folder lies in"
    if _any_holds(spellings, state):
        return "which handrail keeps its own files in"
    shared = {os.path.join(place, name) for place in _places(home) for name in _EVERY_PROGRAMS}
    if spellings & shared or any(find_protection(spelled) == "credential" for spelled in spellings):
        return "where programs keep credentials"
    return None


def _any_holds(folders: set[str], path: str) -> bool:
    return any(os.path.commonpath((folder, place)) == folder for folder in folders for place in _places(path))


def _places(path: str) -> set[str]:
    return {os.path.normpath(path), os.path.realpath(path)}
