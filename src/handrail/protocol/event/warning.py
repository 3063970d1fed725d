"""warning: something is not as it should be, and work goes on."""

from handrail.protocol.event.header import Event


class Warning(Event, frozen=True, kw_only=True, tag="warning"):  # noqa: A001  the wire calls it warning
    """What, and which rule or code it comes from."""

    code: str
    """An error code or the id of a rule."""
    text: str
    tool_call_id: str | None = None
    """The call it is about, if it is about one."""
