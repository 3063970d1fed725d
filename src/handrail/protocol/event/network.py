"""network: a command tried to reach a host."""

from handrail.protocol.event.header import Event


class Network(Event, frozen=True, kw_only=True, tag="network"):
    """One connection attempt, let through or not."""

    host: str
    port: int
    allowed: bool
    reason: str
    """The rule that let it through or stopped it, in words."""
    tool_call_id: str | None = None
    """The call whose command it was."""
    process: str | None = None
    """The process session that it was of, where the command went on after its call."""
