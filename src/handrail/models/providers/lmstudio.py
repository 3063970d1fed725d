"""LM Studio's server on this machine, or where LMSTUDIO_BASE_URL says."""

from handrail.models.chat_completions import connect_through, open_sdk
from handrail.models.connection import ModelConnection
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    return connect_through(place, OpenAIProvider(openai_client=open_sdk(place)), **_KNOWN)


_KNOWN = {"openai_chat_supports_max_completion_tokens": False, "openai_chat_supports_multiple_system_messages": False}

LMSTUDIO = Provider(
    name="lmstudio",
    extra="openai",
    modules=("openai", "pydantic_ai.models.openai"),
    address="http://localhost:1234/v1",
    address_variables=("LMSTUDIO_BASE_URL", "LM_STUDIO_BASE_URL"),
    keys=("LMSTUDIO_API_KEY", "LM_API_TOKEN"),
    connect=connect,
    lists="`lms ls` shows what is there",
    window=32_000,
    local=True,
)
