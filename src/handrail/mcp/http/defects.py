"""Defects of ours over HTTP. The SDK would tell a client whatever the exception says, and a person nothing."""

from collections.abc import Callable

from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from handrail.mcp.errors import describe_defect
from handrail.mcp.http.callers import Context
from handrail.protocol.jsonrpc import INTERNAL_ERROR


class DefectReporter:
    """`note` takes lines for a person."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note

    async def wrap_request(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """For the SDK: around all that is done for a request."""
        try:
            return await call_next(ctx)
        except (MCPError, ValidationError):  # what was said is not what the method takes, and the SDK says so
            raise
        except Exception as error:
            self._note(describe_defect(error))
            raise MCPError(INTERNAL_ERROR, f"A defect stopped the request ({type(error).__name__}).") from None
