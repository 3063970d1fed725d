"""The settings a command works with."""

import os
from argparse import Namespace

from handrail.cli.output import note
from handrail.settings import Settings, load


def settings_for(options: Namespace, mode: str | None = None) -> Settings:
    """What flags, environment and user file say; what a person should know about it goes to stderr."""
    loaded = load(os.environ, {"mode": mode})
    if not options.quiet:
        for text in loaded.notes:
            note(text)
    return loaded.settings
