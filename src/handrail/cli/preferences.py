"""The settings a command works with."""

import os
from argparse import Namespace
from collections.abc import Mapping

import msgspec

from handrail.cli.output import note
from handrail.protocol.error import UsageError
from handrail.settings import Loaded, Settings, load


def loaded_for(
    options: Namespace,
    mode: str | None = None,
    workspace: str | None = None,
    *,
    flags: Mapping[str, object] | None = None,
    review: bool = True,
) -> Loaded:
    """What all layers say, the project's too where a workspace is named; what a person should know goes to stderr."""
    loaded = load(os.environ, {"mode": mode, **(flags or {})}, workspace, review=review)
    if not options.quiet:
        for text in loaded.notes:
            note(text)
    return loaded


def with_unknown_tools(loaded: Loaded) -> Loaded:
    """The same, with a remark on rules about tools that are not here: a program may bring its own."""
    if all(rule.tool == "exec" for rule in loaded.rules):
        return loaded
    from handrail.runtime.offering import offered  # noqa: PLC0415  few rules are about other tools
    from handrail.settings.policy import unknown_tools  # noqa: PLC0415

    try:
        names = offered(loaded.settings).registered
    except UsageError:
        return loaded
    return msgspec.structs.replace(loaded, notes=(*loaded.notes, *unknown_tools(loaded, names)))


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
