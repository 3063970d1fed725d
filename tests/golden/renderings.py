"""What the event adapters make of a recorded session: kept in tests/dialects/golden, one message a line."""

import tempfile
from pathlib import Path
from typing import Any

from bundles import read_bundle, unpack

from handrail.dialects.adapters import ADAPTERS
from handrail.protocol.events import Event
from handrail.protocol.wire import encode
from handrail.state import open_journal
from handrail.store.state_dir import StateFolder

HERE = Path(__file__).resolve().parent
RENDERED = HERE.parent / "dialects" / "golden"
RECORDED = HERE / "0.1.0"
"""The set that is rendered."""
NAMES = ("work", "killed", "forked")


def events_of(bundle: dict[str, Any], folder: Path) -> list[Event]:
    """All events of a session, as they are stored; nobody is at work on it."""
    workspace, state = unpack(bundle, folder)
    with open_journal(StateFolder(str(state)).session(str(workspace.resolve()), bundle["session"])) as journal:
        return [event for event in journal.events() if isinstance(event, Event)]


def rendered(adapter: str, events: list[Event]) -> str:
    """The whole stream in one dialect."""
    one = ADAPTERS[adapter]("/workspace")
    return "".join(f"{encode(message).decode()}\n" for event in events for message in one.render(event))


def write_renderings() -> None:
    """Writes them all anew."""
    RENDERED.mkdir(exist_ok=True)
    for name in NAMES:
        with tempfile.TemporaryDirectory() as folder:
            events = events_of(read_bundle(RECORDED / f"{name}.json"), Path(folder))
        for adapter in ADAPTERS:
            (RENDERED / f"{adapter}-{name}.jsonl").write_text(rendered(adapter, events), encoding="utf-8")
            print(f"wrote {adapter}-{name}.jsonl")
