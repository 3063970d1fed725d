"""A permission request as text."""

import msgspec

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.wire import Json


def request_text(details: Json) -> str:
    """The question, why it is asked, and what would change."""
    request = msgspec.convert(details, PermissionRequest)
    lines = [
        f"{request.tool_name} needs permission: {request.description}",
        f"  because  {request.reason} (rule {request.rule})",
        f"  request  {request.id} in session {request.session_id}",
    ]
    if request.command:
        lines.append(f"  command  {request.command}")
        lines.append(f"  folder   {request.cwd}")
    if request.tier == 0:
        lines.append("  sandbox  none: it could change and read whatever you can")
    if request.preview:
        lines += ["", request.preview.text.rstrip("\n")]
        if request.preview.truncated:
            lines.append("… the preview is cut here")
    return "\n".join([*lines, ""])
