"""A fixed little session in a temporary workspace: everything the runtime emits today happens in it."""

import os
import signal
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from handrail import Context, Done, Handrail, Parked, Tool, ToolCall, tool
from handrail.process import output
from handrail.protocol.decisions import Mode
from handrail.protocol.schema import describe
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.settings.model import Tools
from handrail.store.database import Database
from handrail.store.journal import SessionJournal
from handrail.store.state_dir import StateFolder, make_id
from handrail.workspace.search import search

from .talk import play_talk

_ANSWERS_WITHIN = 60.0
"""Seconds."""
README = "# Shop\n"
TOTAL = """\
def total(prices):
    return round(sum(prices), 2)
"""
BETTER = """\
from decimal import ROUND_HALF_UP, Decimal


def total(prices):
    return sum(prices).quantize(Decimal("0.01"), ROUND_HALF_UP)
"""
PATCH = """\
*** Begin Patch
*** Add File: docs/news.md
+Prices are rounded half up.
*** Update File: src/total.py
*** Move to: src/net.py
@@ def net(prices):
-    return fsum(prices).quantize(Decimal("0.01"), ROUND_HALF_UP)
+    return fsum(prices).quantize(CENT, ROUND_HALF_UP)
*** End Patch
"""


class Story(NamedTuple):
    """What was seen, as it crosses the wire."""

    events: list[Any]
    """The whole stream."""
    talk: list[Any]
    """That of a session in which a model is at work."""
    messages: dict[str, Any]
    """One of each message, by the name its schema has."""
    uses: dict[str, Any]
    """A call of each tool: its arguments, and the data of its result."""
    specs: tuple[ToolSpec, ...]
    """The tools that come with handrail."""


def play() -> Story:
    """Plays the session. Ids, times and durations differ from run to run."""
    os.umask(0o022)  # the mode of a new file is part of a change
    # What is told on the way, and where a search gives up, are matters of time; a recorded story must not be.
    output._FIRST_PAUSE_SECONDS = search.MAX_SECONDS = _ANSWERS_WITHIN  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    with tempfile.TemporaryDirectory(prefix="handrail-story-") as folder:
        shop, state = Path(folder, "shop"), Path(folder, "state")
        (shop / "src").mkdir(parents=True)
        (shop / "src" / "total.py").write_text(TOTAL)
        (shop / "README.md").write_text(README)
        with _opened(shop, state, "ask") as rail:
            session = rail.session_id
            seen, uses = _work(rail)
        _be_killed(shop, state, session)
        with _opened(shop, state, "plan", session) as rail:
            events = [_json(event) for event in rail.events()]
            specs = tuple(spec for spec in rail.specs() if spec.category == "builtin")
        seen |= _decided(shop, state, session, seen["parked"]["requests"][0]["toolCallId"])
        seen |= {"answer": _first(events, "tool_call.permission-denied")["answer"]}
        seen |= {"change_set": _first(events, "change")["change"]}
        talk = play_talk(shop, state)
        seen |= _json(talk.messages)
        if folder.encode() in encode((events, talk.events, seen, uses)):
            raise AssertionError("the story names the folder it was played in")
    missing = {spec.name for spec in specs} - uses.keys()
    if missing:
        raise AssertionError(f"the story does not use {', '.join(sorted(missing))}")
    return Story(events, _json(talk.events), seen, uses, specs)


