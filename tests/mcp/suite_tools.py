"""The tools that the conformance suite calls, written as anybody writes tools of their own for handrail."""

from base64 import b64encode
from typing import Any

from handrail import Context, Output, ToolError, tool
from handrail.protocol.result import Attachment
from handrail.tools.contract import Tool

PIXEL = b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108020000009077"
        "53de0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
    )
).decode()
_PICTURE = Attachment(type="image", path="pixel.png", mime="image/png", content=PIXEL)


@tool(read_only=True, auto_execute=True)
def test_simple_text() -> str:
    """Say something."""
    return "This is a simple text response for testing."


@tool(read_only=True, auto_execute=True)
def test_image_content() -> Output:
    """Show a picture."""
    return Output(summary="a picture", content="", data=None, attachments=(_PICTURE,))


@tool(read_only=True, auto_execute=True)
def test_error_handling() -> str:
    """Fail."""
    raise ToolError("EXECUTION_FAILED", "This tool intentionally returns an error for testing")


@tool(read_only=True, auto_execute=True)
def test_tool_with_progress(context: Context) -> str:
    """Tell how far it is."""
    for percent in (0, 50, 100):
        context.metadata(title=f"{percent} of 100")
    return "done"


@tool(read_only=True, auto_execute=True)
def test_tool_with_logging(context: Context) -> str:
    """Tell what it does."""
    for step in ("started", "processing data", "completed"):
        context.metadata(title=f"Tool execution {step}")
    return "done"


@tool(read_only=True, auto_execute=True)
def add_numbers(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


SUITE_TOOLS: tuple[Tool, ...] = tuple(one for one in list[Any](globals().values()) if isinstance(one, Tool))
