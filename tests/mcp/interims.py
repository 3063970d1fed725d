"""Results as calls have them that wait."""

from typing import Any

from handrail.protocol.errors import ErrorInfo
from handrail.protocol.results import Artifacts, Meta, ToolResult


def interim(name: str) -> ToolResult[Any]:
    return ToolResult(
        tool_call_id="call-1",
        name=name,
        version="1.0.0",
        ok=False,
        title=name,
        summary="waits",
        content="waits",
        data=None,
        error=ErrorInfo(code="PERMISSION_REQUIRED", message="waits", details=None, retryable=False),
        meta=Meta(truncated=False),
        artifacts=Artifacts(),
        attachments=(),
        warnings=(),
        duration_ms=0.0,
    )
