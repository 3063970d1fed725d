"""Running the tool calls of messages from the OpenAI SDK."""

from collections.abc import Sequence
from typing import Any

import msgspec
from openai.types.chat import ChatCompletion
from openai.types.responses import Response, ResponseFunctionToolCall

from handrail.frameworks.calls import Rail
from handrail.frameworks.message_calls import AnsweredCall, MessageCalls, ToolMessages, WaitingMessage


def build_response_tools(rail: Rail) -> list[dict[str, Any]]:
    """The tool list for the Responses API. For chat completions it is `rail.openai_tools()`."""
    return [{"type": "function", "strict": False, **one["function"]} for one in rail.openai_tools()]


def run_calls(rail: Rail, response: ChatCompletion | Response) -> ToolMessages | WaitingMessage:
    """Runs the tool calls of a response: all of them, or none while a person has to answer.

    Append the `messages` of the result after the model's own. Without calls the list is empty. The response must be
    whole: of a stream, its final completion or response.
    """
    return _read_calls(rail, response).run()


async def run_calls_async(rail: Rail, response: ChatCompletion | Response) -> ToolMessages | WaitingMessage:
    """The same as `run_calls`, beside the event loop."""
    calls = _read_calls(rail, response)
    return await calls.run_in_pool(calls.run)


def _read_calls(rail: Rail, response: ChatCompletion | Response) -> MessageCalls:
    if isinstance(response, Response):
        items = [one for one in response.output if isinstance(one, ResponseFunctionToolCall)]
        named = [(one.call_id, one.name, one.arguments) for one in items]
        is_whole, build = response.status in {"completed", None}, _build_outputs
    else:
        choice = response.choices[0]
        functions = [one for one in choice.message.tool_calls or () if one.type == "function"]
        named = [(one.id, one.function.name, one.function.arguments) for one in functions]
        is_whole, build = choice.finish_reason in {"tool_calls", "stop"}, _build_tool_messages
    calls = [(call_id, name, _parse(text)) for call_id, name, text in named]
    return MessageCalls(rail, response.id, calls, build, is_whole=is_whole)


def _parse(text: str) -> Any:
    """The arguments. handrail explains to the model what is wrong with those that are not JSON."""
    try:
        return msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return text


def _build_tool_messages(answered: Sequence[AnsweredCall]) -> list[dict[str, Any]]:
    """One message for each result. Images come after all of them, since results hold only text."""
    messages = [{"role": "tool", "tool_call_id": one.call_id, "content": one.text} for one in answered]
    images: list[dict[str, Any]] = []
    for image in (image for one in answered for image in one.images):
        url = f"data:{image.mime};base64,{image.content}"
        images += [{"type": "text", "text": image.path}, {"type": "image_url", "image_url": {"url": url}}]
    return [*messages, {"role": "user", "content": images}] if images else messages


def _build_outputs(answered: Sequence[AnsweredCall]) -> list[dict[str, Any]]:
    return [{"type": "function_call_output", "call_id": one.call_id, "output": _build_output(one)} for one in answered]


def _build_output(answered: AnsweredCall) -> str | list[dict[str, Any]]:
    images = [{"type": "input_image", "image_url": f"data:{one.mime};base64,{one.content}"} for one in answered.images]
    return [{"type": "input_text", "text": answered.text}, *images] if images else answered.text
