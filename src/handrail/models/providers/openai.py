"""OpenAI, and with OPENAI_BASE_URL whoever else speaks its chat-completions wire."""

from handrail.models.chat_completions import connect_through, open_sdk
from handrail.models.connection import ModelConnection
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    provider = OpenAIProvider(openai_client=open_sdk(place))
    # Others know only the older of the two names of that field.
    known = {} if place.usual else {"openai_chat_supports_max_completion_tokens": False}
    return connect_through(place, provider, **known)


OPENAI = Provider(
    name="openai",
    extra="openai",
    modules=("openai", "pydantic_ai.models.openai"),
    address="https://api.openai.com/v1",
    address_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
    keys=("OPENAI_API_KEY",),
    beginnings=("gpt-", "chatgpt-", "o1", "o3", "o4"),
    connect=connect,
    lists="GET /v1/models lists its names",
    window=128_000,
)
