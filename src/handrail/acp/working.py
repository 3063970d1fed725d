"""The model that is at work in a session, and those that could be."""

from contextlib import suppress

from handrail.acp.hosting import AgentHost
from handrail.agent.loop import Agent, Person
from handrail.agent.turn import Turn
from handrail.async_api import AsyncHandrail
from handrail.models.base import Model, ModelError
from handrail.protocol.messages import AssistantMessage
from handrail.settings import LoadedSettings


class SessionModel:
    """Looks for the model at the first prompt: a session can be opened that has none yet."""

    def __init__(self, rail: AsyncHandrail, loaded: LoadedSettings, host: AgentHost, person: Person) -> None:
        self._rail, self._loaded, self._host, self._person = rail, loaded, host, person
        self.models: tuple[str, ...] = ()
        """The names of those that may be chosen."""
        self.model: str | None = None
        """The one that is asked from the next prompt on."""
        self._model: tuple[str | None, Model] | None = None
        self._agent: Agent | None = None

    async def look_for_models(self) -> None:
        """Finds out which models there are to choose from."""
        before = await self._rail.in_pool(self._last_answer)
        self.models = self._host.models(self._loaded, before.model if before is not None else None)
        self.model = self.models[0] if self.models else None

    async def agent(self) -> Agent:
        """The loop with the model that is chosen now."""
        if self._agent is None or self._model is None or self._model[0] != self.model:
            model = self._host.model(self._loaded, self.model)
            await self.close()
            self._agent = Agent(self._rail, model, limits=self._host.limits(self._loaded), person=self._person)
            self._model = self.model, model
        return self._agent

    def cancel(self) -> None:
        """Ends the turn that is at work."""
        if self._agent is not None:
            self._agent.cancel()

    async def close(self) -> None:
        """Lets go of the model's connections."""
        if self._model is not None:
            with suppress(ModelError):
                await self._model[1].close()

    async def find_finish_reason(self) -> str | None:
        """How the last answer ended."""
        last = await self._rail.in_pool(self._last_answer)
        return last.finish if last is not None else None

    def has_spent(self, turn: Turn) -> bool:
        """Whether a turn used all its tokens."""
        most = self._host.limits(self._loaded).tokens
        return most is not None and turn.tokens >= most

    def window(self) -> int | None:
        """How many tokens the model takes, where that is known."""
        with suppress(ModelError):
            return self._model[1].window if self._model is not None else None
        return None

    def _last_answer(self) -> AssistantMessage | None:
        said = (one.message for one in reversed(self._rail.conversation.messages()))
        return next((one for one in said if isinstance(one, AssistantMessage)), None)
