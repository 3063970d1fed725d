"""What a failure of a provider means: one line for the person, and whether waiting helps."""

import errno
import os
import re
from collections.abc import Iterator
from typing import Any

from handrail.models.model import ModelError, ModelRequest
from handrail.models.provider import Endpoint
from handrail.models.quoting import redact_quotes
from handrail.protocol.errors import EXHAUSTED

_MAX_MESSAGE_CHARS = 10_000
_TOO_LONG = re.compile(
    r"context.{0,20}(length|window|size)|maximum.{0,20}(context|tokens)|too many tokens|prompt is too long"
    r"|input.{0,30}(too long|exceeds)|token count.{0,40}exceeds|request_too_large",
    re.IGNORECASE,
)
_NO_KEY = re.compile(r"api key (not valid|expired|not found)|invalid api key", re.IGNORECASE)
_PICTURES = re.compile(r"image|picture|vision|multi-?modal", re.IGNORECASE)
_PASSING = {
    408: "gave up waiting",
    409: "was busy",
    425: "was busy",
    429: "is asked too often",
    503: "is overloaded",
    529: "is overloaded",
}


def to_model_error(error: Exception, place: Endpoint, request: ModelRequest) -> ModelError:
    """What the loop and the person are told. Nothing of the question and no key is in it."""
    from httpx2 import TimeoutException, TransportError  # noqa: PLC0415
    from pydantic_ai import exceptions as failures  # noqa: PLC0415

    if isinstance(error, failures.ModelHTTPError):
        return _refused(error, place, request)
    if isinstance(error, failures.ModelTimeoutError | TimeoutException):
        return _silent(error, place)
    if isinstance(error, failures.ModelConnectionError | TransportError):
        return _unreachable(error, place)
    if isinstance(error, failures.ModelAPIError):
        return _odd(place, _told(error, place, request))
    if isinstance(error, failures.UserError):
        said = redact_quotes(str(error), request, _key(place))
        return ModelError("INVALID_ARGUMENT", f"{place.name} cannot be asked this: {said}")
    return _odd(place, type(error).__name__)


def is_picture_refusal(error: Exception) -> bool:
    """Whether the question was refused for the pictures in it."""
    from pydantic_ai.exceptions import ModelHTTPError  # noqa: PLC0415

    return isinstance(error, ModelHTTPError) and _PICTURES.search(_words(error)) is not None


def build_no_pictures_error(place: Endpoint) -> ModelError:
    """The model takes no pictures, and will be sent none when it is asked again."""
    told = f"{place.name} takes no pictures. It is asked without them."
    return ModelError("UNAVAILABLE", told, retryable=True, after=0.0)


def build_interrupted_error(place: Endpoint) -> ModelError:
    """An answer that ended before it was whole."""
    return ModelError("UNAVAILABLE", f"{place.name} broke off in the middle of its answer.", retryable=True)


def is_unreachable(error: Exception) -> bool:
    """Whether the host could not be reached at all. An answer that refuses the question comes from somewhere."""
    from pydantic_ai.exceptions import ModelHTTPError  # noqa: PLC0415

    return not isinstance(error, ModelHTTPError) and _in_connecting(error)


def build_unreachable_error(error: Exception, place: Endpoint) -> ModelError:
    """A host that never answered: its address is wrong, or it is off. Who waits for it waits for nothing."""
    from pydantic_ai.exceptions import ModelTimeoutError  # noqa: PLC0415

    told = _silent(error, place) if isinstance(error, ModelTimeoutError) else _unreachable(error, place)
    return ModelError(told.code, told.message)


def find_rejection_error(error: Exception, place: Endpoint) -> ModelError | None:
    """What is told of a response that was not taken. To ask again would not help."""
    from handrail.models.bounding import RejectedResponseError  # noqa: PLC0415

    why = next((str(one) for one in _chain(error) if isinstance(one, RejectedResponseError)), None)
    return None if why is None else ModelError("UNAVAILABLE", f"{place.provider.name} at {_host(place)} {why}.")


