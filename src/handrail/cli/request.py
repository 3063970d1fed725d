"""A permission request as text for a pipe, or for who was not asked on the spot."""

from handrail.protocol.permission import PermissionRequest
from handrail.protocol.reading import converted
from handrail.protocol.wire import Json
from handrail.terminal.request import request_lines, title


def request_in(details: Json) -> PermissionRequest:
    """The request that an error holds."""
    return converted(details, PermissionRequest)


def request_text(request: PermissionRequest | Json, outdated: tuple[str, ...] = (), again: str = "") -> str:
    """The question, why it is asked, and all of what would change."""
    told = request if isinstance(request, PermissionRequest) else request_in(request)
    lines = request_lines(told, width=None, diff=None, files=None, outdated=outdated, again=again)
    return "\n".join([title(told), *lines, ""])
