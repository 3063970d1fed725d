"""Compacts a transcript."""

from collections.abc import Sequence
from typing import Any

import msgspec

from handrail.agent.summary import HistoryDigest, render_summary, request_notes
from handrail.agent.transcript import (
    BYTES_PER_TOKEN,
    Transcript,
    estimate_fixed_tokens,
    estimate_message_tokens,
    estimate_messages_tokens,
    estimate_request_tokens,
    find_last_summary,
    select_context_messages,
    select_unsummarized,
    truncate_results,
)
from handrail.agent.turn import TurnLimits
from handrail.async_api import AsyncHandrail
from handrail.models.model import Model, ModelError, TokenUsage
from handrail.protocol.events import Notice, Usage
from handrail.protocol.messages import ResultsMessage, SummaryMessage, SystemMessage
from handrail.store.journal import PendingEvent
from handrail.store.transcript import NumberedMessage

# § [agent.compaction.planning] Which messages stay as they are: the newest, from a message that a transcript may
# § begin with.

_CUTS = (None, 8_000, 2_000, 500)
"""How long a result may be, tried one after the other where not even the last exchange has room."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What goes and what stays."""

    dropped: tuple[NumberedMessage, ...]
    kept: tuple[NumberedMessage, ...]
    cut: int | None = None
    """How many characters each result has that stays; None where they stay as they are."""


def plan_compaction(shown: Sequence[NumberedMessage], room: int) -> CompactionPlan:
    """Keeps as many of the newest messages as have room. Results stay with the calls that they are of: a summary, which
    speaks in the person's place, may stand before anything but results."""
    for cut in _CUTS:
        first = _first_kept(shown, room, cut)
        if first < len(shown):
            return CompactionPlan(dropped=tuple(shown[:first]), kept=tuple(shown[first:]), cut=cut)
    return CompactionPlan(dropped=tuple(shown), kept=())


def _first_kept(shown: Sequence[NumberedMessage], room: int, cut: int | None) -> int:
    first = len(shown)
    for place in range(len(shown) - 1, -1, -1):
        message = shown[place].message
        room -= estimate_message_tokens(message if cut is None else truncate_results(message, cut))
        if room < 0:
            break
        if not isinstance(message, ResultsMessage):
            first = place
    return first


# § [agent.compacting] Makes the transcript shorter when it fills the model's window; the journal keeps all of it.
# § What stands for the older part is written down as one message, with the events that tell of it: killed before,
# § nothing has happened yet; killed after, all of it has.

_TAIL = 0.35
_SUMMARY = 0.25
"""Of the room for the transcript: what may stay, and how long the summary may be. The rest is for new messages."""
_MIN_ROOM_TOKENS = 800
"""Tokens that a transcript needs at least."""
_WORTH_IT = 0.1
"""The part of the room that has to be gained: otherwise it would be made shorter at every step."""
_ALL = 1 << 30


class _Size(msgspec.Struct, frozen=True):
    """What there is room for, in tokens."""

    window: int
    fixed: int
    now: int
    room: int
    """For the transcript."""


async def compact_if_full(rail: AsyncHandrail, model: Model, transcript: Transcript, limits: TurnLimits) -> None:
    """Replaces the older part of the transcript by a summary if it is nearly too long for the model. ModelError
    LIMIT_EXCEEDED if it is too long and cannot be made shorter."""
    now = estimate_request_tokens(transcript.messages, lambda: _fixed(rail, transcript), transcript.token_estimates)
    if now <= model.window * limits.full:
        return
    fixed = _fixed(rail, transcript)
    # Where the provider counts more than is guessed, there is as much less room for what is guessed.
    more = max(1.0, now / (fixed + estimate_messages_tokens(select_context_messages(transcript.messages))))
    size = _Size(model.window, fixed, now, int(model.window * limits.full / more) - fixed)
    if not await _compact(rail, model, transcript, size) and now > model.window:
        raise _too_long(model, fixed)


