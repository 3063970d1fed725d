"""Which workspace, and which of its sessions, a command is about."""

import os
from argparse import Namespace

from handrail.cli.exits import CommandFailed
from handrail.cli.output import print_note


def resolve_workspace(options: Namespace) -> str:
    """The folder that was named, or the current one, said aloud."""
    if options.workspace is None:
        return _current_folder(told=not options.json)
    if not options.workspace:
        raise CommandFailed("--workspace is empty; name a folder, or leave it out to work in the current one")
    return options.workspace


def _current_folder(*, told: bool) -> str:
    try:
        folder = os.getcwd()
    except OSError as error:
        raise CommandFailed(
            f"the current folder cannot be used: {error.strerror}. Name one with --workspace."
        ) from None
    if folder == "/" or folder == os.path.realpath(os.path.expanduser("~")):
        raise CommandFailed(f"{folder} as a whole is no workspace unless you say so: --workspace {folder}")
    if told:
        print_note(f"workspace: {folder} (the current folder)")
    return folder