def _work(rail: Handrail) -> tuple[dict[str, Any], dict[str, Any]]:
    """Looks, asks before it writes, hears a yes and a no, calls what does not exist, watches a tool at work."""
    read, ls = _call("read", {"path": "src/total.py"}), _call("ls", {"path": ".", "depth": 2})
    find, grep = _call("find", {"pattern": "*.py"}), _call("grep", {"pattern": "round", "contextLines": 1})
    count = _call("exec", {"command": "grep -c round src/total.py"})
    looked = _well(rail.batch((read, ls, find, grep, count)))

    write = _call("write", {"path": "src/total.py", "content": BETTER})
    parked = _parked(rail.batch((write,)))
    written = _well(rail.answer(parked.requests[0].id, "once"))

    edit = _call("edit", {"path": "README.md", "oldText": "# Shop", "newText": "# The shop"})
    edited = _well(rail.answer(_parked(rail.batch((edit,))).requests[0].id, "once"))

    changes = _changes()
    changed = [_well(rail.answer(_parked(rail.batch((call,))).requests[0].id, "once")).results[0] for call in changes]

    server = _parked(rail.batch((_call("exec", {"command": "cat", "background": True}),)))
    started = _json(_well(rail.answer(server.requests[0].id, "once")).results[0].data)["sessionId"]
    _well(rail.batch((_call("process", {"action": "write", "sessionId": started, "data": "hello\n"}),)))
    until = time.monotonic() + _ANSWERS_WITHIN
    while not rail.processes()[0].size:  # until it has answered: nobody is ended before it has begun
        if time.monotonic() > until:
            raise SystemExit("the process session of the story did not answer")
        time.sleep(0.01)
    kill = _call("process", {"action": "kill", "sessionId": started})
    killed = _well(rail.batch((kill,))).results[0]

    unwanted = _parked(rail.batch((_call("write", {"path": "README.md", "content": "# SHOP!\n"}),)))
    rail.answer(unwanted.requests[0].id, "deny", reason="keep the title")
    unknown = rail.call("read_file", {"path": "README.md"})
    rail.call("count_words", {"text": README})
    rail.set_mode("full")

    calls = (read, ls, find, grep, count, write, edit, *changes, kill)
    results = (*looked.results, *written.results, *edited.results, *changed, killed)
    uses = {call.name: {"args": call.args, "data": _json(of.data)} for call, of in zip(calls, results, strict=True)}
    seen = {
        "tool_call": read,
        "tool_result": looked.results[0],
        "error": unknown.error,
        "tool_description": describe(rail.specs()[0]),
        "permission_request": parked.requests[0],
        "done": written,
        "parked": parked,
        "change_record": rail.changes()[0],
        "process_record": rail.processes()[0],
    }
    return {name: _json(message) for name, message in seen.items()}, uses


def _changes() -> tuple[ToolCall, ...]:
    """Calls of the tools that a session offers where its settings enable them."""
    edits = [{"oldText": "total", "newText": "net", "occurrence": "first"}, {"oldText": "sum(", "newText": "fsum("}]
    return (
        _call("multi_edit", {"path": "src/total.py", "edits": edits}),
        _call("apply_patch", {"patch": PATCH}),
        _call("delete", {"path": "docs/news.md"}),
    )


@tool(read_only=True, auto_execute=True)
def count_words(text: str, context: Context) -> int:
    """Count the words of a text."""
    context.metadata(title="Counting words", output=f"{len(text)} characters", percent=50)
    return len(text.split())


@tool
def publish(version: str) -> str:
    """Publish the shop. The power fails in the middle of it."""
    os.kill(os.getpid(), signal.SIGKILL)
    return version


TOOLS: tuple[Tool, ...] = (count_words, publish)
SETTINGS = Settings(tools=Tools(enable=("apply_patch", "multi_edit", "delete")))


def _be_killed(shop: Path, state: Path, session: str) -> None:
    """Another process opens the session and is killed inside a tool."""
    child = os.fork()
    if child == 0:
        try:
            _opened(shop, state, "full", session).call("publish", {"version": "1.4.0"})
        finally:
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if not os.WIFSIGNALED(status):
        raise AssertionError("the child was not killed inside its call")


def _opened(shop: Path, state: Path, mode: Mode, session: str | None = None) -> Handrail:
    return Handrail(shop, mode=mode, session=session, state_dir=state, tools=TOOLS, settings=SETTINGS)


def _decided(shop: Path, state: Path, session: str, call_id: str) -> dict[str, Any]:
    """The facts and the decision that the journal keeps of a call."""
    folder = StateFolder(str(state)).session(str(shop), session)
    database = Database(str(Path(folder, "journal.db")), "crash")
    entry = SessionJournal(database, session, "").entry(call_id)
    database.close()
    if entry is None:
        raise AssertionError("the journal does not know the call")
    return {"facts": _json(entry.facts), "decision": _json(entry.decision)}


def _call(name: str, args: dict[str, Any]) -> ToolCall:
    call_id = make_id("call")
    return ToolCall(tool_call_id=call_id, name=name, args=args, trace_id=call_id, timestamp=datetime.now(UTC))


def _well(outcome: Done | Parked) -> Done:
    if isinstance(outcome, Parked):
        raise AssertionError("a call was parked that should have run")
    for result in outcome.results:
        if result.error:
            raise AssertionError(f"{result.name} should have succeeded: {result.error.message}")
    return outcome


def _parked(outcome: Done | Parked) -> Parked:
    if isinstance(outcome, Done):
        raise AssertionError("a call ran that should have been parked")
    return outcome


def _first(events: list[Any], kind: str) -> Any:
    return next(event for event in events if event["kind"] == kind)


def _json(value: Any) -> Any:
    """A value as the other side of the wire reads it."""
    return msgspec.json.decode(encode(value))
