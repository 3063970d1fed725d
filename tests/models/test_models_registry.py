"""Which model a name means, and what is missing: told at once, in one line, before anything is imported or sent."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from handrail.models import find_model, warm_up
from handrail.models.base import ModelError
from handrail.models.providers import PROVIDERS, Timeouts
from handrail.models.registry import resolve_endpoint, split_name

KEYS = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}


def refused(name: str, environment: Mapping[str, str] = KEYS) -> ModelError:
    with pytest.raises(ModelError) as raised:
        find_model(name, environment)
    assert "\n" not in raised.value.message
    return raised.value


@pytest.mark.parametrize(
    ("name", "provider", "model"),
    [
        ("anthropic:claude-sonnet-5", "anthropic", "claude-sonnet-5"),
        ("claude-sonnet-5", "anthropic", "claude-sonnet-5"),
        ("gpt-6-sol", "openai", "gpt-6-sol"),
        ("o3-mini", "openai", "o3-mini"),
        ("gemini-3-pro", "google", "gemini-3-pro"),
        ("gemini:gemini-3-pro", "google", "gemini-3-pro"),
        ("Google:gemini-3-pro", "google", "gemini-3-pro"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b"),
        ("openrouter:qwen/qwen3:free", "openrouter", "qwen/qwen3:free"),
        (" lmstudio:x ", "lmstudio", "x"),
        ("vllm:Qwen/Qwen3", "vllm", "Qwen/Qwen3"),
    ],
)
def test_names(name: str, provider: str, model: str) -> None:
    found, named = split_name(name)
    assert (found.name, named) == (provider, model)
    assert find_model(name, KEYS).name == f"{provider}:{model}"


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("antropic:claude-sonnet-5", "Did you mean anthropic:claude-sonnet-5?"),
        ("opena:gpt-6", "Did you mean openai:gpt-6?"),
        ("qwen3:8b", "ollama:qwen3:8b"),
        ("llama", "one of anthropic:…, openai:…"),
        ("", "No model is chosen"),
        ("openai:", "does not name a model"),
        (":x", "There is no provider ''"),
    ],
)
def test_names_that_mean_nothing_are_answered_with_the_nearest_that_do(name: str, hint: str) -> None:
    error = refused(name)
    assert (error.code, error.retryable) == ("NOT_FOUND", False)
    assert hint in error.message


@pytest.mark.parametrize("provider", [one for one in PROVIDERS.values() if not one.local], ids=lambda one: one.name)
def test_without_a_key_the_variable_is_named(provider) -> None:
    for environment in ({}, {provider.keys[0]: " "}):
        error = refused(f"{provider.name}:m", environment)
        assert (error.code, error.retryable) == ("UNAVAILABLE", False)
        assert error.message.startswith(f"No key for {provider.name}. Set {provider.keys[0]}")


@pytest.mark.parametrize("provider", [one for one in PROVIDERS.values() if one.local], ids=lambda one: one.name)
def test_local_servers_need_no_key(provider) -> None:
    assert find_model(f"{provider.name}:m", {}).name == f"{provider.name}:m"


@pytest.mark.parametrize(
    ("name", "environment", "address"),
    [
        ("openai:m", {}, "https://api.openai.com/v1"),
        ("openai:m", {"OPENAI_BASE_URL": "http://localhost:9/v1/"}, "http://localhost:9/v1"),
        ("ollama:m", {}, "http://localhost:11434/v1"),
        ("ollama:m", {"OLLAMA_HOST": "0.0.0.0:1"}, "http://0.0.0.0:1/v1"),
        ("ollama:m", {"OLLAMA_BASE_URL": "https://there/v1", "OLLAMA_HOST": "x"}, "https://there/v1"),
        ("vllm:m", {"OPENAI_BASE_URL": "http://elsewhere"}, "http://localhost:8000/v1"),
    ],
)
def test_addresses(name: str, environment: dict[str, str], address: str) -> None:
    assert resolve_endpoint(name, {**KEYS, **environment}, Timeouts()).address == address


def test_an_address_that_is_none_names_its_variable() -> None:
    error = refused("openai:m", {**KEYS, "OPENAI_BASE_URL": "file:///etc/passwd"})
    assert error.code == "INVALID_ARGUMENT"
    assert "OPENAI_BASE_URL" in error.message


def test_a_key_is_shown_nowhere() -> None:
    environment = {"OPENAI_API_KEY": "sk-very-secret"}
    place = resolve_endpoint("openai:m", environment, Timeouts())
    assert "secret" not in f"{place!r} {place.key} {find_model('openai:m', environment)!r}"
    assert place.key is not None
    assert place.key.reveal() == "sk-very-secret"


def test_a_window_can_be_set() -> None:
    assert find_model("ollama:m", {}, window=8_000).window == 8_000
    assert find_model("ollama:m", {}).window == 32_000


def run(script: str) -> str:
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return done.stdout.strip()


HEAVY = "{'asyncio', 'pydantic', 'pydantic_ai', 'httpx2', 'openai', 'anthropic', 'google.genai'}"


def test_to_find_a_model_imports_no_provider() -> None:
    found = "import handrail.models as m; m.find_model('ollama:x', {}); m.find_model('gpt-6', {'OPENAI_API_KEY': 'k'})"
    assert run(f"{found}; import sys; print({HEAVY} & set(sys.modules))") == "set()"


def test_warming_up_imports_the_provider_and_no_other() -> None:
    script = "import handrail.models as m; m.warm_up('openai:gpt-6').join()"
    loaded = run(f"{script}; import sys; print(sorted({HEAVY} & set(sys.modules)))")
    assert "'openai'" in loaded
    assert "anthropic" not in loaded
    assert "google" not in loaded


def test_warming_up_for_a_name_that_means_nothing_does_nothing() -> None:
    assert warm_up("nonsense") is None


def test_a_package_that_is_missing_is_named_with_what_brings_it() -> None:
    script = """
import sys
from importlib.machinery import PathFinder
find = PathFinder.find_spec
PathFinder.find_spec = staticmethod(lambda name, *more: None if name == "anthropic" else find(name, *more))
from handrail.models import find_model
try:
    find_model("claude-x", {"ANTHROPIC_API_KEY": "k"})
except Exception as error:
    print(error)
"""
    said = (
        f"The library for anthropic is not installed. Install it: {sys.executable} -m pip install 'handrail[anthropic]'"
    )
    assert run(script) == said
