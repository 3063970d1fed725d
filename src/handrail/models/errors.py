"""Explains the failures of a provider to a person, without quotes of the request.

pydantic-ai and httpx2 are optional, so only code that connects imports this module.
"""

import errno
import os
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
from httpx2 import ConnectError, ConnectTimeout, TimeoutException, TransportError
from pydantic_ai import exceptions

from handrail.models.base import ModelError, ModelRequest
from handrail.models.http import RejectedResponseError
from handrail.models.providers import Endpoint
from handrail.protocol.errors import EXHAUSTED
from handrail.protocol.messages import Message
from handrail.protocol.text import truncate

_MAX_MESSAGE_CHARS = 10_000
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|maximum.{0,20}(context|tokens)|too many tokens|prompt is too long"
    r"|input.{0,30}(too long|exceeds)|token count.{0,40}exceeds|request_too_large",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"api key (not valid|expired|not found)|invalid api key", re.IGNORECASE)
_PICTURES = re.compile(r"image|picture|vision|multi-?modal", re.IGNORECASE)
_TEMPORARY = {
    408: "gave up waiting",
    409: "was busy",
    425: "was busy",
    429: "gets too many requests",
    503: "is overloaded",
    529: "is overloaded",
}
_MAX_SHOWN_CHARS = 200
_MAX_READ_CHARS = 400
_MIN_QUOTE_CHARS, _MIN_KEY_QUOTE_CHARS = 12, 6
"""Characters in a row that cannot be there by chance."""
_OMITTED = "…"


def to_model_error(error: Exception, place: Endpoint, request: ModelRequest) -> ModelError:
    """The error for the loop and the person. It holds no key and nothing of the request."""
    if isinstance(error, exceptions.ModelHTTPError):
        return _explain_refusal(error, place, request)
    if isinstance(error, exceptions.ModelTimeoutError | TimeoutException):
        return _explain_timeout(error, place)
    if isinstance(error, exceptions.ModelConnectionError | TransportError):
        return _explain_disconnection(error, place)
    if isinstance(error, exceptions.ModelAPIError):
        return _build_unreadable_error(place, _quote_provider(error, place, request))
    if isinstance(error, exceptions.UserError):
        why = redact_quotes(str(error), request, _get_key(place))
        return ModelError("INVALID_ARGUMENT", f"{place.name} does not support this request: {why}")
    return _build_unreadable_error(place, type(error).__name__)


def is_picture_refusal(error: Exception) -> bool:
    """Whether the request was refused because of its pictures."""
    return isinstance(error, exceptions.ModelHTTPError) and _PICTURES.search(_get_message(error)) is not None


def build_no_pictures_error(place: Endpoint) -> ModelError:
    """A retryable error: the next request has no pictures."""
    message = f"{place.name} does not accept pictures. The request goes without them."
    return ModelError("UNAVAILABLE", message, retryable=True, after=0.0)


def build_interrupted_error(place: Endpoint) -> ModelError:
    return ModelError("UNAVAILABLE", f"{place.name} stopped in the middle of its answer.", retryable=True)


def is_unreachable(error: Exception) -> bool:
    """Whether no connection was made."""
    return not isinstance(error, exceptions.ModelHTTPError) and _failed_to_connect(error)


def build_unreachable_error(error: Exception, place: Endpoint) -> ModelError:
    """A final error: the address of a host that never answered is probably wrong."""
    is_timeout = isinstance(error, exceptions.ModelTimeoutError)
    found = _explain_timeout(error, place) if is_timeout else _explain_disconnection(error, place)
    return ModelError(found.code, found.message)


def find_rejection_error(error: Exception, place: Endpoint) -> ModelError | None:
    """The error of a response that was not read. It is final."""
    why = next((str(one) for one in _iterate_causes(error) if isinstance(one, RejectedResponseError)), None)
    return None if why is None else ModelError("UNAVAILABLE", f"{place.provider.name} at {_get_host(place)} {why}.")


