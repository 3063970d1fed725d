"""Lays out docs/reference/protocol.md."""

import inspect
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from handrail.protocol.events import KINDS, Event, PermissionEvent, ToolEvent, get_event_kind
from handrail.protocol.schema import EVENTS, MESSAGES
from handrail.protocol.tool_spec import ToolSpec
from handrail.protocol.version import PROTOCOL_VERSION

from . import prose
from .fields import Row, parts, rows, struct_of
from .gist import gist
from .layout import as_json
from .story import Story

_WIDTH = 110
_HEADERS: dict[type, str] = {
    Event: "every event",
    ToolEvent: "every tool event",
    PermissionEvent: "every permission event",
}


def page(story: Story, samples: dict[str, Any]) -> str:
    """The whole page."""
    blocks = [
        "# The handrail protocol",
        "<!-- Generated: scripts/protocol --write, from src/handrail/protocol and a session it plays. Do not edit. -->",
        prose.START,
        _contents(story.specs),
        "## Calls and results",
        prose.CALLS,
        "## Names",
        prose.NAMES,
        "## Events and channels",
        prose.EVENTS,
        _channels(),
        "## Permission",
        prose.PERMISSION,
        "## Versions",
        prose.VERSIONS.format(protocol=PROTOCOL_VERSION),
        "## Error codes",
        prose.CODES,
        "## One session",
        prose.STORY,
        _session(story.events),
        "## One conversation",
        prose.TALK,
        _session(story.talk),
        "## Messages",
        *_messages(samples),
        "## Events",
        *_events(samples),
        "## Tools",
        *(block for spec in story.specs for block in _tool(spec, story.uses[spec.name])),
    ]
    return "\n\n".join(block.strip("\n") for block in blocks) + "\n"


def _contents(tools: tuple[ToolSpec, ...]) -> str:
    chapters = (
        "Calls and results",
        "Names",
        "Events and channels",
        "Permission",
        "Versions",
        "Error codes",
        "One session",
        "One conversation",
    )
    lines = [
        " · ".join(_link(chapter) for chapter in chapters),
        f"**[Messages](#messages)** {' · '.join(_link(name) for name in MESSAGES)}",
        f"**[Events](#events)** {' · '.join(_link(name, name.removeprefix('event.')) for name in EVENTS)}",
        f"**[Tools](#tools)** {' · '.join(_link(f'tool {spec.name}', spec.name) for spec in tools)}",
    ]
    return "\n\n".join(_wrapped(line) for line in lines)


def _channels() -> str:
    channels: dict[str, list[str]] = {}
    for kind in KINDS:
        channels.setdefault(kind.channel, []).append(get_event_kind(kind))
    return "\n".join(_wrapped(f"- `{name}`: {', '.join(kinds)}", "  ") for name, kinds in channels.items())


def _session(events: list[Any]) -> str:
    lines = [
        (
            str(event["seq"]),
            _link(f"event.{event['kind']}", event["kind"]),
            event.get("tool_call_id") or "",
            gist(event),
        )
        for event in events
    ]
    return _table(("seq", "kind", "call", "content"), lines)


def _messages(samples: dict[str, Any]) -> Iterator[str]:
    told: set[type] = set()
    for name, shape in MESSAGES.items():
        yield f"### {name}"
        yield from _described(shape)
        yield _fields(rows(shape, _named))
        for part in _new_parts(shape, told):
            yield f"**{part.__name__}**: {_first_down(_doc(part))}"
            yield _fields(rows(part, _named))
        yield _json(samples[name])


def _new_parts(shape: Any, told: set[type]) -> Iterator[type]:
    """Structs that have no section of their own, each where it is met first."""
    own = {struct_of(message) for message in MESSAGES.values()}
    for part in parts(shape):
        if part not in own and part not in told:
            told.add(part)
            yield part
            yield from _new_parts(part, told)


def _events(samples: dict[str, Any]) -> Iterator[str]:
    for header, before in ((Event, None), (ToolEvent, Event), (PermissionEvent, ToolEvent)):
        yield f"### {_HEADERS[header].capitalize()}"
        yield from _described(header)
        if before:
            yield f"All that {_link(_HEADERS[before])} has, and:"
        kind = [] if before else [Row("kind", "string", "yes", "Which of the kinds below it is.")]
        yield _fields([*kind, *rows(header, _named, without=before or object)])
    for name, kind in EVENTS.items():
        header = next(base for base in kind.__mro__[1:] if base in _HEADERS)
        own = rows(kind, _named, without=header)
        yield f"### {name}"
        yield from _described(kind)
        yield f"Channel `{kind.channel}`. All that {_link(_HEADERS[header])} has{', and:' if own else '.'}"
        if own:
            yield _fields(own)
        yield _json(samples[name])


def _tool(spec: ToolSpec, use: dict[str, Any]) -> Iterator[str]:
    permissions = ", ".join(f"`{permission}`" for permission in spec.permissions) or "nothing"
    effects = ", ".join(spec.side_effects) or "nothing"
    yield f"### Tool {spec.name}"
    yield _wrapped(spec.description)
    yield f"Version {spec.version}. Needs {permissions}; changes {effects}."
    for title, shape, key in (("Arguments", spec.arguments, "args"), ("Data", spec.data, "data")):
        yield f"**{title}**"
        yield _fields(rows(shape, _named))
        for part in parts(shape):
            yield f"**{part.__name__}**: {_first_down(_doc(part))}"
            yield _fields(rows(part, _named))
        yield _json(use[key])


def _described(shape: Any) -> Iterator[str]:
    yield _wrapped(_doc(struct_of(shape)))


def _json(value: Any) -> str:
    return f"*Sample, from a run*\n\n```json\n{as_json(value)}\n```"


def _fields(found: list[Row]) -> str:
    if any(row.meaning for row in found):
        return _table(("field", "type", "required", "meaning"), [(f"`{row.name}`", *row[1:]) for row in found])
    return _table(("field", "type", "required"), [(f"`{row.name}`", *row[1:3]) for row in found])


def _named(struct: type) -> str:
    """A message by its name on the wire, with a link; a part by the name of its class."""
    names = {struct_of(shape): name for name, shape in MESSAGES.items()}
    return _link(names[struct]) if struct in names else struct.__name__


def _table(titles: tuple[str, ...], lines: Iterable[tuple[str, ...]]) -> str:
    first, *others = (
        f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in (titles, *lines)
    )
    return "\n".join([first, f"|{'---|' * len(titles)}", *others])


def _link(heading: str, text: str | None = None) -> str:
    anchor = "".join(c for c in heading.lower().replace(" ", "-") if c.isalnum() or c in "-_")
    return f"[{text or heading}](#{anchor})"


def _doc(cls: type) -> str:
    return inspect.getdoc(cls) or ""


def _first_down(text: str) -> str:
    return text[:1].lower() + text[1:]


def _wrapped(text: str, hanging: str = "") -> str:
    words = " ".join(text.split())
    return textwrap.fill(words, _WIDTH, subsequent_indent=hanging, break_long_words=False, break_on_hyphens=False)
