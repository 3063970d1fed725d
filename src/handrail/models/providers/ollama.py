"""Ollama on this machine, or where OLLAMA_BASE_URL or OLLAMA_HOST says."""

from handrail.models.chat_completions import connect_through, open_sdk
from handrail.models.connection import ModelConnection
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from pydantic_ai.providers.ollama import OllamaProvider  # noqa: PLC0415

    return connect_through(place, OllamaProvider(openai_client=open_sdk(place)), **_KNOWN)


_KNOWN = {"openai_chat_supports_max_completion_tokens": False}

OLLAMA = Provider(
    name="ollama",
    extra="openai",
    modules=("openai", "pydantic_ai.models.openai", "pydantic_ai.providers.ollama"),
    address="http://localhost:11434/v1",
    address_variables=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
    path="/v1",
    keys=("OLLAMA_API_KEY",),
    connect=connect,
    lists="`ollama list` shows what is there, `ollama pull` fetches more",
    window=32_000,
    local=True,
)
