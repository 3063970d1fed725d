"""What a simple command does, as far as its words tell."""

from typing import Literal

import msgspec

from handrail.protocol.decision import Access

Effect = Literal["proven", "write", "delete", "network", "unproven"]
"""`proven`: only reads. `write`, `delete`: does just that to the paths it uses. `network`: reaches other machines.
`unproven`: may do anything."""


class PathUse(msgspec.Struct, frozen=True):
    """A path that a command names, as it is spelled there."""

    path: str
    access: Access
    is_glob: bool = False
    """A pattern: it stands for whatever matches it."""
    is_certainly_path: bool = True
    """Whether the word is a path for certain; of an unknown program any operand may be one."""


class Classification(msgspec.Struct, frozen=True):
    """What a simple command does, the rule that says so, and why in words."""

    effect: Effect
    rule: str
    reason: str
    uses: tuple[PathUse, ...] = ()
    grant: str = ""
    """The class of commands that a person may allow for good: `git commit`. Empty where none may be."""


class BuiltinDeny(msgspec.Struct, frozen=True):
    """Why a command is never run, whatever the mode: the rule, and what it would do in words."""

    rule: str
    reason: str