def _refused(error: Any, place: Endpoint, request: ModelRequest) -> ModelError:
    from pydantic_ai import exceptions as failures  # noqa: PLC0415

    status, words = error.status_code, _words(error)
    if isinstance(error, failures.ModelContextWindowExceededError) or status == 413 or _is_too_long(status, words):
        return ModelError(
            "LIMIT_EXCEEDED",
            f"The transcript is longer than {place.name} takes. Ask for less at once, or begin a new session.",
        )
    if isinstance(error, failures.ModelQuotaExceededError):
        said = f"{place.provider.name} refuses: quota or credit is used up. Look at your account there."
        return ModelError("UNAVAILABLE", said)
    if status in {401, 403} or (status == 400 and _NO_KEY.search(words)):
        return ModelError("UNAVAILABLE", _key_refused(place))
    if status == 404:
        return ModelError("NOT_FOUND", _not_there(error, place))
    if status >= 500 or status in _PASSING:
        why = _PASSING.get(status, "failed")
        said = f"{place.provider.name} {why} ({status})."
        return ModelError("UNAVAILABLE", said, retryable=True, after=error.retry_after)
    return ModelError(
        "INVALID_ARGUMENT", f"{place.name} refuses the question ({status}): {_told(error, place, request)}"
    )


def _is_too_long(status: int, words: str) -> bool:
    return status in {400, 422} and _TOO_LONG.search(words) is not None


def _key_refused(place: Endpoint) -> str:
    if place.key is None:
        return f"{place.provider.name} at {_host(place)} wants a key. Set {' or '.join(place.provider.keys)}."
    return f"{place.provider.name} refused the key. Check {' or '.join(place.provider.keys)}."


def _not_there(error: Any, place: Endpoint) -> str:
    near = f" Did you mean {error.suggested_model_id}?" if error.suggested_model_id else ""
    where = "" if place.usual else f" at {_host(place)}"
    return f"{place.provider.name}{where} has no model {place.model!r}.{near} {place.provider.lists}."


def _silent(error: Exception, place: Endpoint) -> ModelError:
    if _in_connecting(error):
        text = f"{place.provider.name} at {_host(place)} did not answer within {place.patience.connect:g} s."
    else:
        text = f"Nothing came from {place.name} for {place.patience.silence:g} s."
    return ModelError("UNAVAILABLE", text, retryable=True)


def _unreachable(error: Exception, place: Endpoint) -> ModelError:
    if not _in_connecting(error):
        return ModelError("UNAVAILABLE", f"The connection to {place.name} broke.", retryable=True)
    if _is_out_of_descriptors():
        text = f"{EXHAUSTED[errno.EMFILE][1]}, so {place.provider.name} was not asked. Next: ulimit -n 65536"
        return ModelError("UNAVAILABLE", text, retryable=True)
    help_ = " Is the server running?" if place.provider.local else " Check the network."
    return ModelError(
        "UNAVAILABLE", f"{place.provider.name} at {_host(place)} cannot be reached.{help_}", retryable=True
    )


def _is_out_of_descriptors() -> bool:
    """Whatever the error says of it: looking up a name fails otherwise than connecting."""
    try:
        os.close(os.dup(0))
    except OSError as error:
        return error.errno == errno.EMFILE
    return False


def _in_connecting(error: Exception) -> bool:
    from httpx2 import ConnectError, ConnectTimeout  # noqa: PLC0415

    return any(isinstance(one, ConnectError | ConnectTimeout) for one in _chain(error))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _odd(place: Endpoint, words: str) -> ModelError:
    said = f" ({words})" if words else ""
    return ModelError("UNAVAILABLE", f"{place.name} gave no answer that can be read{said}.", retryable=True)


def _host(place: Endpoint) -> str:
    """Without a user and a password that somebody may have written into it."""
    from urllib.parse import urlsplit  # noqa: PLC0415

    parts = urlsplit(place.address)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _words(error: Any) -> str:
    """What the provider says in its own words; empty where it says nothing. It may quote what it was sent."""
    body = error.body
    found = body.get("error", body) if isinstance(body, dict) else body  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    said: Any = found.get("message") if isinstance(found, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return said[:_MAX_MESSAGE_CHARS] if isinstance(said, str) else ""


def _told(error: Any, place: Endpoint, request: ModelRequest) -> str:
    """The same, as it may be told."""
    return redact_quotes(_words(error), request, _key(place)) or "it does not say why"


def _key(place: Endpoint) -> str | None:
    return place.key.reveal() if place.key else None
