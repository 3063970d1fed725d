"""Google: the Gemini wire."""

from handrail.models.connection import ModelConnection, open_client
from handrail.models.provider import Endpoint, Provider


def connect(place: Endpoint) -> ModelConnection:
    """Opens the way to one model."""
    from google.genai.types import HttpRetryOptions  # noqa: PLC0415
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

    client = open_client(place)
    provider = GoogleProvider(
        api_key=place.key.reveal() if place.key else "",
        http_client=client,
        base_url=place.address,
        retry_options=HttpRetryOptions(attempts=1),
    )
    return ModelConnection(model=GoogleModel(place.model, provider=provider), client=client, settings={})


GOOGLE = Provider(
    name="google",
    extra="google",
    modules=("google.genai", "pydantic_ai.models.google"),
    address="https://generativelanguage.googleapis.com",
    address_variables=("GOOGLE_GEMINI_BASE_URL",),
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    beginnings=("gemini-",),
    connect=connect,
    lists="Its names are listed at https://ai.google.dev/gemini-api/docs/models",
    window=1_000_000,
    priced=True,
)
