"""Anthropic: the messages wire."""

from handrail.models.connection import ModelConnection, open_client
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from anthropic import AsyncAnthropic  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    client = open_client(place)
    sdk = AsyncAnthropic(
        api_key=place.key.reveal() if place.key else None,
        base_url=place.address,
        http_client=client,
        timeout=client.timeout,
        max_retries=0,
    )
    model = AnthropicModel(
        place.model,
        provider=AnthropicProvider(anthropic_client=sdk),
        profile={"json_schema_transformer": None},
    )
    return ModelConnection(
        model=model,
        client=client,
        rich_results=True,
        settings={
            "anthropic_cache_tool_definitions": True,
            "anthropic_cache_instructions": True,
            "anthropic_cache_messages": True,
        },
    )


ANTHROPIC = Provider(
    name="anthropic",
    extra="anthropic",
    modules=("anthropic", "pydantic_ai.models.anthropic"),
    address="https://api.anthropic.com",
    address_variables=("ANTHROPIC_BASE_URL",),
    keys=("ANTHROPIC_API_KEY",),
    beginnings=("claude-",),
    connect=connect,
    lists="Its names are listed at https://platform.claude.com/docs/en/about-claude/models",
    window=200_000,
    priced=True,
)
