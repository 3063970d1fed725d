"""What exec answers where its command goes on: what it has printed so far, and how to look after it."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from handrail.protocol.results import SandboxUsed
from handrail.tools.contract import CommandContext, Output
from handrail.tools.exec_spec import ExecData
from handrail.tools.polling import take_new_output

if TYPE_CHECKING:
    from handrail.process.sessions.session import ProcessSession

_STATE_ROOM_CHARS = 600
"""Characters of the result that say what goes on, and what to do next."""

_CHANGES = {"read-only": "", "layer": "; what it changes is in its overlay, seen by nobody else, until it ends"}


def build_handover_output(
    context: CommandContext, process: "ProcessSession", sandbox: SandboxUsed, *, waited: bool
) -> Output:
    """What there is by now, where the call waited for it; the next poll goes on behind it."""
    news = take_new_output(process, max(1_000, context.limits.characters - _STATE_ROOM_CHARS) if waited else 0)
    record = process.record()
    taken = ((record.ended or datetime.now(UTC)) - record.started).total_seconds()
    text = news.text if not news.text or news.text.endswith("\n") else f"{news.text}\n"
    goes_on = "It goes on" if record.state == "running" else "It has ended by now"
    left = _CHANGES.get(sandbox.undo, "; what it changes is not covered by undo")
    more = f" {news.waiting:,} bytes more are there already." if news.waiting and waited else ""
    how = f'process {{"action": "poll", "sessionId": "{process.id}"}} gives what it prints next; kill ends it.'
    return Output(
        summary=f"goes on as {process.id}",
        content=f"{text}[{goes_on} as the process session {process.id}{left}.{more} Next: {how}]\n",
        data=ExecData(
            output=news.text, exit_code=None, duration_ms=round(max(0.0, taken) * 1000, 3), session_id=process.id
        ),
        truncated=waited and news.waiting > 0,
        meta={"sandbox": sandbox},
        commands_run=(context.facts.command.text if context.facts.command else "",),
    )
