"""What a model is sent of a transcript: all of it, or the last summary and what is kept behind it."""

import re
from collections.abc import Sequence

from msgspec.structs import replace

from handrail.protocol.messages import CallResult, Message, ResultsMessage, SummaryMessage, SystemMessage, UserMessage
from handrail.store.transcript import NumberedMessage

_ASIDE = {SystemMessage, SummaryMessage}
_REFERENCE = re.compile(r"@output/[!-.0-~]+")


def select_context_messages(messages: Sequence[NumberedMessage]) -> tuple[Message, ...]:
    """The messages that the model sees, oldest first."""
    found = find_last_summary(messages)
    if found is None:
        return tuple(one.message for one in select_unsummarized(messages))
    number, summary = found
    cut = summary.cut
    kept = (
        truncate_results(one.message, cut) if cut is not None and one.number < number else one.message
        for one in select_unsummarized(messages)
    )
    return (summary, *kept)


def find_last_summary(messages: Sequence[NumberedMessage]) -> tuple[int, SummaryMessage] | None:
    """The summary that counts, and its number."""
    for one in reversed(messages):
        if isinstance(one.message, SummaryMessage):
            return one.number, one.message
    return None


def select_unsummarized(messages: Sequence[NumberedMessage]) -> list[NumberedMessage]:
    """The messages that no summary stands for."""
    found = find_last_summary(messages)
    first = found[1].kept_from if found else 0
    return [one for one in messages if one.number >= first and type(one.message) not in _ASIDE]


def truncate_results(message: Message, most: int) -> Message:
    """Results with at most so many characters each; nothing with pictures; any other message as it is."""
    if isinstance(message, UserMessage) and message.attachments:
        return replace(message, text=f"{message.text}\n[Left out to fit your window: a picture.]", attachments=())
    if not isinstance(message, ResultsMessage):
        return message
    return ResultsMessage(results=tuple(_shortened(result, most) for result in message.results))


def _shortened(result: CallResult, most: int) -> CallResult:
    text, left = result.content, len(result.content) - most
    notes = ["a picture"] if any(one.content for one in result.attachments) else []
    if left > 0:
        notes.append(f"{left:,} characters from the middle")
        text = f"{text[: most // 2]}\n[…]\n{text[-(most // 2) :]}"
    if not notes:
        return result
    missing = [one for one in dict.fromkeys(_REFERENCE.findall(result.content)) if one not in text]
    whole = f" The whole text: {', '.join(missing[:3])}." if missing else ""
    told = f"[Left out to fit your window: {' and '.join(notes)}.{whole} Ask for a smaller part where you need it.]"
    return replace(result, content=f"{text}\n{told}", attachments=())
