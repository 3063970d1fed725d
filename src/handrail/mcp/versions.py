"""The versions of the protocol that are spoken."""

HANDSHAKE = ("2025-06-18", "2025-11-25")
"""Those that begin with `initialize`, the oldest first."""
MODERN = ("2026-07-28",)
"""Those without a handshake: every request says who asks and what it can do."""
SUPPORTED = (*HANDSHAKE, *MODERN)


def negotiate_version(asked: object) -> str:
    """The version that a handshake comes to: the one that was asked for, else our latest that has a handshake."""
    return asked if isinstance(asked, str) and asked in HANDSHAKE else HANDSHAKE[-1]


def is_modern(version: str) -> bool:
    """Whether it is one without a handshake."""
    return version in MODERN
