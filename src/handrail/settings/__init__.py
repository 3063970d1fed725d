"""Settings: declared in `model`, read from several layers, merged."""

from handrail.settings.declaration import Field
from handrail.settings.errors import SettingsError
from handrail.settings.load import load
from handrail.settings.merge import LoadedSettings
from handrail.settings.model import REFERENCE, Settings
from handrail.settings.paths import MANAGED_FILE, PROJECT_FILE, resolve_state_folder, resolve_user_file
from handrail.settings.trust import Project

__all__ = [
    "MANAGED_FILE",
    "PROJECT_FILE",
    "REFERENCE",
    "Field",
    "LoadedSettings",
    "Project",
    "Settings",
    "SettingsError",
    "load",
    "resolve_state_folder",
    "resolve_user_file",
]
