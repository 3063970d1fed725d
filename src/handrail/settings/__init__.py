"""Finds, reads and merges the layers of settings."""

from handrail.settings.errors import SettingsError
from handrail.settings.load import Loaded, load
from handrail.settings.location import state_folder, user_file
from handrail.settings.model import Settings, flat
from handrail.settings.reference import REFERENCE, Entry

__all__ = ["REFERENCE", "Entry", "Loaded", "Settings", "SettingsError", "flat", "load", "state_folder", "user_file"]
