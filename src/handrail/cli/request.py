"""A permission request as text for a pipe, or for who was not asked on the spot."""

import msgspec

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.wire import Json
from handrail.terminal.request import request_lines, title


def request_text(details: Json) -> str:
    """The question, why it is asked, and all of what would change."""
    request = msgspec.convert(details, PermissionRequest)
    lines = request_lines(request, width=None, diff=None)
    return "\n".join([title(request), *lines, ""])
