"""The chat-completions wire of OpenAI, which many others speak as well."""

from typing import TYPE_CHECKING, Any

from handrail.models.connection import ModelConnection, open_client
from handrail.models.provider import Endpoint

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from pydantic_ai.providers import Provider as WireProvider

_NO_KEY = "none"
"""The client wants one, also for a server that asks for none."""


def open_sdk(place: Endpoint) -> "AsyncOpenAI":
    """OpenAI's client for one place. It tries nothing again: the loop does, and tells of it."""
    from openai import AsyncOpenAI  # noqa: PLC0415

    client = open_client(place)
    return AsyncOpenAI(
        api_key=place.key.reveal() if place.key else _NO_KEY,
        base_url=place.address,
        http_client=client,
        timeout=client.timeout,
        max_retries=0,
    )


def connect_through(place: Endpoint, provider: "WireProvider[AsyncOpenAI]", **known: Any) -> ModelConnection:
    """Opens the way to one model of a server that speaks this wire."""
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415

    profile: Any = {**PROFILE, **known}
    model = OpenAIChatModel(place.model, provider=provider, profile=profile)
    return ModelConnection(model=model, client=get_http_client(provider), settings={})


def get_http_client(provider: "WireProvider[AsyncOpenAI]") -> Any:
    """The HTTP client beneath OpenAI's."""
    return provider.client._client  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


PROFILE: dict[str, Any] = {
    # The tools' schemas go out as they are.
    "json_schema_transformer": None,
    # An answer that breaks off looks like one that is whole, but for this.
    "openai_chat_streaming_requires_finish_reason": True,
}
