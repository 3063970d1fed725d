"""What a session offers, as methods of the library."""

from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from handrail.entering import CallGate
from handrail.protocol.tool_spec import ToolSpec

if TYPE_CHECKING:
    from handrail.protocol.records import SkillEntry


class OfferMethods(CallGate):
    """Whatever has a session with tools."""

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools this session offers. Other servers are asked what theirs are, where that may have changed."""
        self.look_at_servers()
        return tuple(tool.spec for tool in self._session.offer.tools)

    def tool_names(self) -> tuple[str, ...]:
        """The names of the tools that this session offers; none is loaded for that. As long as it is the same tuple,
        nothing about them has changed."""
        self.look_at_servers()
        return self._session.offer.names

    def spec(self, name: str) -> ToolSpec | None:
        """The tool of this name, if this session offers it."""
        self._check_open()
        tool = self._session.offer.get(name)
        return None if tool is None else tool.spec

    def look_at_servers(self) -> None:
        """Asks other servers what they list, where that may have changed; it may have to wait for one to start. Calls
        of their tools do so too."""
        self._check_open()
        if self._session.foreign is not None:
            self._enter(self._session.look_at_servers)

    @property
    def has_servers(self) -> bool:
        """Whether there are other servers."""
        return self._session.foreign is not None

    def why_off(self, name: str) -> str | None:
        """Why this session does not offer a tool that there is, in words for a person; None otherwise."""
        self._check_open()
        return self._session.offer.why_off(name)

    def skills(self) -> "tuple[SkillEntry, ...]":
        """The skills that this session finds, in the order of their names, and which of them are active. Their files
        are read for that."""
        return self._enter(self._session.skills.entries)

    def active_skills(self) -> tuple[str, ...]:
        """The names of the skills that are active, in order. No file is read."""
        return self._enter(self._session.skills.active_names)

    def openai_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an OpenAI tool list."""
        from handrail.protocol.schema import to_openai_tool  # noqa: PLC0415  few want the schemas

        return [to_openai_tool(spec) for spec in self.specs()]

    def anthropic_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an Anthropic tool list."""
        from handrail.protocol.schema import to_anthropic_tool  # noqa: PLC0415  few want the schemas

        return [to_anthropic_tool(spec) for spec in self.specs()]

    def mcp_tools(self) -> list[dict[str, Any]]:
        """The offered tools as an MCP tool list; `structuredContent` of a call is then a whole ToolResult."""
        from handrail.protocol.schema import to_mcp_tool  # noqa: PLC0415  few want the schemas

        return to_builtins([to_mcp_tool(spec) for spec in self.specs()])  # a copy: the schemas are made once
