"""mode: the session's mode was set."""

from handrail.protocol.decision import Mode as ModeName
from handrail.protocol.event.header import Event


class Mode(Event, frozen=True, kw_only=True, tag="mode"):
    """The mode from here on."""

    mode: ModeName
