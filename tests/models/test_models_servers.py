"""Everybody who speaks OpenAI's wire: local servers without a key, and those that stand between."""

import asyncio
import json

import pytest
from tests.models.asking import assistant, heard, question, results, text, user
from tests.wires.openai_wire import OpenAIWire

from handrail.models.registry import find_model
from handrail.protocol.messages import CallPart

SERVERS = {
    "ollama:qwen3:8b": "OLLAMA_BASE_URL",
    "lmstudio:some-model": "LMSTUDIO_BASE_URL",
    "vllm:Qwen/Qwen3-Coder": "VLLM_BASE_URL",
    "openrouter:deepseek/deepseek-chat": "OPENROUTER_BASE_URL",
    "openai:whatever-model": "OPENAI_BASE_URL",
}


@pytest.mark.parametrize("name", SERVERS)
def test_a_talk_with_calls_and_thoughts(openai_wire: OpenAIWire, name: str) -> None:
    provider, _, model_name = name.partition(":")
    keys = {} if find_local(provider) else {f"{provider.upper()}_API_KEY": "k"}
    model = find_model(name, {SERVERS[name]: openai_wire.base_url, **keys})
    openai_wire.says("I look.", reasoning="Hm.", reasoning_field="reasoning", calls=[("", "read", '{"path": "a"}')])
    openai_wire.says("Done.")

    async def talk() -> None:
        first = (await heard(model, question()))[-1]
        parts = [_named(part) for part in first.parts]
        said = assistant(*parts, model=model.name)
        last = (await heard(model, question(user("hello"), said, results(1))))[-1]
        assert last.parts == (text("Done."),)
        assert last.spent.input_tokens == 20
        await model.close()

    asyncio.run(talk())
    asked = openai_wire.received[1].body
    assert asked["model"] == model_name
    assert "call-1-00" in json.dumps(asked["messages"])
    assert "<think" not in json.dumps(asked["messages"])


@pytest.mark.parametrize("name", [name for name in SERVERS if not name.startswith("openrouter")])
def test_what_they_cost_is_not_known(openai_wire: OpenAIWire, name: str) -> None:
    openai_wire.says("ok")
    model = find_model(name, {SERVERS[name]: openai_wire.base_url, "OPENAI_API_KEY": "k"})

    async def ask() -> float | None:
        answer = (await heard(model, question()))[-1]
        await model.close()
        return answer.spent.cost

    assert asyncio.run(ask()) is None


def test_a_local_server_that_wants_a_key_says_which_variable(openai_wire: OpenAIWire) -> None:
    openai_wire.refuses(401, "no key")
    model = find_model("vllm:m", {"VLLM_BASE_URL": openai_wire.base_url})

    async def ask() -> None:
        with pytest.raises(Exception, match=r"vllm at http://127.0.0.1:\d+/v1 needs a key. Set VLLM_API_KEY."):
            await heard(model, question())
        await model.close()

    asyncio.run(ask())


def find_local(provider: str) -> bool:
    from handrail.models.providers import PROVIDERS

    return PROVIDERS[provider].local


def _named(part):
    if not isinstance(part, CallPart):
        return part
    assert part.provider_call_id is None
    return CallPart(tool_call_id="call-1-00", name=part.name, args=part.args, detail=part.detail)