def redact_quotes(text: str, request: ModelRequest, key: str | None) -> str:
    """The text on one line, truncated, with an ellipsis for everything that the transcript or the key has too."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text[:_MAX_READ_CHARS]).split())
    hidden = [False] * len(line)
    if key:
        line = line.replace(key, _OMITTED)
        hidden = _find_quotes(line, key, min(_MIN_KEY_QUOTE_CHARS, len(key)))
    transcript = "\0".join(text for message in request.messages for text in _list_texts(message))
    hidden = [a or b for a, b in zip(hidden, _find_quotes(line, transcript, _MIN_QUOTE_CHARS), strict=True)]
    kept: list[str] = []
    for character, hide in zip(line, hidden, strict=True):
        if not hide:
            kept.append(character)
        elif not kept or kept[-1] != _OMITTED:
            kept.append(_OMITTED)
    return truncate("".join(kept), _MAX_SHOWN_CHARS)


def _find_quotes(line: str, source: str, run: int) -> list[bool]:
    """For every character, whether it is in a run that the source has too."""
    found = [False] * len(line)
    for at in range(len(line) - run + 1):
        if line[at : at + run] in source:
            found[at : at + run] = [True] * run
    return found


def _list_texts(message: Message) -> list[str]:
    """Every text of a message except its pictures: raw, on one line, and as JSON."""
    values: list[Any] = [msgspec.to_builtins(message)]
    texts: list[str] = []
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += [one for name, one in value.items() if name != "attachments"]  # pyright: ignore[reportUnknownVariableType]
        elif isinstance(value, list | tuple):
            values += value  # pyright: ignore[reportUnknownArgumentType]
        elif isinstance(value, str):
            texts += [value, " ".join(value.split()), msgspec.json.encode(value).decode()]
    return texts


def _explain_refusal(error: exceptions.ModelHTTPError, place: Endpoint, request: ModelRequest) -> ModelError:
    status, message, provider = error.status_code, _get_message(error), place.provider
    is_too_long = status == 413 or (status in {400, 422} and _TOO_LONG.search(message) is not None)
    if is_too_long or isinstance(error, exceptions.ModelContextWindowExceededError):
        told = f"The transcript is longer than {place.name} takes. Ask for less at once, or begin a new session."
        return ModelError("LIMIT_EXCEEDED", told)
    if isinstance(error, exceptions.ModelQuotaExceededError):
        told = f"{provider.name} refuses: quota or credit is used up. Check your account there."
        return ModelError("UNAVAILABLE", told)
    if status in {401, 403} or (status == 400 and _NO_KEY.search(message)):
        told = f"at {_get_host(place)} needs a key. Set" if place.key is None else "refused the key. Check"
        return ModelError("UNAVAILABLE", f"{provider.name} {told} {' or '.join(provider.keys)}.")
    if status == 404:
        near = f" Did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
        where = "" if place.usual else f" at {_get_host(place)}"
        return ModelError("NOT_FOUND", f"{provider.name}{where} has no model {place.model!r}.{near} {provider.lists}.")
    if status >= 500 or status in _TEMPORARY:
        told = f"{provider.name} {_TEMPORARY.get(status, 'failed')} ({status})."
        return ModelError("UNAVAILABLE", told, retryable=True, after=error.retry_after)
    why = _quote_provider(error, place, request)
    return ModelError("INVALID_ARGUMENT", f"{place.name} refused the request ({status}): {why}")


def _explain_timeout(error: Exception, place: Endpoint) -> ModelError:
    if _failed_to_connect(error):
        told = f"{place.provider.name} at {_get_host(place)} did not answer within {place.patience.connect:g} s."
    else:
        told = f"Nothing came from {place.name} for {place.patience.silence:g} s."
    return ModelError("UNAVAILABLE", told, retryable=True)


def _explain_disconnection(error: Exception, place: Endpoint) -> ModelError:
    if not _failed_to_connect(error):
        told = f"The connection to {place.name} broke."
    elif _is_out_of_descriptors():
        told = f"{EXHAUSTED[errno.EMFILE][1]}, so {place.provider.name} was not asked. Next: ulimit -n 65536"
    else:
        hint = "Is the server running?" if place.provider.local else "Check the network."
        told = f"{place.provider.name} at {_get_host(place)} cannot be reached. {hint}"
    return ModelError("UNAVAILABLE", told, retryable=True)


def _is_out_of_descriptors() -> bool:
    """Tested directly: a failed name lookup does not report it."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False


def _failed_to_connect(error: Exception) -> bool:
    return any(isinstance(one, ConnectError | ConnectTimeout) for one in _iterate_causes(error))


def _iterate_causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _build_unreadable_error(place: Endpoint, detail: str) -> ModelError:
    detail = f" ({detail})" if detail else ""
    return ModelError("UNAVAILABLE", f"{place.name} gave an unreadable answer{detail}.", retryable=True)


def _get_host(place: Endpoint) -> str:
    """The address without a user and password."""
    parts = urlsplit(place.address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _get_message(error: Any) -> str:
    """The provider's message, or an empty text. It may quote the request."""
    body = getattr(error, "body", None)
    found = body.get("error", body) if isinstance(body, dict) else body  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    message: Any = found.get("message") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return message[:_MAX_MESSAGE_CHARS] if isinstance(message, str) else ""


def _quote_provider(error: Exception, place: Endpoint, request: ModelRequest) -> str:
    """The provider's message without quotes of the request."""
    return redact_quotes(_get_message(error), request, _get_key(place)) or "it does not say why"


def _get_key(place: Endpoint) -> str | None:
    return place.key.reveal() if place.key else None
