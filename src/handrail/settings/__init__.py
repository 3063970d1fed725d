"""Finds, reads and merges the layers of settings."""

from handrail.settings.errors import SettingsError
from handrail.settings.files import Project
from handrail.settings.load import Loaded, load
from handrail.settings.location import MANAGED_FILE, PROJECT_FILE, state_folder, user_file
from handrail.settings.model import Settings, flat
from handrail.settings.reference import REFERENCE, Entry

__all__ = [
    "MANAGED_FILE",
    "PROJECT_FILE",
    "REFERENCE",
    "Entry",
    "Loaded",
    "Project",
    "Settings",
    "SettingsError",
    "flat",
    "load",
    "state_folder",
    "user_file",
]
