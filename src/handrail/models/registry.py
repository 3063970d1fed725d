"""Finds a model by its name: `anthropic:claude-…`, `ollama:qwen3:8b`, or a name of one provider only, `gpt-…`."""

import os
import threading
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

from handrail.models.base import Model, ModelError
from handrail.models.provider_model import ProviderModel
from handrail.models.providers import (
    OTHER_NAMES,
    PROVIDERS,
    Endpoint,
    Provider,
    Timeouts,
    check_installed,
    find_first_set,
    load_provider,
)
from handrail.protocol.text import find_similar


def find_model(
    name: str,
    environment: Mapping[str, str] | None = None,
    *,
    window: int | None = None,
    patience: Timeouts | None = None,
) -> Model:
    """The model of that name. ModelError if the name, the key or the package is missing. Sends nothing."""
    endpoint = resolve_endpoint(name, os.environ if environment is None else environment, patience or Timeouts())
    check_installed(endpoint.provider)
    return ProviderModel(endpoint, window)


def warm_up(name: str) -> threading.Thread | None:
    """Import the packages for a model in a thread. A request meanwhile waits for them. None if the name is unknown."""
    try:
        provider, _ = split_name(name)
    except ModelError:
        return None
    thread = threading.Thread(target=_load_quietly, args=(provider,), name="handrail-models", daemon=True)
    thread.start()
    return thread


def resolve_endpoint(name: str, environment: Mapping[str, str], patience: Timeouts) -> Endpoint:
    """The endpoint of a model, by the environment variables of its provider."""
    provider, model = split_name(name)
    key = provider.key(environment)
    if key is None and not provider.local:
        variables = " or ".join(provider.keys)
        message = f"No key for {provider.name}. Set {variables}, or use a local model: ollama:…."
        raise ModelError("UNAVAILABLE", message)
    address = _find_address(provider, environment)
    return Endpoint(provider=provider, model=model, address=address, key=key, patience=patience)


def split_name(name: str) -> tuple[Provider, str]:
    """The provider and the model of a name."""
    before, colon, model = name.strip().partition(":")
    provider = PROVIDERS.get(OTHER_NAMES.get(before.lower(), before.lower())) if colon else _guess_provider(before)
    if provider is None:
        raise ModelError("NOT_FOUND", _describe_unknown(name.strip(), before, colon))
    if not (model if colon else before):
        raise ModelError("NOT_FOUND", f"{name!r} does not name a model. {provider.lists}.")
    return provider, model if colon else before


def _guess_provider(model: str) -> Provider | None:
    found = [provider for provider in PROVIDERS.values() if model.startswith(provider.beginnings or ("\0",))]
    return found[0] if len(found) == 1 else None


def _describe_unknown(name: str, before: str, colon: str) -> str:
    if not name:
        return "No model is chosen. Use --model provider:model, such as anthropic:claude-… or ollama:…."
    known = ", ".join(f"{one}:…" for one in PROVIDERS)
    if colon and (near := find_similar(before.lower(), [*PROVIDERS, *OTHER_NAMES], 0.7)):
        return f"There is no provider {before!r}. Did you mean {near}:{name.partition(':')[2]}?"
    if colon:
        return f"There is no provider {before!r}; there are {known}. For a local model: ollama:{name}."
    return f"{name!r} does not name a provider. Add one of {known}."


def _find_address(provider: Provider, environment: Mapping[str, str]) -> str:
    given = find_first_set(provider.address_variables, environment)
    if not given:
        return provider.address
    address = given if "://" in given else f"http://{given}"
    parts = urlsplit(address)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        variables = " or ".join(provider.address_variables)
        raise ModelError(
            "INVALID_ARGUMENT", f"The address of {provider.name} is not an http address. Check {variables}."
        )
    return address.rstrip("/") + (provider.path if parts.path in {"", "/"} else "")


def _load_quietly(provider: Provider) -> None:
    with suppress(ModelError):  # a request reports it
        load_provider(provider)
