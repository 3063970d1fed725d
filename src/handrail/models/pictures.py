"""Pictures among what is said and results: which of them a model is shown, and what it is told where it takes none."""

from base64 import b64decode
from typing import TYPE_CHECKING

from msgspec.structs import replace

from handrail.models.model import ModelRequest
from handrail.protocol.messages import CallResult, Message, ResultsMessage, UserMessage
from handrail.protocol.results import Attachment

if TYPE_CHECKING:
    from pydantic_ai.messages import BinaryContent

_TAKEN = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp"))
_UNSEEN = "[a picture was here; this model takes none]"


def has_pictures(request: ModelRequest) -> bool:
    """Whether there is a picture in the transcript."""
    return any(list_pictures(one) for message in request.messages for one in _holding(message))


def drop_pictures(request: ModelRequest) -> ModelRequest:
    """The same question for a model that takes none: a line says where one was."""
    return replace(request, messages=tuple(map(_blindly, request.messages)))


def list_pictures(told: CallResult | UserMessage) -> list[Attachment]:
    """The pictures of a result, or of what the person said, that every wire takes."""
    return [one for one in told.attachments if one.mime in _TAKEN and one.content]


def to_picture(attachment: Attachment) -> "BinaryContent":
    """A picture in pydantic-ai's words."""
    from pydantic_ai.messages import BinaryContent  # noqa: PLC0415

    return BinaryContent(data=b64decode(attachment.content or ""), media_type=attachment.mime)


def _holding(message: Message) -> tuple[CallResult | UserMessage, ...]:
    if isinstance(message, ResultsMessage):
        return message.results
    return (message,) if isinstance(message, UserMessage) else ()


def _blindly(message: Message) -> Message:
    if isinstance(message, UserMessage) and list_pictures(message):
        return replace(message, text=f"{message.text}\n{_UNSEEN}", attachments=())
    if not isinstance(message, ResultsMessage):
        return message
    told = (
        replace(result, content=f"{result.content}\n{_UNSEEN}", attachments=()) if list_pictures(result) else result
        for result in message.results
    )
    return ResultsMessage(results=tuple(told))
