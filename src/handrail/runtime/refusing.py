"""Gives calls their result without running them: whoever makes them has come to an end."""

import time

from handrail.protocol.call import ToolCall
from handrail.protocol.error import ToolError
from handrail.runtime.session import Flight, Session


def refused_flights(session: Session, calls: tuple[ToolCall, ...], error: ToolError) -> list[Flight]:
    """Flights that fail with this error, each written down and audited like any other call."""
    flights: list[Flight] = []
    for call in calls:
        flight = Flight(call, time.perf_counter(), session.characters)
        flight.batch_id = calls[0].tool_call_id
        flight.tool = session.offer.get(call.name) or flight.tool
        flight.fail(error)
        flights.append(flight)
    return flights
