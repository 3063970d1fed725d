"""The editor, as a session reaches it."""

from typing import NamedTuple

from acp.interfaces import Client


class EditorLink(NamedTuple):
    """Whom to tell and to ask, and how."""

    client: Client
    folder: str
    """The workspace as the editor calls it: a link to it may have another name, and files are told by this one."""
    forms: bool
    """Whether it has forms."""
