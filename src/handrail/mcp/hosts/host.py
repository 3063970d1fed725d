"""What is known of a host: the files that tell it of us, and what it does and does not do then."""

from typing import Any, Literal

import msgspec

from handrail.mcp.hosts.editing.jsonc import merge_jsonc
from handrail.mcp.hosts.editing.layout import Layout, render_block
from handrail.mcp.hosts.editing.places import parse_jsonc
from handrail.mcp.hosts.editing.toml import merge_toml, parse_toml
from handrail.mcp.hosts.editing.wanted import (
    CannotMerge,
    drop_servers,
    has_server,
    has_wanted,
    list_server_entries,
    to_plain_value,
)

Form = Literal["json", "toml", "text"]


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file of a host, and what it is to say."""

    paths: tuple[str, ...]
    """Where it may be: beneath the workspace, or absolute where it is the person's own. The first is made where none of
    them is there."""
    wanted: dict[str, Any] = {}
    text: str = ""
    """All of it, where it is a text of ours."""
    form: Form = "json"

    @property
    def is_user_file(self) -> bool:
        """Whether it is for every workspace of theirs."""
        return self.paths[0].startswith("/")


class McpHost(msgspec.Struct, frozen=True, kw_only=True):
    """Another program with an agent."""

    name: str
    """What --config calls it."""
    title: str
    files: tuple[HostFile, ...]
    off: str
    """Which of its own tools that switches off, in words; how far, where it does so only in part."""
    left: str
    """What it can still do that goes round us, in words."""
    then: str
    """What the person does next."""


def merge_host_file(file: HostFile, before: str | None) -> str:
    """What the file is to hold. Broken where it cannot be read; Misfit where what is wanted cannot be put there."""
    if file.form == "text":
        return _as_text(file, before)
    if file.form == "toml":
        return merge_toml(before or "", file.wanted)
    return merge_jsonc(before or "", file.wanted)


def render_snippet(file: HostFile) -> str:
    """What somebody pastes who does it by hand."""
    if file.form == "text":
        return file.text
    if file.form == "toml":
        return merge_toml("", file.wanted)
    return f"{render_block(to_plain_value(file.wanted), '', Layout())}\n"


def check(file: HostFile, text: str) -> None:
    """Broken where the file cannot be read."""
    _value(file, text)


def has_handrail_entry(file: HostFile, text: str) -> bool:
    """Whether a file has an entry for us, as we would write it or not."""
    return has_server(_value(file, text), file.wanted)


def list_programs(file: HostFile, text: str) -> list[str]:
    """Which programs our entries have the host start, as far as that is plain to see."""
    commands: list[Any] = [entry.get("command") for entry in list_server_entries(_value(file, text), file.wanted)]
    named: list[Any] = [command[0] if command and isinstance(command, list) else command for command in commands]
    return list(dict.fromkeys(program for program in named if program and isinstance(program, str)))


def has_other_settings(file: HostFile, text: str) -> bool:
    """Whether a file says all else that it is to say: which of the host's own tools are off."""
    return has_wanted(_value(file, text), drop_servers(file.wanted))


def _value(file: HostFile, text: str) -> Any:
    if file.form == "text":
        return {}
    if file.form == "toml":
        return parse_toml(text)
    place = parse_jsonc(text)
    return None if place is None else place.value


def _as_text(file: HostFile, before: str | None) -> str:
    """One of ours that somebody changed is theirs now, as long as it still has our tools in it."""
    if before is None:
        return file.text
    if "handrail/" in before:
        return before
    raise CannotMerge("there is one already, and it is about something else")
