"""What a person allowed for good."""

import msgspec


class Grant(msgspec.Struct, frozen=True):
    """A class of commands that asks no more: one simple command by its program and sub-command, as `git commit`."""

    id: str
    command: str


def granted(grants: tuple[Grant, ...], command: str) -> Grant | None:
    """The grant for a class of commands; there is none for commands that have no class."""
    return next((grant for grant in grants if command and grant.command == command), None)
