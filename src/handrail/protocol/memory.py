"""What a model noted about a workspace, for the sessions that come after."""

from handrail.protocol.wire import Time, Wire


class Memory(Wire, frozen=True, omit_defaults=False):
    """One note. A model wrote it, perhaps misled by what it read: it is never of higher rank than a person's words."""

    id: str
    """What changes and removes it: `m-7fq2k`."""
    title: str
    content: str
    time: Time
    """When it was last changed."""
    session_id: str
    """The session that wrote it."""
