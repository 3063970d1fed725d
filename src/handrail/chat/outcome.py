"""The end of a turn in a session: its outcome, its changes, the next step."""

from handrail.agent.turn import Turn
from handrail.chat.session import ChatSession
from handrail.protocol.text import to_one_line
from handrail.terminal.glyphs import Glyphs
from handrail.terminal.turn_summary import render_ending


async def render_turn_end(session: ChatSession, turn: Turn, seconds: float, glyphs: Glyphs) -> list[str]:
    """The rows below a turn."""
    rows = [""]
    if turn.reason == "error":
        text = to_one_line(turn.message or turn.code or "the turn failed")
        stop = "" if text.endswith((".", "!", "?", "…")) else "."
        rows.append(f"{glyphs.sign('failed')} {text}{stop} The session is saved: handrail chat -c")
    if turn.reason != "error" or session.tally.calls:
        processes = await session.rail.processes()
        rows += render_ending(turn.reason, session.tally, seconds, processes, glyphs, here=None)
    if turn.reason in {"cancelled", "limit"} and turn.message:
        rows.append(f"  {to_one_line(turn.message)}")
    if turn.reason in {"parked", "question"}:
        noun = "question" if turn.reason == "question" else "request"
        rows.append(f"  A {noun} waits for you: /continue asks again, a new prompt denies it.")
    return rows
