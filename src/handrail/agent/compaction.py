"""Replaces the older part of a transcript by a summary when it fills the model's window.

The journal keeps all messages. The summary is one message, stored together with its events."""

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
from handrail.models.base import Model, ModelError, TokenUsage
from handrail.protocol.events import Notice, Usage
from handrail.protocol.messages import ResultsMessage, SummaryMessage, SystemMessage
from handrail.store.journal import PendingEvent
from handrail.store.transcript import NumberedMessage

_TAIL = 0.35
_SUMMARY = 0.25
"""Parts of the room for the transcript: messages that stay, and the summary. The rest is for new messages."""
_MIN_ROOM_TOKENS = 800
"""The least that a transcript needs."""
_MIN_GAIN = 0.1
"""The least gain, as part of the room. With less the transcript would be compacted at every step."""
_ALL = 1 << 30
_CUTS = (None, 8_000, 2_000, 500)
"""Characters a result may have, tried in turn if not even the last exchange fits."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The messages that a summary replaces, and those that stay."""

    dropped: tuple[NumberedMessage, ...]
    kept: tuple[NumberedMessage, ...]
    cut: int | None = None
    """Characters of each result that stays. None: unchanged."""


class _Room(msgspec.Struct, frozen=True):
    """Sizes in tokens."""

    window: int
    fixed: int
    now: int
    transcript: int


async def compact_if_full(rail: AsyncHandrail, model: Model, transcript: Transcript, limits: TurnLimits) -> None:
    """Compacts the transcript if it nearly fills the window. ModelError LIMIT_EXCEEDED if it is too long and cannot be
    compacted."""
    now = estimate_request_tokens(
        transcript.messages, lambda: _count_fixed(rail, transcript), transcript.token_estimates
    )
    if now <= model.window * limits.full:
        return
    fixed = _count_fixed(rail, transcript)
    # If the provider counts more than our estimate, the room for estimated tokens is smaller.
    more = max(1.0, now / (fixed + estimate_messages_tokens(select_context_messages(transcript.messages))))
    room = _Room(model.window, fixed, now, int(model.window * limits.full / more) - fixed)
    if not await _compact(rail, model, transcript, room) and now > model.window:
        raise _build_too_long_error(model, fixed)


async def compact_after_refusal(rail: AsyncHandrail, model: Model, transcript: Transcript, limits: TurnLimits) -> bool:
    """Halves the transcript, because the provider refused it as too long. Returns whether it is shorter now."""
    fixed = _count_fixed(rail, transcript)
    half = estimate_messages_tokens(select_context_messages(transcript.messages)) // 2
    room = _Room(model.window, fixed, fixed + 2 * half, min(half, int(model.window * limits.full) - fixed))
    return await _compact(rail, model, transcript, room)


def _count_fixed(rail: AsyncHandrail, transcript: Transcript) -> int:
    return estimate_fixed_tokens(transcript.system.text if transcript.system else "", rail.specs())


async def _compact(rail: AsyncHandrail, model: Model, transcript: Transcript, room: _Room) -> bool:
    if room.transcript < _MIN_ROOM_TOKENS:
        return False
    shown = select_unsummarized(transcript.messages)
    plan = plan_compaction(shown, int(room.transcript * _TAIL))
    before = estimate_messages_tokens(select_context_messages(transcript.messages))
    gained = before - estimate_messages_tokens([one.message for one in plan.kept]) - int(room.transcript * _SUMMARY)
    if not shown or (gained < room.transcript * _MIN_GAIN and plan.cut is None):
        return False
    message, spent, failed = await _build_summary(rail, model, transcript, plan, room)
    transcript.add(message, *_build_events(model, plan, room, spent, failed))
    return True


async def _build_summary(
    rail: AsyncHandrail, model: Model, transcript: Transcript, plan: CompactionPlan, room: _Room
) -> tuple[SummaryMessage, TokenUsage | None, ModelError | None]:
    found = find_last_summary(transcript.messages)
    before = found[1].notes if found else ""
    dropped = [one.message for one in plan.dropped]
    most = int(room.window // 2 * BYTES_PER_TOKEN)
    answer = await request_notes(model, dropped, before, most) if dropped else None
    failed = answer if isinstance(answer, ModelError) else None
    notes, spent = answer if isinstance(answer, tuple) else (before, None)
    kept_from = plan.kept[0].number if plan.kept else transcript.messages[-1].number + 1
    digest = await _build_digest(rail, transcript, kept_from)
    text = render_summary(digest, notes, int(int(room.transcript * _SUMMARY) * BYTES_PER_TOKEN))
    return SummaryMessage(text=text, kept_from=kept_from, cut=plan.cut, notes=notes), spent, failed


async def _build_digest(rail: AsyncHandrail, transcript: Transcript, kept_from: int) -> HistoryDigest:
    """The digest of all messages before those that stay. Earlier summaries are not used: errors would add up."""
    other = SystemMessage | SummaryMessage
    older = [
        one.message for one in transcript.messages if one.number < kept_from and not isinstance(one.message, other)
    ]
    changes = [one for one in await rail.changes(_ALL) if one.session_id == rail.session_id]
    return HistoryDigest(messages=older, changes=changes[::-1], processes=await rail.processes())


def _build_events(
    model: Model, plan: CompactionPlan, room: _Room, spent: TokenUsage | None, failed: ModelError | None
) -> tuple[PendingEvent, ...]:
    stay = "as they were" if plan.cut is None else "with shortened results"
    text = (
        f"The conversation took {room.now:,} of the {room.window:,} tokens of {model.name}. A summary replaced "
        f"{len(plan.dropped)} older messages; {len(plan.kept)} stay {stay}. The log has all messages."
    )
    if failed is not None:
        text += f" The model wrote no notes about them: {failed.message}"
    notice: dict[str, Any] = {"text": text}
    return (*(((Usage, {"model": model.name, **msgspec.structs.asdict(spent)}),) if spent else ()), (Notice, notice))


def _build_too_long_error(model: Model, fixed: int) -> ModelError:
    return ModelError(
        "LIMIT_EXCEEDED",
        f"The transcript does not fit the window of {model.name} ({model.window:,} tokens), {fixed:,} of which the "
        "system prompt and the tools take, and it cannot be shortened. Use a model with a larger window, "
        "or offer fewer tools ([tools] disable).",
    )


def plan_compaction(shown: Sequence[NumberedMessage], room: int) -> CompactionPlan:
    """Keeps as many of the newest messages as fit. Results stay with their calls, so the first message that stays is
    never a results message."""
    for cut in _CUTS:
        first = _find_first_kept(shown, room, cut)
        if first < len(shown):
            return CompactionPlan(dropped=tuple(shown[:first]), kept=tuple(shown[first:]), cut=cut)
    return CompactionPlan(dropped=tuple(shown), kept=())


def _find_first_kept(shown: Sequence[NumberedMessage], room: int, cut: int | None) -> int:
    first = len(shown)
    for index in range(len(shown) - 1, -1, -1):
        message = shown[index].message
        room -= estimate_message_tokens(message if cut is None else truncate_results(message, cut))
        if room < 0:
            break
        if not isinstance(message, ResultsMessage):
            first = index
    return first
