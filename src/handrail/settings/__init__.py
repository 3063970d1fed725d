"""Finds, reads and merges the layers of settings."""

from handrail.settings.errors import SettingsError
from handrail.settings.files import Project
from handrail.settings.load import LoadedSettings, load
from handrail.settings.location import MANAGED_FILE, PROJECT_FILE, resolve_state_folder, resolve_user_file
from handrail.settings.model import Settings, flatten_settings
from handrail.settings.reference import REFERENCE, SettingReference

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
