"""Which model a name means: `anthropic:claude-…`, `ollama:qwen3:8b`, or `gpt-…`, which only one provider has."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from urllib.parse import urlsplit

from handrail.models.model import Model, ModelError
from handrail.models.provider import Endpoint, Provider, Timeouts, find_first_set
from handrail.models.providers import OTHER_NAMES, PROVIDERS


def find_model(
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    window: int | None = None,
    patience: Timeouts | None = None,
) -> Model:
    """The model of that name. ModelError at once where the name, the key or the package is missing; nothing is sent."""
    from handrail.models.loading import check_installed  # noqa: PLC0415
    from handrail.models.wired import ProviderModel  # noqa: PLC0415

    place = resolve_endpoint(name, os.environ if environment is None else environment, patience or Timeouts())
    check_installed(place.provider)
    return ProviderModel(place, window)


def resolve_endpoint(name: str, environment: Mapping[str, str], patience: Timeouts) -> Endpoint:
    """Where the model of that name is, by the variables of its provider."""
    provider, model = split_name(name)
    key = provider.key(environment)
    if key is None and not provider.local:
        said = " or ".join(provider.keys)
        raise ModelError("UNAVAILABLE", f"No key for {provider.name}. Set {said}, or use a local model: ollama:….")
    return Endpoint(provider=provider, model=model, address=_address(provider, environment), key=key, patience=patience)


def split_name(name: str) -> tuple[Provider, str]:
    """The provider and the model that a name means."""
    before, colon, model = name.strip().partition(":")
    provider = PROVIDERS.get(OTHER_NAMES.get(before.lower(), before.lower())) if colon else _guess(before)
    if provider is None:
        raise ModelError("NOT_FOUND", _unknown(name.strip(), before, colon))
    if not (model if colon else before):
        raise ModelError("NOT_FOUND", f"{name!r} names no model. {provider.lists}.")
    return provider, model if colon else before


def _guess(model: str) -> Provider | None:
    found = [provider for provider in PROVIDERS.values() if model.startswith(provider.beginnings or ("\0",))]
    return found[0] if len(found) == 1 else None


def _unknown(name: str, before: str, colon: str) -> str:
    if not name:
        return "No model is named. Use --model provider:model, such as anthropic:claude-… or ollama:…."
    known = ", ".join(f"{one}:…" for one in PROVIDERS)
    near = get_close_matches(before.lower(), [*PROVIDERS, *OTHER_NAMES], 1, 0.7) if colon else []
    if near:
        return f"There is no provider {before!r}. Did you mean {near[0]}:{name.partition(':')[2]}?"
    if colon:
        return f"There is no provider {before!r}; there are {known}. For a local model: ollama:{name}."
    return f"{name!r} does not say whose model it is. Name the provider: one of {known}."


def _address(provider: Provider, environment: Mapping[str, str]) -> str:
    given = find_first_set(provider.address_variables, environment)
    if not given:
        return provider.address
    address = given if "://" in given else f"http://{given}"
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        said = " or ".join(provider.address_variables)
        raise ModelError("INVALID_ARGUMENT", f"The address of {provider.name} is no http address. Look at {said}.")
    return address.rstrip("/") + (provider.path if parts.path in {"", "/"} else "")
