"""What a failed call is, for the model."""

from mcp import MCPError
from mcp_types import CONNECTION_CLOSED, INVALID_PARAMS, REQUEST_TIMEOUT
from pydantic import ValidationError

from handrail.mcp.client.secrets import Secrets
from handrail.mcp.client.words import render_short_line
from handrail.protocol.errors import ToolError
from handrail.settings.mcp_json import ConfiguredServer

_MAX_MESSAGE_CHARS = 2_000


def convert_failure(error: Exception, server: ConfiguredServer, tool: str, secrets: Secrets) -> ToolError | None:
    """The error of the call; None where the connection is gone, of which others know more."""
    if isinstance(error, TimeoutError) or (isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT):
        return ToolError(
            "TIMEOUT",
            f"The server {server.name} did not answer within {server.seconds:g} seconds, and was told to stop. Whether"
            f" {tool[:80]} did anything is not known. mcp.servers.{server.name}.timeout allows more.",
        )
    if isinstance(error, ValidationError):
        text = f"The server {server.name} answered what the protocol does not know. The defect is the server's."
        return ToolError("UNAVAILABLE", f"{text} Whether {tool[:80]} did anything is not known.")
    if not isinstance(error, MCPError) or error.code == CONNECTION_CLOSED:
        return None
    code = "INVALID_ARGUMENT" if error.code == INVALID_PARAMS else "IO_ERROR"
    said = render_short_line(secrets.redact(error.message), _MAX_MESSAGE_CHARS) or "and not why"
    return ToolError(code, f"The server {server.name} refused: {said} (error {error.code}).")
