"""Judges calls of before under the rules of today, from the facts that were written down. No file is looked at."""

import os
from collections.abc import Callable, Iterable
from datetime import datetime

import msgspec

from handrail.policy.config import PolicyConfig
from handrail.policy.decide import decide
from handrail.protocol.decisions import Decision, Facts, Mode, Verdict
from handrail.protocol.errors import StoreError
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import Wire
from handrail.store.journal import BrokenEvent, CallContext, PastCall
from handrail.store.sessions import list_past_calls

_BEFORE_POLICY = frozenset({"call.refused", "journal.broken"})


class DecisionChange(Wire, frozen=True):
    """A call that would be decided otherwise."""

    time: datetime
    session: str
    tool_call_id: str
    tool: str
    subject: str
    then: Verdict
    now: Verdict
    rule: str
    """The one that decides now."""
    reason: str
    rule_then: str


class PolicyReplay(Wire, frozen=True, omit_defaults=False):
    """What today's rules would make of the calls."""

    calls: int
    """Those that could be judged again."""
    differ: tuple[DecisionChange, ...]
    """In the order of time."""
    unjudged: int
    """Refused before policy was asked: an unknown tool, wrong arguments."""
    gone: dict[str, int]
    """Calls of tools that are not here any more, by their name."""
    broken: int
    """Calls whose record cannot be read."""
    unreadable: tuple[str, ...]
    """Why the journals of whole sessions cannot be read."""


def replay(
    folders: Iterable[str],
    spec_of: Callable[[str], ToolSpec | None],
    rules: PolicyConfig,
    since: datetime | None,
    mode: Mode | None = None,
) -> PolicyReplay:
    """Judges every call of some sessions again, in its own mode or in one for all. An answer that a person gave is no
    part of the comparison."""
    counts = _Counts(spec_of, rules, mode)
    for folder in folders:
        try:
            for call in list_past_calls(folder, since):
                counts.add(os.path.basename(folder), call)
        except StoreError as error:
            counts.unreadable.append(str(error))
    return counts.replay()


class _Counts:
    def __init__(self, spec_of: Callable[[str], ToolSpec | None], rules: PolicyConfig, mode: Mode | None) -> None:
        self.unreadable: list[str] = []
        self._spec_of, self._rules = spec_of, rules
        self._mode: Mode | None = mode
        self._calls = self._unjudged = self._broken = 0
        self._gone: dict[str, int] = {}
        self._differ: list[DecisionChange] = []

    def add(self, session: str, call: PastCall | BrokenEvent) -> None:
        if isinstance(call, BrokenEvent):
            self._broken += 1
        elif call.decided.decision.rule in _BEFORE_POLICY:
            self._unjudged += 1
        elif (spec := self._spec_of(name := call.start.tool_call_name) or _to_server_spec(call.decided.facts)) is None:
            self._gone[name] = self._gone.get(name, 0) + 1
        else:
            self._judge(session, call, spec)

    def _judge(self, session: str, call: PastCall, spec: ToolSpec) -> None:
        self._calls += 1
        then = call.decided.decision
        now = decide(
            spec, call.start.requested_permissions, call.decided.facts, _as_then(self._rules, call.decided, self._mode)
        )
        if now.decision != then.decision:
            self._differ.append(_difference(session, call, now))

    def replay(self) -> PolicyReplay:
        return PolicyReplay(
            calls=self._calls,
            differ=tuple(sorted(self._differ, key=lambda one: one.time)),
            unjudged=self._unjudged,
            gone=self._gone,
            broken=self._broken,
            unreadable=tuple(self.unreadable),
        )


def _to_server_spec(facts: Facts) -> ToolSpec | None:
    """Of another server's tool the facts have what policy goes by; no server is asked."""
    if facts.foreign is None:
        return None
    from handrail.runtime.foreign.unasked import build_unlisted_spec  # noqa: PLC0415  few call other servers

    return build_unlisted_spec(facts.foreign)


def _as_then(rules: PolicyConfig, then: CallContext, mode: Mode | None) -> PolicyConfig:
    """In which mode a call was made, and whether somebody was there to be asked, is no rule: that stays as it was."""
    return msgspec.structs.replace(rules, mode=mode or then.mode or rules.mode, unattended=then.unattended)


def _difference(session: str, call: PastCall, now: Decision) -> DecisionChange:
    then = call.decided.decision
    return DecisionChange(
        time=call.start.time,
        session=session,
        tool_call_id=call.start.tool_call_id,
        tool=call.start.tool_call_name,
        subject=now.subject or then.subject,
        then=then.decision,
        now=now.decision,
        rule=now.rule,
        reason=now.reason,
        rule_then=then.rule,
    )
