"""scripts/protocol: writes the generated files, or checks that a fresh run gives the same."""

import argparse
import difflib
import sys
from pathlib import Path
from typing import Any

from handrail.protocol.schema import WIRE_TYPES

from .layout import as_json
from .listing import build_default_tools
from .page import page
from .stable import Placeholders
from .story import Story, play

_SAMPLES = "src/handrail/protocol/samples.json"
_PAGE = "docs/reference/protocol.md"
_DEFAULT_TOOLS = "src/handrail/mcp/default_tools.json"
_SHOWN = 60


def main(root: Path, description: str) -> int:
    """Runs the command; the exit code."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--write", action="store_true", help="write the files")
    choice.add_argument("--check", action="store_true", help="exit 1 when they are out of date")
    write: bool = parser.parse_args().write
    stale = {path: text for path, text in generated().items() if _read(root / path) != text}
    for path, text in stale.items():
        if write:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8")
            print(f"wrote {path}")
        else:
            _complain(path, _read(root / path), text)
    return 1 if stale and not write else 0


def generated() -> dict[str, str]:
    """The text of each generated file by its path, after a fresh run."""
    story = _placed(play())
    samples = _list_samples(story)
    return {
        _SAMPLES: f"{as_json(samples)}\n",
        _PAGE: page(story, samples),
        _DEFAULT_TOOLS: build_default_tools(),
    }


def _placed(story: Story) -> Story:
    placeholders = Placeholders()
    parts = (story.events, story.talk, story.messages, story.uses)
    events, talk, messages, uses = map(placeholders.put, parts)
    return story._replace(events=events, messages=messages, uses=uses, talk=talk)


def _list_samples(story: Story) -> dict[str, Any]:
    """A sample of everything that was seen: of events, the first of each kind."""
    seen = dict(story.messages)
    for event in (*story.events, *story.talk):
        seen.setdefault(f"event.{event['kind']}", event)
    if missing := WIRE_TYPES.keys() - seen.keys():
        raise SystemExit(f"the story emits no {', '.join(sorted(missing))}: is curl there, and bubblewrap?")
    return {name: seen[name] for name in WIRE_TYPES}


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _complain(path: str, old: str, new: str) -> None:
    print(f"{path} is out of date; scripts/protocol --write brings it up to date.", file=sys.stderr)
    difference = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "stored", "fresh", lineterm="", n=1))
    print("\n".join(difference[:_SHOWN]), file=sys.stderr)
