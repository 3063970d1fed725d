"""Finds, reads and merges the layers of settings."""

from handrail.settings.errors import SettingsError
from handrail.settings.load import LoadedSettings, load
from handrail.settings.model import Settings, flatten_settings
from handrail.settings.paths import MANAGED_FILE, PROJECT_FILE, resolve_state_folder, resolve_user_file
from handrail.settings.reference import REFERENCE, SettingReference
from handrail.settings.sources import Project

__all__ = [
    "MANAGED_FILE",
    "PROJECT_FILE",
    "REFERENCE",
    "LoadedSettings",
    "Project",
    "SettingReference",
    "Settings",
    "SettingsError",
    "flatten_settings",
    "load",
    "resolve_state_folder",
    "resolve_user_file",
]
