"""Lists the providers of models, with everything that is known before their packages are imported."""

import threading
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.models.base import ModelError
from handrail.protocol.errors import build_install_command, build_pip_command

if TYPE_CHECKING:
    from httpx2 import AsyncClient
    from pydantic_ai.models import Model as PydanticModel

# Two threads that import the same packages from different ends can see them half initialized.
_import_lock = threading.Lock()
_NO_KEY = "none"
"""The client needs a key, even if the server does not."""


class ApiKey:
    """A key that no repr shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        return self._value

    def __repr__(self) -> str:
        return "…"


class Timeouts(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds."""

    connect: float = 10
    silence: float = 300
    """Without any byte. A model sends none while it thinks."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one address."""

    provider: "Provider"
    model: str
    address: str
    key: ApiKey | None
    patience: Timeouts

    @property
    def name(self) -> str:
        """Provider and model."""
        return f"{self.provider.name}:{self.model}"

    @property
    def usual(self) -> bool:
        """Whether the address is the provider's own."""
        return self.address == self.provider.address


class ModelConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A connected model. It belongs to the event loop that first uses it."""

    model: "PydanticModel[Any]"
    client: "AsyncClient"
    settings: dict[str, Any] = {}
    """Settings of every request."""
    rich_results: bool = False
    """Whether a result on this wire can hold pictures and a failure. Otherwise it is text, and pictures follow it."""

    @property
    def window(self) -> int | None:
        """The model's window, if it is known."""
        return self.model.profile.get("context_window")


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    extra: str
    """The extra in `pip install 'handrail[…]'`."""
    modules: tuple[str, ...]
    """The modules to import, in this order."""
    address: str
    connect: Callable[[Endpoint], ModelConnection]
    lists: str
    """How to list its models, as a sentence."""
    window: int
    """Tokens, for a model with an unknown window."""
    keys: tuple[str, ...] = ()
    """Environment variables for the key. The first one that is set counts."""
    address_variables: tuple[str, ...] = ()
    path: str = ""
    """Added to an address that is only a host."""
    beginnings: tuple[str, ...] = ()
    """Prefixes of model names that only this provider has."""
    local: bool = False
    """Whether it runs on the user's machine and needs no key."""
    priced: bool = False
    """Whether its prices are known for every address."""
    profile: dict[str, Any] = {}
    """Features of its chat-completions wire."""

    def key(self, environment: Mapping[str, str]) -> ApiKey | None:
        value = find_first_set(self.keys, environment)
        return ApiKey(value) if value else None


def find_first_set(names: tuple[str, ...], environment: Mapping[str, str]) -> str:
    """The value of the first variable that is set. Empty if none is."""
    return next((value for name in names if (value := environment.get(name, "").strip())), "")


def is_installed(provider: Provider) -> bool:
    top_levels = {module.split(".")[0] for module in provider.modules}
    try:
        return all(find_spec(name) is not None for name in (*top_levels, provider.modules[0]))
    except ImportError:
        return False


def check_installed(provider: Provider) -> None:
    """ModelError if a package is missing. Imports nothing."""
    if not is_installed(provider):
        message = (
            f"The library for {provider.name} is not installed. Install it: {build_install_command(provider.extra)}"
        )
        raise ModelError("UNAVAILABLE", message)


def load_provider(provider: Provider) -> None:
    """Import the packages of a provider. It takes a second or two. ModelError if one is missing."""
    check_installed(provider)
    with _import_lock:
        for module in provider.modules:
            try:
                import_module(module)
            except ImportError as error:
                raise _build_import_error(provider, error) from None


def _build_import_error(provider: Provider, error: ImportError) -> ModelError:
    why = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
    renewal = build_pip_command("-U", f"pydantic-ai-slim[{provider.extra}]")
    message = f"The library for {provider.name} cannot be imported ({why}). Reinstall it: {renewal}"
    return ModelError("UNAVAILABLE", message)


def _connect_anthropic(endpoint: Endpoint) -> ModelConnection:
    from anthropic import AsyncAnthropic  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    client = _open_client(endpoint)
    sdk = AsyncAnthropic(
        api_key=endpoint.key.reveal() if endpoint.key else None,
        base_url=endpoint.address,
        http_client=client,
        timeout=client.timeout,
        max_retries=0,
    )
    provider = AnthropicProvider(anthropic_client=sdk)
    model = AnthropicModel(endpoint.model, provider=provider, profile={"json_schema_transformer": None})
    caching = ("tool_definitions", "instructions", "messages")
    settings = {f"anthropic_cache_{part}": True for part in caching}
    return ModelConnection(model=model, client=client, rich_results=True, settings=settings)


def _connect_google(endpoint: Endpoint) -> ModelConnection:
    from google.genai.types import HttpRetryOptions  # noqa: PLC0415
    from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415
    from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415

    client = _open_client(endpoint)
    provider = GoogleProvider(
        api_key=endpoint.key.reveal() if endpoint.key else "",
        http_client=client,
        base_url=endpoint.address,
        retry_options=HttpRetryOptions(attempts=1),
    )
    return ModelConnection(model=GoogleModel(endpoint.model, provider=provider), client=client)


