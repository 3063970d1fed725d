"""OpenRouter: the models of many others behind one key."""

from typing import Any, cast

from handrail.models.chat_completions import PROFILE, get_http_client, open_sdk
from handrail.models.connection import ModelConnection
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from pydantic_ai.models.openrouter import OpenRouterModel  # noqa: PLC0415
    from pydantic_ai.providers.openrouter import OpenRouterProvider  # noqa: PLC0415

    provider = OpenRouterProvider(openai_client=open_sdk(place))
    model = OpenRouterModel(place.model, provider=provider, profile=cast("Any", PROFILE))
    return ModelConnection(model=model, client=get_http_client(provider), settings={})


OPENROUTER = Provider(
    name="openrouter",
    extra="openai",
    modules=("openai", "pydantic_ai.models.openrouter"),
    address="https://openrouter.ai/api/v1",
    address_variables=("OPENROUTER_BASE_URL",),
    keys=("OPENROUTER_API_KEY",),
    connect=connect,
    lists="Its names are listed at https://openrouter.ai/models",
    window=128_000,
    priced=True,
)
