"""Running the tool calls of messages from the Anthropic SDK."""

from collections.abc import Sequence
from typing import Any

from anthropic.types import Message

from handrail.frameworks.calls import Rail
from handrail.frameworks.message_calls import AnsweredCall, MessageCalls, ToolMessages, WaitingMessage


def run_calls(rail: Rail, message: Message) -> ToolMessages | WaitingMessage:
    """Runs the tool calls of a message: all of them, or none while a person has to answer.

    Append the `messages` of the result after the model's own. Without calls the list is empty. The message must be
    whole: of a stream, its final message.
    """
    return _read_calls(rail, message).run()


async def run_calls_async(rail: Rail, message: Message) -> ToolMessages | WaitingMessage:
    """The same as `run_calls`, beside the event loop."""
    calls = _read_calls(rail, message)
    return await calls.run_in_pool(calls.run)


def _read_calls(rail: Rail, message: Message) -> MessageCalls:
    """The calls. The SDK completes the arguments of a call that was cut off, so such a call does not run."""
    calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
    is_whole = message.stop_reason in {"tool_use", "end_turn", "stop_sequence"}
    ends_with_call = bool(calls) and message.content[-1].type == "tool_use"
    return MessageCalls(rail, message.id, calls, _build_results, is_whole=is_whole or not ends_with_call)


def _build_results(answered: Sequence[AnsweredCall]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [_build_result(one) for one in answered]}] if answered else []


def _build_result(answered: AnsweredCall) -> dict[str, Any]:
    content: list[dict[str, Any]] = [{"type": "text", "text": answered.text}]
    for image in answered.images:
        source = {"type": "base64", "media_type": image.mime, "data": image.content}
        content.append({"type": "image", "source": source})
    is_error = answered.result is None or not answered.result.ok
    return {"type": "tool_result", "tool_use_id": answered.call_id, "content": content, "is_error": is_error}
