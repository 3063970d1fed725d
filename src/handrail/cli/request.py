"""A permission request as text for a pipe, or for who was not asked on the spot."""

from handrail.protocol.permissions import PermissionRequest
from handrail.protocol.wire import Json, convert
from handrail.terminal.request_text import render_request, render_title


def parse_request(details: Json) -> PermissionRequest:
    """The request that an error holds."""
    return convert(details, PermissionRequest)


def render_request_text(request: PermissionRequest | Json, outdated: tuple[str, ...] = (), again: str = "") -> str:
    """The question, why it is asked, and all of what would change."""
    told = request if isinstance(request, PermissionRequest) else parse_request(request)
    lines = render_request(told, width=None, diff=None, files=None, outdated=outdated, again=again)
    return "\n".join([render_title(told), *lines, ""])
