"""What is known of a host: the files that tell it of us, and what it does and does not do then."""

from typing import Any, Literal

import msgspec

from handrail.mcp.hosts.editing.jsonc import with_wanted
from handrail.mcp.hosts.editing.layout import Layout, over_lines
from handrail.mcp.hosts.editing.places import read_places
from handrail.mcp.hosts.editing.toml import parsed, with_wanted_toml
from handrail.mcp.hosts.editing.wanted import Misfit, entries_in, has_server, is_there, plainly, without_servers

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
    def of_the_person(self) -> bool:
        """Whether it is for every workspace of theirs."""
        return self.paths[0].startswith("/")


class Host(msgspec.Struct, frozen=True, kw_only=True):
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


def changed(file: HostFile, before: str | None) -> str:
    """What the file is to hold. Broken where it cannot be read; Misfit where what is wanted cannot be put there."""
    if file.form == "text":
        return _as_text(file, before)
    if file.form == "toml":
        return with_wanted_toml(before or "", file.wanted)
    return with_wanted(before or "", file.wanted)


def snippet(file: HostFile) -> str:
    """What somebody pastes who does it by hand."""
    if file.form == "text":
        return file.text
    if file.form == "toml":
        return with_wanted_toml("", file.wanted)
    return f"{over_lines(plainly(file.wanted), '', Layout())}\n"


def check(file: HostFile, text: str) -> None:
    """Broken where the file cannot be read."""
    _value(file, text)


def knows_us(file: HostFile, text: str) -> bool:
    """Whether a file has an entry for us, as we would write it or not."""
    return has_server(_value(file, text), file.wanted)


def programs_in(file: HostFile, text: str) -> list[str]:
    """Which programs our entries have the host start, as far as that is plain to see."""
    commands: list[Any] = [entry.get("command") for entry in entries_in(_value(file, text), file.wanted)]
    named: list[Any] = [command[0] if command and isinstance(command, list) else command for command in commands]
    return list(dict.fromkeys(program for program in named if program and isinstance(program, str)))


def has_the_rest(file: HostFile, text: str) -> bool:
    """Whether a file says all else that it is to say: which of the host's own tools are off."""
    return is_there(_value(file, text), without_servers(file.wanted))


def _value(file: HostFile, text: str) -> Any:
    if file.form == "text":
        return {}
    if file.form == "toml":
        return parsed(text)
    place = read_places(text)
    return None if place is None else place.value


def _as_text(file: HostFile, before: str | None) -> str:
    """One of ours that somebody changed is theirs now, as long as it still has our tools in it."""
    if before is None:
        return file.text
    if "handrail/" in before:
        return before
    raise Misfit("there is one already, and it is about something else")
