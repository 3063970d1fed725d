"""How a connection ends: whoever sees it first says why."""

import asyncio


class CloseReason:
    """Of one connection; to be used in the event loop alone."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why it is over, in words; None as long as it is not."""
        self.final = False
        """Whether there is no use in trying again."""
        self.was_up = False
        """Whether there was a connection that could end."""
        self.sure = False
        """Whether it was ended from here for that reason: how its program ended then says nothing."""
        self._vague = False
        self._over = asyncio.Event()

    def note(self, reason: str, *, final: bool = False, vague: bool = False, sure: bool = False) -> None:
        """It is over. The first reason counts, since others follow from it; one that is `vague` only until there is
        another."""
        if self.reason is None or (self._vague and not vague):
            self.reason, self.final, self.sure, self._vague = reason, final, sure, vague
        self._over.set()

    async def wait(self) -> None:
        """Until it is over."""
        await self._over.wait()
