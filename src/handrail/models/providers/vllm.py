"""vLLM, llama.cpp's server and their like on this machine, or where VLLM_BASE_URL says."""

from handrail.models.chat_completions import connect_through, open_sdk
from handrail.models.connection import ModelConnection
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from pydantic_ai.providers.vllm import VLLMProvider  # noqa: PLC0415

    return connect_through(place, VLLMProvider(openai_client=open_sdk(place)), **_KNOWN)


_KNOWN = {"openai_chat_supports_max_completion_tokens": False}

VLLM = Provider(
    name="vllm",
    extra="openai",
    modules=("openai", "pydantic_ai.models.openai", "pydantic_ai.providers.vllm"),
    address="http://localhost:8000/v1",
    address_variables=("VLLM_BASE_URL",),
    keys=("VLLM_API_KEY",),
    connect=connect,
    lists="GET /v1/models shows what it serves",
    window=32_000,
    local=True,
)
