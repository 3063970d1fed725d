"""Settings: declared in `model`, read from several layers, merged."""

from handrail.settings.declaration import Field
from handrail.settings.errors import SettingsError
from handrail.settings.load import load
from handrail.settings.merge import LoadedSettings, Project
from handrail.settings.model import Settings, list_settings
from handrail.settings.paths import MANAGED_FILE, PROJECT_FILE, resolve_state_folder, resolve_user_file

__all__ = [
    "MANAGED_FILE",
    "PROJECT_FILE",
    "Field",
    "LoadedSettings",
    "Project",
    "Settings",
    "SettingsError",
    "list_settings",
    "load",
    "resolve_state_folder",
    "resolve_user_file",
]
