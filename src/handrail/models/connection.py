"""An open way to a model: pydantic-ai's class for its wire, and the HTTP client beneath it."""

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from handrail.models.provider import Endpoint

if TYPE_CHECKING:
    from httpx2 import AsyncClient, Response
    from pydantic_ai.models import Model

_LOOPBACK = {"localhost", "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 (looked up, never bound)
_begun: "ContextVar[list[Response] | None]" = ContextVar("begun", default=None)


class ModelConnection(msgspec.Struct, frozen=True, kw_only=True):
    """What a question goes through. It belongs to the event loop that it is first used in."""

    model: "Model[Any]"
    client: "AsyncClient"
    settings: dict[str, Any]
    """What goes with every question."""
    rich_results: bool = False
    """Whether a result on this wire holds pictures and says that it failed. Elsewhere it is a text; pictures follow."""

    @property
    def window(self) -> int | None:
        """What is known of the model's window."""
        return self.model.profile.get("context_window")


def open_client(place: Endpoint) -> "AsyncClient":
    """An HTTP client for one place. It follows no redirect: the key would go along."""
    from httpx2 import AsyncClient, Limits, Timeout  # noqa: PLC0415 (only who asks a model pays for it)

    patience, address = place.patience, urlsplit(place.address)
    return AsyncClient(
        # Reading all certificates takes 0.1 s, and a plain connection shows none.
        verify=address.scheme == "https",
        timeout=Timeout(connect=patience.connect, read=patience.silence, write=patience.silence, pool=None),
        # Many sessions may share a model; each waits for its own answer, not for a free connection.
        limits=Limits(max_connections=None, max_keepalive_connections=20),
        # A proxy of the environment does not lead to a server on this machine.
        trust_env=address.hostname not in _LOOPBACK,
        follow_redirects=False,
        # What is packed has no size before it is unpacked.
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_note]},
    )


def watch_responses() -> "list[Response]":
    """A list of the responses that begin from here on in this context: whoever asks closes them at the end.

    Not every package closes what it reads from when somebody stops listening to it."""
    responses: list[Response] = []
    _begun.set(responses)
    return responses


async def _note(response: "Response") -> None:
    from handrail.models.bounding import limit_response  # noqa: PLC0415 (as above)

    if (responses := _begun.get()) is not None:
        responses.append(response)
    limit_response(response)
