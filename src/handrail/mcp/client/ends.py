"""How a connection ends: whoever sees it first says why."""

import asyncio


class End:
    """Of one connection; to be used in the event loop alone."""

    def __init__(self) -> None:
        self.reason: str | None = None
        """Why it is over, in words; None as long as it is not."""
        self.final = False
        """Whether there is no use in trying again."""
        self._over = asyncio.Event()

    def note(self, reason: str, *, final: bool = False) -> None:
        """It is over. The first reason counts: the others follow from it."""
        if self.reason is None:
            self.reason, self.final = reason, final
        self._over.set()

    async def wait(self) -> None:
        """Until it is over."""
        await self._over.wait()
