"""The settings files of a host."""

from typing import Any, Literal

import msgspec

from handrail.mcp.hosts.jsonc import Layout, merge_jsonc, parse_jsonc, render_block
from handrail.mcp.hosts.merge import (
    CannotMerge,
    drop_servers,
    has_server,
    has_wanted,
    list_server_entries,
    to_plain_value,
)
from handrail.mcp.hosts.toml import merge_toml, parse_toml


class HostFile(msgspec.Struct, frozen=True, kw_only=True):
    """A settings file of a host, and the settings that handrail wants there."""

    paths: tuple[str, ...]
    """Possible paths: relative to the workspace, or absolute for a file of the user. A new file gets the first one."""
    wanted: dict[str, Any] = {}
    text: str = ""
    """The whole content of a file in the form `text`."""
    form: Literal["json", "toml", "text"] = "json"

    @property
    def is_user_file(self) -> bool:
        """Whether it counts for every workspace of the user."""
        return self.paths[0].startswith("/")

    def merge(self, before: str | None) -> str:
        """The content with the wanted settings. Raises ConfigSyntaxError or CannotMerge."""
        if self.form == "text":
            # The file stays the user's if they changed it, as long as it names our tools.
            if before is not None and "handrail/" not in before:
                raise CannotMerge("it already exists with other content")
            return self.text if before is None else before
        return (merge_toml if self.form == "toml" else merge_jsonc)(before or "", self.wanted)

    def render_snippet(self) -> str:
        """The wanted settings for a person who pastes them."""
        if self.form == "json":
            return f"{render_block(to_plain_value(self.wanted), '', Layout())}\n"
        return self.merge(None)

    def check(self, text: str) -> None:
        """Raises ConfigSyntaxError."""
        self._parse(text)

    def has_handrail_entry(self, text: str) -> bool:
        """Whether the file has an entry for handrail, with any content."""
        return has_server(self._parse(text), self.wanted)

    def has_other_settings(self, text: str) -> bool:
        """Whether the file has the wanted settings besides servers: which tools of the host are off."""
        return has_wanted(self._parse(text), drop_servers(self.wanted))

    def list_programs(self, text: str) -> list[str]:
        """The programs that the host starts for our entries."""
        commands: list[Any] = [one.get("command") for one in list_server_entries(self._parse(text), self.wanted)]
        named: list[Any] = [command[0] if command and isinstance(command, list) else command for command in commands]
        return list(dict.fromkeys(program for program in named if program and isinstance(program, str)))

    def _parse(self, text: str) -> Any:
        if self.form == "text":
            return {}
        if self.form == "toml":
            return parse_toml(text)
        node = parse_jsonc(text)
        return None if node is None else node.value
