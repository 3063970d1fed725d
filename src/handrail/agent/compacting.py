"""Makes the talk shorter when it fills the model's window; the journal keeps all of it."""

from handrail.agent.limits import TurnLimits
from handrail.agent.talk import Talk
from handrail.async_rail import AsyncHandrail
from handrail.models.model import Model


async def compact_if_full(rail: AsyncHandrail, model: Model, talk: Talk, limits: TurnLimits) -> None:
    """Puts a summary in the place of the older part of the talk, where it is nearly too long for the model."""