async def compact_after_refusal(rail: AsyncHandrail, model: Model, transcript: Transcript, limits: TurnLimits) -> bool:
    """Makes the transcript half as long, whatever was measured: the provider said that it is too long. Returns whether
    it is shorter now, so that the model can be asked once more."""
    fixed = _fixed(rail, transcript)
    half = estimate_messages_tokens(select_context_messages(transcript.messages)) // 2
    size = _Size(model.window, fixed, fixed + 2 * half, min(half, int(model.window * limits.full) - fixed))
    return await _compact(rail, model, transcript, size)


def _fixed(rail: AsyncHandrail, transcript: Transcript) -> int:
    return estimate_fixed_tokens(transcript.system.text if transcript.system else "", rail.specs())


async def _compact(rail: AsyncHandrail, model: Model, transcript: Transcript, size: _Size) -> bool:
    if size.room < _MIN_ROOM_TOKENS:
        return False
    shown = select_unsummarized(transcript.messages)
    chosen = plan_compaction(shown, int(size.room * _TAIL))
    before = estimate_messages_tokens(select_context_messages(transcript.messages))
    gained = before - estimate_messages_tokens([one.message for one in chosen.kept]) - int(size.room * _SUMMARY)
    if not shown or (gained < size.room * _WORTH_IT and chosen.cut is None):
        return False
    message, spent, failed = await _summarised(rail, model, transcript, chosen, size)
    transcript.add(message, *_told(model, chosen, size, spent, failed))
    return True


async def _summarised(
    rail: AsyncHandrail, model: Model, transcript: Transcript, chosen: CompactionPlan, size: _Size
) -> tuple[SummaryMessage, TokenUsage | None, ModelError | None]:
    found = find_last_summary(transcript.messages)
    before = found[1].notes if found else ""
    dropped = [one.message for one in chosen.dropped]
    answer = await request_notes(model, dropped, before, _characters(size.window // 2)) if dropped else None
    failed = answer if isinstance(answer, ModelError) else None
    notes, spent = answer if isinstance(answer, tuple) else (before, None)
    kept_from = chosen.kept[0].number if chosen.kept else transcript.messages[-1].number + 1
    text = render_summary(await _ledger(rail, transcript, kept_from), notes, _characters(int(size.room * _SUMMARY)))
    return SummaryMessage(text=text, kept_from=kept_from, cut=chosen.cut, notes=notes), spent, failed


async def _ledger(rail: AsyncHandrail, transcript: Transcript, kept_from: int) -> HistoryDigest:
    """From all that was ever said before the messages that are kept: no summary of a summary loses anything."""
    aside = SystemMessage | SummaryMessage
    older = [
        one.message for one in transcript.messages if one.number < kept_from and not isinstance(one.message, aside)
    ]
    changes = [one for one in await rail.changes(_ALL) if one.session_id == rail.session_id]
    return HistoryDigest(messages=older, changes=changes[::-1], processes=await rail.processes())


def _characters(tokens: int) -> int:
    return int(tokens * BYTES_PER_TOKEN)


def _told(
    model: Model, chosen: CompactionPlan, size: _Size, spent: TokenUsage | None, failed: ModelError | None
) -> tuple[PendingEvent, ...]:
    stay = "as they were" if chosen.cut is None else "with their results cut short"
    text = (
        f"The talk had become long for {model.name} ({size.now:,} of {size.window:,} tokens): {len(chosen.dropped)} "
        f"older messages are summed up for it, {len(chosen.kept)} stay {stay}. The log has all of them."
    )
    if failed is not None:
        text += f" The model wrote no notes on them: {failed.message}"
    notice: dict[str, Any] = {"text": text}
    return (*(((Usage, _used(model, spent)),) if spent else ()), (Notice, notice))


def _used(model: Model, spent: TokenUsage) -> dict[str, Any]:
    return {"model": model.name, **msgspec.structs.asdict(spent)}


def _too_long(model: Model, fixed: int) -> ModelError:
    return ModelError(
        "LIMIT_EXCEEDED",
        f"The transcript does not fit the window of {model.name} ({model.window:,} tokens), {fixed:,} of which the "
        "system prompt and the tools take, and it cannot be made shorter. Go on with a model that has a larger window, "
        "or offer fewer tools ([tools] disable).",
    )
