"""Makes the talk shorter when it fills the model's window; the journal keeps all of it.

What stands for the older part is written down as one message, with the events that tell of it: killed before, nothing
has happened yet; killed after, all of it has."""

from typing import Any

import msgspec

from handrail.agent.compaction.ledger import Ledger
from handrail.agent.compaction.measuring import BYTES_A_TOKEN, measured, tokens_in, tokens_of_tools
from handrail.agent.compaction.planning import Plan, plan
from handrail.agent.compaction.sending import in_full, last_summary, sent
from handrail.agent.compaction.summary import summary_text
from handrail.agent.compaction.summing_up import notes_on
from handrail.agent.limits import TurnLimits
from handrail.agent.talk import Talk
from handrail.async_rail import AsyncHandrail
from handrail.models.model import Model, ModelError, Spent
from handrail.protocol.event import Notice, Usage
from handrail.protocol.message import SummaryMessage, SystemMessage
from handrail.store.journal import Draft

_TAIL = 0.35
_SUMMARY = 0.25
"""Of the room for the talk: what may be kept as it was, and how long the summary may be. The rest is room to go on."""
_LEAST_ROOM = 800
"""Tokens without which no talk is possible."""
_WORTH_IT = 0.1
"""The part of the room that has to be gained: otherwise it would be made shorter at every step."""
_ALL = 1 << 30


class _Size(msgspec.Struct, frozen=True):
    """What there is room for, in tokens."""

    window: int
    fixed: int
    now: int
    room: int
    """For the talk."""


async def compact_if_full(rail: AsyncHandrail, model: Model, talk: Talk, limits: TurnLimits) -> None:
    """Puts a summary in the place of the older part of the talk, where it is nearly too long for the model. ModelError
    LIMIT_EXCEEDED where it is too long and cannot be made shorter."""
    now = measured(talk.messages, lambda: _fixed(rail, talk), talk.guesses)
    if now <= model.window * limits.full:
        return
    fixed = _fixed(rail, talk)
    # Where the provider counts more than is guessed, there is as much less room for what is guessed.
    more = max(1.0, now / (fixed + tokens_in(sent(talk.messages))))
    size = _Size(model.window, fixed, now, int(model.window * limits.full / more) - fixed)
    if not await _compact(rail, model, talk, size) and now > model.window:
        raise _too_long(model, fixed)


async def compact_after_refusal(rail: AsyncHandrail, model: Model, talk: Talk, limits: TurnLimits) -> bool:
    """Makes the talk half as long, whatever was measured: the provider said that it is too long. Whether it is shorter
    now, so that the question can be put once more."""
    fixed = _fixed(rail, talk)
    half = tokens_in(sent(talk.messages)) // 2
    size = _Size(model.window, fixed, fixed + 2 * half, min(half, int(model.window * limits.full) - fixed))
    return await _compact(rail, model, talk, size)


def _fixed(rail: AsyncHandrail, talk: Talk) -> int:
    return tokens_of_tools(talk.system.text if talk.system else "", rail.specs())


async def _compact(rail: AsyncHandrail, model: Model, talk: Talk, size: _Size) -> bool:
    if size.room < _LEAST_ROOM:
        return False
    shown = in_full(talk.messages)
    chosen = plan(shown, int(size.room * _TAIL))
    before = tokens_in(sent(talk.messages))
    gained = before - tokens_in([one.message for one in chosen.kept]) - int(size.room * _SUMMARY)
    if not shown or (gained < size.room * _WORTH_IT and chosen.cut is None):
        return False
    message, spent, failed = await _summarised(rail, model, talk, chosen, size)
    talk.add(message, *_told(model, chosen, size, spent, failed))
    return True


async def _summarised(
    rail: AsyncHandrail, model: Model, talk: Talk, chosen: Plan, size: _Size
) -> tuple[SummaryMessage, Spent | None, ModelError | None]:
    found = last_summary(talk.messages)
    before = found[1].notes if found else ""
    dropped = [one.message for one in chosen.dropped]
    answer = await notes_on(model, dropped, before, _characters(size.window // 2)) if dropped else None
    failed = answer if isinstance(answer, ModelError) else None
    notes, spent = answer if isinstance(answer, tuple) else (before, None)
    kept_from = chosen.kept[0].number if chosen.kept else talk.messages[-1].number + 1
    text = summary_text(await _ledger(rail, talk, kept_from), notes, _characters(int(size.room * _SUMMARY)))
    return SummaryMessage(text=text, kept_from=kept_from, cut=chosen.cut, notes=notes), spent, failed


async def _ledger(rail: AsyncHandrail, talk: Talk, kept_from: int) -> Ledger:
    """From all that was ever said before the messages that are kept: no summary of a summary loses anything."""
    aside = SystemMessage | SummaryMessage
    older = [one.message for one in talk.messages if one.number < kept_from and not isinstance(one.message, aside)]
    changes = [one for one in await rail.changes(_ALL) if one.session_id == rail.session_id]
    return Ledger(messages=older, changes=changes[::-1], processes=await rail.processes())


def _characters(tokens: int) -> int:
    return int(tokens * BYTES_A_TOKEN)


def _told(model: Model, chosen: Plan, size: _Size, spent: Spent | None, failed: ModelError | None) -> tuple[Draft, ...]:
    stay = "as they were" if chosen.cut is None else "with their results cut short"
    text = (
        f"The talk had become long for {model.name} ({size.now:,} of {size.window:,} tokens): {len(chosen.dropped)} "
        f"older messages are summed up for it, {len(chosen.kept)} stay {stay}. The log has all of them."
    )
    if failed is not None:
        text += f" The model wrote no notes on them: {failed.message}"
    notice: dict[str, Any] = {"text": text}
    return (*(((Usage, _used(model, spent)),) if spent else ()), (Notice, notice))


def _used(model: Model, spent: Spent) -> dict[str, Any]:
    return {"model": model.name, **msgspec.structs.asdict(spent)}


def _too_long(model: Model, fixed: int) -> ModelError:
    return ModelError(
        "LIMIT_EXCEEDED",
        f"The talk does not fit the window of {model.name} ({model.window:,} tokens), {fixed:,} of which the system "
        "prompt and the tools take, and it cannot be made shorter. Go on with a model that has a larger window, or "
        "offer fewer tools ([tools] disable).",
    )
