"""The tools that the conformance suite calls, written as anybody writes tools of their own for handrail."""

import threading
from base64 import b64encode
from typing import Any

from handrail import Context, Output, ToolError, tool
from handrail.protocol.results import Attachment
from handrail.runtime.foreign.source import ForeignTool
from handrail.tools.tool import Tool

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
    "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
SILENCE = bytes.fromhex("524946462400000057415645666d74201000000001000100401f0000803e0000020010006461746100000000")
_PAUSE = 0.15
"""Seconds between two reports. What comes sooner than a tenth of one may be left out."""


def _attached(kind: Any, path: str, mime: str, data: bytes) -> Attachment:
    return Attachment(type=kind, path=path, mime=mime, content=b64encode(data).decode())


_PICTURE = _attached("image", "pixel.png", "image/png", PIXEL)
_FILE = _attached("file", "data.json", "application/json", b'{"test":"data","value":123}')


def _output(content: str, *attached: Attachment) -> Output:
    return Output(summary="shown", content=content, data=None, attachments=attached)


def _report(context: Context, *steps: str) -> None:
    for step in steps:
        context.metadata(title=step)
        threading.Event().wait(_PAUSE)


@tool(read_only=True, auto_execute=True)
def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@tool(read_only=True, auto_execute=True)
def test_image_content() -> Output:
    """Show a picture."""
    return _output("A picture.", _PICTURE)


@tool(read_only=True, auto_execute=True)
def test_audio_content() -> Output:
    """Play a sound."""
    return _output("A sound.", _attached("file", "silence.wav", "audio/wav", SILENCE))


@tool(read_only=True, auto_execute=True)
def test_embedded_resource() -> Output:
    """Hand over a file."""
    return _output("A file.", _FILE)


@tool(read_only=True, auto_execute=True)
def test_multiple_content_types() -> Output:
    """Show a picture and hand over a file."""
    return _output("Multiple content types test:", _PICTURE, _FILE)


@tool(read_only=True, auto_execute=True)
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("INTERNAL", "This tool intentionally returns an error for testing")


@tool(read_only=True, auto_execute=True)
def test_tool_with_progress(context: Context) -> str:
    """Tell how far it is."""
    _report(context, "0 of 100", "50 of 100", "100 of 100")
    return "done"


@tool(read_only=True, auto_execute=True)
def test_tool_with_logging(context: Context) -> str:
    """Tell what it does."""
    _report(context, "Tool execution started", "Tool processing data", "Tool execution completed")
    return "done"


@tool(read_only=True, auto_execute=True)
def test_logging_tool(context: Context) -> str:
    """Tell what it does, to a client that does not want to hear of it."""
    context.metadata(title="not told")
    return "done"


@tool
def test_elicitation(message: str) -> str:
    """Do something that nobody knows the effects of, so that a person is asked."""
    return message


class Growing:
    """Another server whose list of tools changes when it is told to."""

    server, reach = "growing", ()

    def __init__(self) -> None:
        self.revision = 0

    def listed(self) -> tuple[ForeignTool, ...]:
        """One tool more each time."""
        return tuple(ForeignTool(name=f"grown_{number}") for number in range(self.revision))

    def call(self, context: Context, name: str, arguments: dict[str, Any]) -> Output:
        """Does nothing."""
        return _output("done")

    def problems(self) -> tuple[str, ...]:
        """None."""
        return ()

    def close(self) -> None:
        """Nothing is open."""


def growing_by_call(source: Growing) -> Tool:
    """The tool that makes it change."""

    def grow() -> str:
        source.revision += 1
        return "grown"

    description = "Change the list of tools."
    return tool(name="test_trigger_tool_change", description=description, read_only=True, auto_execute=True)(grow)


def _asking(name: str) -> Tool:
    return tool(name=name, description="Do what nobody knows the effects of, so that a person is asked.")(
        lambda: "done"
    )


_ASKING = (
    "test_input_required_result_elicitation",
    "test_input_required_result_multi_round",
    "test_input_required_result_request_state",
    "test_input_required_result_tampered_state",
    "test_streaming_elicitation",
)
_DECLARED = [one for one in list[Any](globals().values()) if isinstance(one, Tool)]
SUITE_TOOLS: tuple[Tool, ...] = (*_DECLARED, *map(_asking, _ASKING))
