"""Every provider. One more: a file here, and its line in the table."""

from handrail.models.provider import Provider
from handrail.models.providers.anthropic import ANTHROPIC
from handrail.models.providers.google import GOOGLE
from handrail.models.providers.lmstudio import LMSTUDIO
from handrail.models.providers.ollama import OLLAMA
from handrail.models.providers.openai import OPENAI
from handrail.models.providers.openrouter import OPENROUTER
from handrail.models.providers.vllm import VLLM

PROVIDERS: dict[str, Provider] = {
    provider.name: provider for provider in (ANTHROPIC, OPENAI, GOOGLE, OPENROUTER, OLLAMA, LMSTUDIO, VLLM)
}
OTHER_NAMES: dict[str, str] = {"gemini": "google", "claude": "anthropic", "lm-studio": "lmstudio"}