def _connect_chat(endpoint: Endpoint) -> ModelConnection:
    """Connect through the chat-completions wire of OpenAI, which many servers speak."""
    from openai import AsyncOpenAI  # noqa: PLC0415
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415

    client = _open_client(endpoint)
    sdk = AsyncOpenAI(
        api_key=endpoint.key.reveal() if endpoint.key else _NO_KEY,
        base_url=endpoint.address,
        http_client=client,
        timeout=client.timeout,
        max_retries=0,  # the agent loop retries and reports it
    )
    name, model_class = endpoint.provider.name, OpenAIChatModel
    profile: Any = {**_CHAT_PROFILE, **endpoint.provider.profile}
    if name == "openrouter":
        from pydantic_ai.models.openrouter import OpenRouterModel  # noqa: PLC0415

        model_class = OpenRouterModel
    elif name == "openai" and not endpoint.usual:
        profile |= _OLD_LIMIT
    provider: Any = infer_provider_class("openai" if name == "lmstudio" else name)
    model = model_class(endpoint.model, provider=provider(openai_client=sdk), profile=profile)
    return ModelConnection(model=model, client=client)


def _open_client(endpoint: Endpoint) -> "AsyncClient":
    from handrail.models.http import open_client  # noqa: PLC0415

    return open_client(endpoint.address, connect=endpoint.patience.connect, silence=endpoint.patience.silence)


_CHAT_PROFILE = {
    "json_schema_transformer": None,
    # Only a finish reason tells a complete response from an interrupted one.
    "openai_chat_streaming_requires_finish_reason": True,
}
_OLD_LIMIT = {"openai_chat_supports_max_completion_tokens": False}
"""For servers that know only the older name of the field."""
_CHAT_MODULES = ("openai", "pydantic_ai.models.openai")

_ALL = (
    Provider(
        name="anthropic",
        extra="anthropic",
        modules=("anthropic", "pydantic_ai.models.anthropic"),
        address="https://api.anthropic.com",
        address_variables=("ANTHROPIC_BASE_URL",),
        keys=("ANTHROPIC_API_KEY",),
        beginnings=("claude-",),
        connect=_connect_anthropic,
        lists="Its names are listed at https://platform.claude.com/docs/en/about-claude/models",
        window=200_000,
        priced=True,
    ),
    Provider(
        name="openai",
        extra="openai",
        modules=_CHAT_MODULES,
        address="https://api.openai.com/v1",
        address_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        keys=("OPENAI_API_KEY",),
        beginnings=("gpt-", "chatgpt-", "o1", "o3", "o4"),
        connect=_connect_chat,
        lists="GET /v1/models lists its names",
        window=128_000,
    ),
    Provider(
        name="google",
        extra="google",
        modules=("google.genai", "pydantic_ai.models.google"),
        address="https://generativelanguage.googleapis.com",
        address_variables=("GOOGLE_GEMINI_BASE_URL",),
        keys=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
        beginnings=("gemini-",),
        connect=_connect_google,
        lists="Its names are listed at https://ai.google.dev/gemini-api/docs/models",
        window=1_000_000,
        priced=True,
    ),
    Provider(
        name="openrouter",
        extra="openai",
        modules=("openai", "pydantic_ai.models.openrouter"),
        address="https://openrouter.ai/api/v1",
        address_variables=("OPENROUTER_BASE_URL",),
        keys=("OPENROUTER_API_KEY",),
        connect=_connect_chat,
        lists="Its names are listed at https://openrouter.ai/models",
        window=128_000,
        priced=True,
    ),
    Provider(
        name="ollama",
        extra="openai",
        modules=(*_CHAT_MODULES, "pydantic_ai.providers.ollama"),
        address="http://localhost:11434/v1",
        address_variables=("OLLAMA_BASE_URL", "OLLAMA_HOST"),
        path="/v1",
        keys=("OLLAMA_API_KEY",),
        connect=_connect_chat,
        lists="`ollama list` lists the models, `ollama pull` fetches more",
        window=32_000,
        local=True,
        profile=_OLD_LIMIT,
    ),
    Provider(
        name="lmstudio",
        extra="openai",
        modules=_CHAT_MODULES,
        address="http://localhost:1234/v1",
        address_variables=("LMSTUDIO_BASE_URL", "LM_STUDIO_BASE_URL"),
        keys=("LMSTUDIO_API_KEY", "LM_API_TOKEN"),
        connect=_connect_chat,
        lists="`lms ls` lists the models",
        window=32_000,
        local=True,
        profile={**_OLD_LIMIT, "openai_chat_supports_multiple_system_messages": False},
    ),
    # vLLM, llama.cpp's server and similar ones.
    Provider(
        name="vllm",
        extra="openai",
        modules=(*_CHAT_MODULES, "pydantic_ai.providers.vllm"),
        address="http://localhost:8000/v1",
        address_variables=("VLLM_BASE_URL",),
        keys=("VLLM_API_KEY",),
        connect=_connect_chat,
        lists="GET /v1/models shows what it serves",
        window=32_000,
        local=True,
        profile=_OLD_LIMIT,
    ),
)
PROVIDERS = {provider.name: provider for provider in _ALL}
OTHER_NAMES = {"gemini": "google", "claude": "anthropic", "lm-studio": "lmstudio"}
