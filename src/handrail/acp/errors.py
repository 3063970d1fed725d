"""What an editor is told where something fails: in words for the person, with a code, and never a traceback."""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from acp import RequestError

from handrail.models.base import ModelError
from handrail.protocol.errors import HandrailError, StoreError, ToolError
from handrail.state import describe_defect

INVALID_REQUEST, INVALID_PARAMS, INTERNAL, NOT_FOUND = -32600, -32602, -32603, -32002
Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")
_Handler = Callable[Parameters, Coroutine[Any, Any, Returned]]


def answer_errors(handler: _Handler[Parameters, Returned]) -> _Handler[Parameters, Returned]:
    """The same, with every failure as an answer."""

    @wraps(handler)
    async def run(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Returned:
        try:
            return await handler(*args, **kwargs)
        except RequestError:
            raise
        except Exception as error:  # the SDK would put the words of any error on the wire
            raise _told(error) from None

    return run


def build_refusal(words: str) -> RequestError:
    """What was asked for cannot be: nothing was done."""
    return RequestError(INVALID_PARAMS, words)


def build_failure(code: str | None, words: str) -> RequestError:
    """What was asked for did not come to its end."""
    return RequestError(INTERNAL, words, {"code": code} if code else None)


def _told(error: Exception) -> RequestError:
    if isinstance(error, ModelError | ToolError):
        return build_failure(error.code, str(error))
    if isinstance(error, StoreError):
        return build_failure("STORE", str(error))
    if isinstance(error, HandrailError):
        return build_refusal(str(error))
    return build_failure("INTERNAL", f"A defect stopped this {describe_defect(error)}")
