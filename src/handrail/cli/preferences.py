"""The settings a command works with."""

import os
from argparse import Namespace

from handrail.cli.output import note
from handrail.settings import Loaded, Settings, load


def loaded_for(
    options: Namespace, mode: str | None = None, workspace: str | None = None, *, review: bool = True
) -> Loaded:
    """What all layers say, the project's too where a workspace is named; what a person should know goes to stderr."""
    loaded = load(os.environ, {"mode": mode}, workspace, review=review)
    if not options.quiet:
        for text in loaded.notes:
            note(text)
    return loaded


def settings_for(options: Namespace, mode: str | None = None, workspace: str | None = None) -> Settings:
    """The same, without where it comes from and without rules."""
    return loaded_for(options, mode, workspace).settings


def project_folder(options: Namespace) -> str | None:
    """The folder whose project is meant, said or not; None where the current folder cannot be a workspace."""
    if options.workspace:
        return options.workspace
    try:
        folder = os.getcwd()
    except OSError:
        return None
    return None if folder in {"/", os.path.realpath(os.path.expanduser("~"))} else folder
