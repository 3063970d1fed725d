"""What must not be lost with the older part of a transcript, as the journal has it: nothing here is a model's word."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, cast

import msgspec

from handrail.agent.compaction.bounding import clip_line, format_ranges, keep_ends, keep_newest
from handrail.agent.compaction.exchanges import CallExchange, collect_exchanges
from handrail.protocol.changes import ChangeRecord
from handrail.protocol.messages import AssistantMessage, Message, UserMessage
from handrail.protocol.records import ProcessRecord

_MAX_FILES_PER_LINE = 200
_MAX_READ_FILES = 40
_MAX_PATH_CHARS = 300
"""Characters of a name, which may also have lines in it."""
_SHORT_PROMPT_CHARS, _MIN_PROMPT_CHARS = 160, 40
"""Characters that are left of a prompt where there are many, and where there are very many."""


class HistoryDigest(msgspec.Struct, frozen=True, kw_only=True):
    """What it is made from."""

    messages: Sequence[Message]
    """All that the model sees no longer as it was."""
    changes: Sequence[ChangeRecord] = ()
    """Of this session, oldest first."""
    processes: Sequence[ProcessRecord] = ()

    def sections(self, room: int) -> list[tuple[str, list[str]]]:
        """Title and lines of each section, in at most about so many characters."""
        done = list(collect_exchanges(self.messages))
        small: list[tuple[str, list[str]]] = [
            ("Changes in effect, by the number that undoes them", self._changes(room // 4)),
            ("Replies of the person to your questions", keep_newest(_replies(done), room // 8, "- … {} earlier ones.")),
            ("Files you had read or changed; read them again before you change them", _read(done)),
            ("To do", _todo(done)),
            ("Commands that still run in the background", self._processes()),
            ("Active skills; activate one again to read its text", _skills(done)),
        ]
        prompts = _prompts(self.messages, room // 2)
        left = room - _size(prompts) - sum(_size(lines) for _, lines in small)
        lines = keep_newest(self._done(), max(left, room // 8), "- … {} earlier ones.")
        return [("What the person asked, oldest first", prompts), ("What was done", lines), *small]

    def _done(self) -> list[str]:
        outcomes = {one.call.tool_call_id: self._outcome(one) for one in collect_exchanges(self.messages)}
        lines: list[str] = []
        for message in self.messages:
            if isinstance(message, AssistantMessage):
                if message.text.strip() and not message.calls:
                    lines.append(f"- You answered: {clip_line(message.text, 300)}")
                lines += [outcomes[call.tool_call_id] for call in message.calls if call.tool_call_id in outcomes]
        return lines

    def _outcome(self, one: CallExchange) -> str:
        made = [record for record in self.changes if record.tool_call_id == one.call.tool_call_id]
        numbers = [f"change {record.number}{'' if record.in_effect else ', undone since'}" for record in made]
        outcome = "ok" if one.result.ok else f"failed: {clip_line(one.result.content, 160)}"
        return f"- {one.call.name} {clip_line(one.subject, 120)}: {'; '.join((outcome, *numbers))}"

    def _changes(self, room: int) -> list[str]:
        """Each file with the numbers of what changed it; files that were changed by the same go together. Of very many
        files only the first are named, of the numbers none is left out."""
        numbers: dict[str, list[int]] = {}
        for record in self.changes:
            if record.in_effect and not record.undoes:
                for change in record.changes:
                    numbers.setdefault(clip_line(change.path, _MAX_PATH_CHARS), []).append(record.number)
        files: dict[tuple[int, ...], list[str]] = {}
        for path, found in numbers.items():
            files.setdefault(tuple(found), []).append(path)
        most = max(1, _MAX_FILES_PER_LINE if sum(map(len, numbers)) < room else room // (60 * len(files)))
        return [f"- {format_ranges(found)}: {_listed(paths, most)}" for found, paths in files.items()]

    def _processes(self) -> list[str]:
        running = [record for record in self.processes if record.state == "running"]
        return [f"- {record.id}: {clip_line(record.command, 200)}" for record in running]


def _listed(paths: Sequence[str], most: int) -> str:
    more = len(paths) - most
    return ", ".join(paths[:most]) + (f" and {more:,} more" if more > 0 else "")


def _prompts(messages: Sequence[Message], room: int) -> list[str]:
    """What the person said, the newest most complete."""
    said = [one.text for one in messages if isinstance(one, UserMessage) and not one.by_loop]
    shortest = min(_SHORT_PROMPT_CHARS, max(_MIN_PROMPT_CHARS, room // (2 * len(said) or 1)))
    lines: list[str] = []
    left = room
    for text in reversed(said):
        line = f"{len(said) - len(lines)}. {keep_ends(text, max(shortest, left // 2))}"
        lines.append(line)
        left -= len(line)
    return keep_newest(lines[::-1], 2 * room, "{} earlier ones are left out.")


def _replies(done: Sequence[CallExchange]) -> list[str]:
    asked = [one for one in done if one.call.name == "question" and one.result.ok]
    return [f"- {clip_line(one.subject, 300)} → {keep_ends(one.result.content, 600)}" for one in asked]


def _read(done: Sequence[CallExchange]) -> list[str]:
    paths = (
        one.argument("path") for one in reversed(done) if one.call.name in {"read", "edit", "write"} and one.result.ok
    )
    found = dict.fromkeys(
        clip_line(path, _MAX_PATH_CHARS) for path in paths if isinstance(path, str) and not path.startswith("@")
    )
    return [f"- {', '.join(islice(found, _MAX_READ_FILES))}"] if found else []


def _todo(done: Sequence[CallExchange]) -> list[str]:
    """The list as it was sent last."""
    sent = (one.argument("items") for one in reversed(done) if one.call.name == "todo" and one.result.ok)
    items: Any = next(sent, None)
    listed = cast("list[dict[str, Any]]", items if isinstance(items, list) else [])
    return [f"- [{item.get('status', 'pending')}] {clip_line(str(item.get('text')), 300)}" for item in listed]


def _skills(done: Sequence[CallExchange]) -> list[str]:
    active: dict[str, None] = {}
    for one in done:
        if one.call.name == "skill_control" and one.result.ok:
            change: Callable[[str], Any] = (
                active.setdefault if one.argument("action") == "activate" else lambda name: active.pop(name, None)
            )
            change(str(one.argument("name")))
    return [f"- {name}" for name in active]


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)
