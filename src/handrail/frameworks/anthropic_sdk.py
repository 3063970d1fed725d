"""Running the tool calls of messages from the Anthropic SDK."""

from collections.abc import Sequence
from typing import Any

from anthropic.types import Message

from handrail.frameworks.calls import Rail, list_images, render_result
from handrail.frameworks.message_calls import (
    CUT_OFF,
    AnsweredCall,
    MessageCalls,
    ModelCall,
    ToolMessages,
    WaitingMessage,
)


def run_calls(rail: Rail, message: Message) -> ToolMessages | WaitingMessage:
    """Runs the tool calls of a message: all of them, or none while a person has to answer.

    Append the `messages` of the result after the model's own. Without calls the list is empty. The message must be
    whole: of a stream, its final message.
    """
    return _read_calls(rail, message).run()


async def run_calls_async(rail: Rail, message: Message) -> ToolMessages | WaitingMessage:
    """The same as `run_calls`, beside the event loop."""
    return await _read_calls(rail, message).run_async()


def _read_calls(rail: Rail, message: Message) -> MessageCalls:
    """The calls. The SDK completes the arguments of a call that was cut off, so such a call does not run."""
    is_whole = message.stop_reason in {"tool_use", "end_turn", "stop_sequence"}
    calls = [
        ModelCall(block.id, block.name, block.input, is_cut_off=not is_whole and block is message.content[-1])
        for block in message.content
        if block.type == "tool_use"
    ]
    return MessageCalls(rail, message.id, calls, _build_results)


def _build_results(answered: Sequence[AnsweredCall]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [_build_result(one) for one in answered]}] if answered else []


def _build_result(answered: AnsweredCall) -> dict[str, Any]:
    result = answered.result
    content = [{"type": "text", "text": CUT_OFF if result is None else render_result(result)}]
    for image in () if result is None else list_images(result):
        source = {"type": "base64", "media_type": image.mime, "data": image.content}
        content.append({"type": "image", "source": source})  # pyright: ignore
    is_error = result is None or not result.ok
    return {"type": "tool_result", "tool_use_id": answered.call_id, "content": content, "is_error": is_error}
